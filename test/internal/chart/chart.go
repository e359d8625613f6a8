// Package chart draws the charts of the documentation with gonum.org/v1/plot. It
// contains what all charts share: font, number format, grid, and a legend beside the
// data.
//
// Pictures have a white background, and are legible on dark pages too. The same
// plots always produce the same bytes.
package chart

import (
	"bytes"
	"fmt"
	"image/color"
	"math"

	"golang.org/x/text/language"
	"golang.org/x/text/message"
	"golang.org/x/text/number"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// margin is the space around a plot and between a plot and its legend.
const margin = vg.Length(14)

// New returns a plot whose axes are linear and start at zero. x and y are the labels
// of the axes.
func New(title, x, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Title.Padding = vg.Points(8)
	p.X.Min, p.Y.Min = 0, 0
	p.X.Tick.Marker, p.Y.Tick.Marker = ticks{plot.DefaultTicks{}}, ticks{plot.DefaultTicks{}}
	p.Legend.Top, p.Legend.Left, p.Legend.Padding = true, true, vg.Points(3)
	for _, style := range []*text.Style{
		&p.Title.TextStyle, &p.Legend.TextStyle, &p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label,
	} {
		style.Font.Variant, style.Font.Size = "Sans", vg.Points(11)
	}
	p.Title.TextStyle.Font.Size = vg.Points(14)
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{Y: 200}, color.Gray{Y: 200}
	p.Add(grid)
	return p
}

// Log makes an axis logarithmic. Its ends are powers of ten. SVG panics if a value is
// not positive.
func Log(a *plot.Axis) {
	a.Scale, a.Tick.Marker, a.Min, a.AutoRescale = plot.LogScale{}, ticks{plot.LogTicks{}}, math.Inf(1), true
	// gonum reserves too much space for centered labels of logarithmic axes.
	a.Label.Position = draw.PosTop
}

// Line is a line of a plot. It needs at least one point.
type Line struct {
	Name   string // in the legend
	Color  color.Color
	Points plotter.XYs
}

// Add adds lines to a plot.
func Add(p *plot.Plot, lines ...Line) error {
	for _, l := range lines {
		if len(l.Points) == 0 {
			return fmt.Errorf("chart: line %q: no points", l.Name)
		}
		line, err := plotter.NewLine(l.Points)
		if err != nil {
			return fmt.Errorf("chart: line %q: %w", l.Name, err)
		}
		line.Color, line.Width = l.Color, vg.Points(2)
		p.Add(line)
		p.Legend.Add(l.Name, line)
	}
	return nil
}

// SVG draws a plot as a picture. Sizes are in points.
func SVG(width, height vg.Length, p *plot.Plot) []byte {
	svg := vgsvg.New(width, height)
	canvas := draw.New(svg)
	canvas.SetColor(color.White)
	canvas.Fill(canvas.Path())
	drawPlot(p, draw.Crop(canvas, margin, -margin, margin, -margin))
	var b bytes.Buffer
	_, _ = svg.WriteTo(&b) // a Buffer returns no error
	// Few machines have the font of gonum. Arial has the same metrics.
	return bytes.ReplaceAll(b.Bytes(), []byte("font-family:Liberation Sans;"), []byte("font-family:'Liberation Sans',Arial,Helvetica,sans-serif;"))
}

// drawPlot draws a plot with its legend to the right of the data, where it hides
// nothing.
func drawPlot(p *plot.Plot, c draw.Canvas) {
	legend := p.Legend
	p.Legend = plot.NewLegend()
	width := legend.Rectangle(c).Size().X * 1.1 // reserve for a wider font
	legend.Draw(draw.Crop(c, c.Size().X-width, 0, 0, -p.Title.TextStyle.Height(p.Title.Text)-p.Title.Padding))
	if width > 0 {
		width += margin
	}
	p.Draw(draw.Crop(c, 0, -width, 0, 0))
}

// ticks formats the labels of ticks.
type ticks struct{ plot.Ticker }

// Ticks implements plot.Ticker.
func (t ticks) Ticks(low, high float64) []plot.Tick {
	all := t.Ticker.Ticks(low, high)
	for i := range all {
		if !all[i].IsMinor() {
			all[i].Label = Number(all[i].Value)
		}
	}
	return all
}

var english = message.NewPrinter(language.English)

// Number formats a number with commas between thousands. It keeps at most three
// decimals.
func Number(v any) string { return english.Sprint(number.Decimal(v)) }
