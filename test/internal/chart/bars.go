package chart

import (
	"errors"
	"fmt"
	"image/color"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Bars is a chart of horizontal bars, the first on top. At least one is needed.
type Bars struct {
	// Title says what is to be seen, Subtitle how it came about. Both may be empty.
	Title, Subtitle string
	// Axis is that of the values. On a logarithmic one bars begin at the power of
	// ten below the smallest.
	Axis Axis
	Bars []Bar
}

// Bar is one bar of Bars.
type Bar struct {
	// Name is written on its left.
	Name string
	// Color is how it looks. If nil, Grey.
	Color color.Color
	Value float64
	// Low and High are the ends of the spread of the value. If both are zero, none
	// is drawn.
	Low, High float64
	// Label is written at its end. If empty, the value, as the axis writes it.
	Label string
}

func (b *Bars) draw(c draw.Canvas) error {
	if len(b.Bars) == 0 {
		return errors.New("chart: no bars")
	}
	p := newPlot()
	values := nothing()
	for _, bar := range b.Bars {
		for _, v := range bar.values() {
			if err := b.Axis.check(v); err != nil {
				return fmt.Errorf("chart: bar %q: %w", bar.Name, err)
			}
			values.include(v)
		}
	}
	outward := low
	if values.min < 0 {
		outward |= high
	}
	if err := b.Axis.apply(&p.X, values, outward); err != nil {
		return err
	}
	p.HideY()
	p.Y.Min, p.Y.Max = -0.5, float64(len(b.Bars))-0.5
	p.X.Width, p.X.Tick.Width = 0, 0

	vertical := plotter.NewGrid()
	vertical.Horizontal.Width = 0
	vertical.Vertical = draw.LineStyle{Color: grid, Width: vg.Points(0.75)}
	c = header(c, b.Title, b.Subtitle)
	names, labels := b.widths()
	p.Add(vertical, &rows{Bars: b, left: c.Min.X})
	p.Draw(draw.Crop(c, names, -labels, 0, 0))
	return nil
}

// row is the place of the i-th bar on the vertical axis.
func (b *Bars) row(i int) float64 { return float64(len(b.Bars) - 1 - i) }

// widths returns the room for the names on the left, and for the label of a bar
// that goes all the way.
func (b *Bars) widths() (names, labels vg.Length) {
	gap := vg.Points(labelGap)
	for _, bar := range b.Bars {
		names = max(names, widthOf(nameStyle(), bar.Name)+gap)
		labels = max(labels, widthOf(style(textSize, ink, true), b.label(bar))+gap)
	}
	return names, labels
}

func nameStyle() draw.TextStyle {
	s := style(textSize, ink, false)
	s.YAlign = draw.YCenter
	return s
}

func (b *Bars) label(bar Bar) string {
	if bar.Label != "" {
		return bar.Label
	}
	return b.Axis.format(bar.Value)
}

// values are all values that have to be on the axis.
func (b Bar) values() []float64 {
	if b.Low == 0 && b.High == 0 {
		return []float64{b.Value}
	}
	return []float64{b.Value, b.Low, b.High}
}

// rows draws the bars and their names into a plot.
type rows struct {
	*Bars
	left vg.Length // where names begin
}

// Plot draws the bars.
func (r *rows) Plot(c draw.Canvas, p *plot.Plot) {
	toX, toY := p.Transforms(&c)
	zero := toX(p.X.Min)
	if !r.Axis.Log {
		zero = toX(0)
	}
	half := min((toY(1)-toY(0))*0.34, vg.Points(13))
	for i, bar := range r.Bars.Bars {
		y, end := toY(r.row(i)), toX(bar.Value)
		c.FillText(nameStyle(), vg.Point{X: r.left, Y: y}, bar.Name)
		fill := bar.Color
		if fill == nil {
			fill = Grey
		}
		c.FillPolygon(fill, []vg.Point{{X: zero, Y: y - half}, {X: zero, Y: y + half}, {X: end, Y: y + half}, {X: end, Y: y - half}})
		if values := bar.values(); len(values) > 1 {
			from, to := toX(slices.Min(values)), toX(slices.Max(values))
			whisker := draw.LineStyle{Color: ink, Width: vg.Points(1)}
			c.StrokeLine2(whisker, from, y, to, y)
			for _, x := range []vg.Length{from, to} {
				c.StrokeLine2(whisker, x, y-half/3, x, y+half/3)
			}
			end = max(end, to)
		}
		s := style(textSize, ink, true)
		s.YAlign = draw.YCenter
		c.FillText(s, vg.Point{X: end + vg.Points(labelGap), Y: y}, r.label(bar))
	}
}
