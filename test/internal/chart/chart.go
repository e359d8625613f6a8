// Package chart draws the charts of the documentation as SVG: lines, steps and
// horizontal bars, on linear and logarithmic axes. It is a theme for
// gonum.org/v1/plot and fixes colors, sizes, ticks and label positions, so that all
// charts look alike.
//
//	svg, err := chart.SVG(&chart.Lines{
//		Title: "Heap by number of series",
//		X:     chart.Axis{Label: "series", Log: true},
//		Y:     chart.Axis{Label: "bytes per series", Format: chart.SI},
//		Lines: []chart.Line{{Name: "this recorder", Color: chart.Blue, Points: points}},
//	}, chart.Width, chart.Height)
//
// The same chart always produces the same bytes: a picture contains no time and no
// random ID, so it changes in git only when its data changes. A picture has a light
// background of its own and is legible on dark pages too. Labels of lines never
// overlap. [SVG] returns an error for data that it cannot draw (no points, NaN,
// infinity, values <= 0 on a logarithmic axis).
//
// The font is Liberation Sans, or Arial, which has the same metrics.
//
// Drawing does not modify a chart. Several goroutines may draw the same chart.
package chart

import (
	"bytes"
	"errors"
	"fmt"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Chart is a *Lines, *Bars or *Grid.
type Chart interface {
	draw(c draw.Canvas) error
}

// SVG draws a chart as a picture with the given size in points.
func SVG(chart Chart, width, height float64) ([]byte, error) {
	if width < 4*margin || height < 4*margin {
		return nil, fmt.Errorf("chart: no room in %v by %v points", width, height)
	}
	svg := vgsvg.New(vg.Points(width), vg.Points(height))
	canvas := draw.New(svg)
	drawBackground(canvas)
	if err := chart.draw(draw.Crop(canvas, vg.Points(margin), -vg.Points(margin), vg.Points(margin), -vg.Points(margin))); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if _, err := svg.WriteTo(&b); err != nil {
		return nil, fmt.Errorf("chart: %w", err)
	}
	// Few machines have the font of gonum. Without alternatives, viewers fall back to
	// a font with serifs.
	return bytes.ReplaceAll(b.Bytes(), []byte("font-family:Liberation Sans;"), []byte("font-family:'Liberation Sans',Arial,Helvetica,sans-serif;")), nil
}

func drawBackground(c draw.Canvas) {
	lowest, highest := c.Min, c.Max
	corners := []vg.Point{lowest, {X: lowest.X, Y: highest.Y}, highest, {X: highest.X, Y: lowest.Y}}
	c.FillPolygon(paper, corners)
	c.StrokeLines(draw.LineStyle{Color: rim, Width: vg.Points(1.5)}, append(corners, lowest))
}

// Grid arranges charts row by row in one picture. It needs at least one chart.
type Grid struct {
	// Title and Subtitle belong to the whole picture. Both may be empty.
	Title, Subtitle string
	// Columns is the number of charts per row, at least one.
	Columns int
	Charts  []Chart
}

func (g *Grid) draw(c draw.Canvas) error {
	if len(g.Charts) == 0 {
		return errors.New("chart: a grid without charts")
	}
	rows := (len(g.Charts) + g.Columns - 1) / g.Columns
	c = header(c, g.Title, g.Subtitle)
	gap := vg.Points(2 * margin)
	tiles := draw.Tiles{Cols: g.Columns, Rows: rows, PadX: gap, PadY: gap}
	for i, chart := range g.Charts {
		if err := chart.draw(tiles.At(c, i%g.Columns, i/g.Columns)); err != nil {
			return err
		}
	}
	return nil
}
