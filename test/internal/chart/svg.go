package chart

import (
	"bytes"
	"fmt"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Chart is what can be drawn: *Lines, *Bars or *Grid.
type Chart interface {
	draw(c draw.Canvas) error
}

// SVG draws a chart as a picture of a size in points. An error says what of the
// data cannot be drawn.
func SVG(chart Chart, width, height float64) ([]byte, error) {
	if width < 4*margin || height < 4*margin {
		return nil, fmt.Errorf("chart: no room in %v by %v points", width, height)
	}
	svg := vgsvg.New(vg.Points(width), vg.Points(height))
	canvas := draw.New(svg)
	sheet(canvas)
	if err := chart.draw(draw.Crop(canvas, vg.Points(margin), -vg.Points(margin), vg.Points(margin), -vg.Points(margin))); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if _, err := svg.WriteTo(&b); err != nil {
		return nil, fmt.Errorf("chart: %w", err)
	}
	return substitutes(b.Bytes()), nil
}

// sheet draws what the chart stands on.
func sheet(c draw.Canvas) {
	lowest, highest := c.Min, c.Max
	corners := []vg.Point{lowest, {X: lowest.X, Y: highest.Y}, highest, {X: highest.X, Y: lowest.Y}}
	c.FillPolygon(paper, corners)
	c.StrokeLines(draw.LineStyle{Color: rim, Width: vg.Points(1.5)}, append(corners, lowest))
}

// substitutes names the fonts to take where that of gonum is not installed, which
// are almost everywhere: without that, viewers take one with serifs.
func substitutes(svg []byte) []byte {
	return bytes.ReplaceAll(svg, []byte("font-family:Liberation Sans;"), []byte("font-family:'Liberation Sans',Arial,Helvetica,sans-serif;"))
}
