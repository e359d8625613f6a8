package chart

import (
	"errors"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Grid puts several charts into one picture, row by row. At least one is needed.
type Grid struct {
	// Title and Subtitle are those of the whole. Both may be empty.
	Title, Subtitle string
	// Columns is how many charts are side by side. If zero, one.
	Columns int
	Charts  []Chart
}

func (g *Grid) draw(c draw.Canvas) error {
	if len(g.Charts) == 0 {
		return errors.New("chart: a grid without charts")
	}
	columns := max(g.Columns, 1)
	rows := (len(g.Charts) + columns - 1) / columns
	c = header(c, g.Title, g.Subtitle)
	gap := vg.Points(2 * margin)
	tiles := draw.Tiles{Cols: columns, Rows: rows, PadX: gap, PadY: gap}
	for i, chart := range g.Charts {
		if err := chart.draw(tiles.At(c, i%columns, i/columns)); err != nil {
			return err
		}
	}
	return nil
}
