// Package chart draws the pictures of the documentation: lines, steps and bars, on
// linear and logarithmic axes, as SVG. It is a theme over gonum.org/v1/plot and
// decides what one would otherwise decide for each picture again: colours, sizes,
// ticks, and where the labels go.
//
//	svg, err := chart.SVG(&chart.Lines{
//		Title: "Heap by number of series",
//		X:     chart.Axis{Label: "series", Log: true},
//		Y:     chart.Axis{Label: "bytes for each", Format: chart.SI},
//		Lines: []chart.Line{{Name: "this recorder", Color: chart.Blue, Points: points}},
//	}, chart.Width, chart.Height)
//
// What it guarantees:
//
//   - The same chart gives the same bytes: there is no time and no random id in a
//     picture, so it changes in git only when its data does.
//   - A picture brings its own light background, and is as legible on a dark page.
//   - Lines are named at their ends, in their colours; names never overlap.
//   - Data that cannot be drawn (no points, NaN, infinite, not above zero on a
//     logarithmic axis) is an error, not a panic.
//
// Limitations: text is set in Liberation Sans, or what the viewer has instead of
// it; Arial has the same widths. Nothing is interactive.
//
// Charts are plain values. They are not changed by being drawn, and may be drawn
// concurrently.
package chart
