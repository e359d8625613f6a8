package chart

import (
	"cmp"
	"errors"
	"fmt"
	"image/color"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Bars is a chart of horizontal bars, from top to bottom. It needs at least one bar.
type Bars struct {
	// Title says what the chart shows, Subtitle how it was measured. Both may be empty.
	Title, Subtitle string
	// Axis is the axis of values. On a logarithmic axis, bars start at the power of
	// ten below the smallest value.
	Axis Axis
	Bars []Bar
}

// Bar is one bar of Bars.
type Bar struct {
	// Name is to the left of the bar.
	Name string
	// Color is the color of the bar. Nil means Grey.
	Color color.Color
	Value float64
	// Low and High are the ends of the whisker. If both are zero, the bar has none.
	Low, High float64
	// Label is to the right of the bar. If empty, it is the formatted Value.
	Label string
}

func (b *Bars) draw(c draw.Canvas) error {
	if len(b.Bars) == 0 {
		return errors.New("chart: no bars")
	}
	p := newPlot()
	extent := empty()
	for _, bar := range b.Bars {
		for _, v := range bar.values() {
			if err := b.Axis.include(&extent, v); err != nil {
				return fmt.Errorf("chart: bar %q: %w", bar.Name, err)
			}
		}
	}
	if err := b.Axis.apply(&p.X, extent, true, extent.min < 0); err != nil {
		return err
	}
	p.HideY()
	p.Y.Min, p.Y.Max = -0.5, float64(len(b.Bars))-0.5
	p.X.Width, p.X.Tick.Width = 0, 0

	vertical := plotter.NewGrid()
	vertical.Horizontal.Width = 0
	vertical.Vertical = gridLine
	c = header(c, b.Title, b.Subtitle)
	var names, labels vg.Length
	for _, bar := range b.Bars {
		names = max(names, widthOf(labelStyle(ink, false), bar.Name)+labelGap)
		labels = max(labels, widthOf(labelStyle(ink, true), b.label(bar))+labelGap)
	}
	p.Add(vertical, &bars{Bars: b, left: c.Min.X})
	p.Draw(draw.Crop(c, names, -labels, 0, 0))
	return nil
}

func (b *Bars) label(bar Bar) string {
	return cmp.Or(bar.Label, b.Axis.format(bar.Value))
}

// values returns the values that the axis must include.
func (b Bar) values() []float64 {
	if b.Low == 0 && b.High == 0 {
		return []float64{b.Value}
	}
	return []float64{b.Value, b.Low, b.High}
}

// bars is the plot.Plotter of Bars.
type bars struct {
	*Bars
	left vg.Length // of the names
}

// Plot draws the bars, their names and their labels.
func (r *bars) Plot(c draw.Canvas, p *plot.Plot) {
	toX, toY := p.Transforms(&c)
	zero := toX(p.X.Min)
	if !r.Axis.Log {
		zero = toX(0)
	}
	half := min((toY(1)-toY(0))*0.34, vg.Points(13))
	for i, bar := range r.Bars.Bars {
		y, end := toY(float64(len(r.Bars.Bars)-1-i)), toX(bar.Value)
		c.FillText(labelStyle(ink, false), vg.Point{X: r.left, Y: y}, bar.Name)
		c.FillPolygon(cmp.Or[color.Color](bar.Color, Grey),
			[]vg.Point{{X: zero, Y: y - half}, {X: zero, Y: y + half}, {X: end, Y: y + half}, {X: end, Y: y - half}})
		if values := bar.values(); len(values) > 1 {
			from, to := toX(slices.Min(values)), toX(slices.Max(values))
			whisker := draw.LineStyle{Color: ink, Width: vg.Points(1)}
			c.StrokeLine2(whisker, from, y, to, y)
			for _, x := range []vg.Length{from, to} {
				c.StrokeLine2(whisker, x, y-half/3, x, y+half/3)
			}
			end = max(end, to)
		}
		c.FillText(labelStyle(ink, true), vg.Point{X: end + labelGap, Y: y}, r.label(bar))
	}
}
