package chart

import (
	"image/color"

	"golang.org/x/image/font"
	"gonum.org/v1/plot"
	plotfont "gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// The usual size of a picture, in points. It fills the width of a page on GitHub.
const (
	Width  = 640
	Height = 340
)

// Colours of data. They differ in lightness as well, so that they can be told apart
// by those who see no colours.
var (
	Blue   = color.RGBA{0x1f, 0x5a, 0x96, 0xff}
	Orange = color.RGBA{0xd9, 0x7b, 0x29, 0xff}
	Red    = color.RGBA{0xb0, 0x3a, 0x2e, 0xff}
	Green  = color.RGBA{0x3f, 0x91, 0x72, 0xff}
	Purple = color.RGBA{0x7b, 0x5e, 0xa7, 0xff}
	Grey   = color.RGBA{0x8c, 0x8c, 0x8c, 0xff}
)

var (
	paper = color.RGBA{0xfc, 0xfb, 0xf8, 0xff}
	rim   = color.RGBA{0xe4, 0xe1, 0xd9, 0xff}
	grid  = color.RGBA{0xe9, 0xe7, 0xe1, 0xff}
	axis  = color.RGBA{0xb9, 0xb5, 0xab, 0xff}
	ink   = color.RGBA{0x2b, 0x2b, 0x2b, 0xff}
	faint = color.RGBA{0x6a, 0x67, 0x61, 0xff}
)

const (
	titleSize    = 14
	subtitleSize = 10.5
	textSize     = 10
	margin       = 16 // around a chart
	lineWidth    = 2
)

// style returns the style of a text.
func style(size float64, c color.Color, bold bool) draw.TextStyle {
	f := plotfont.Font{Typeface: "Liberation", Variant: "Sans", Size: vg.Points(size)}
	if bold {
		f.Weight = font.WeightBold
	}
	return draw.TextStyle{Color: c, Font: f, Handler: plot.DefaultTextHandler}
}

// widthOf returns how wide a text can become. Where its font is missing, the one
// that is taken instead can be wider.
func widthOf(s draw.TextStyle, text string) vg.Length { return s.Width(text) * 1.2 }

// header draws title and subtitle and returns what is left of the canvas.
func header(c draw.Canvas, title, subtitle string) draw.Canvas {
	y := c.Max.Y
	if title != "" {
		y -= vg.Points(titleSize)
		c.FillText(style(titleSize, ink, true), vg.Point{X: c.Min.X, Y: y}, title)
		y -= vg.Points(5)
	}
	if subtitle != "" {
		y -= vg.Points(subtitleSize)
		c.FillText(style(subtitleSize, faint, false), vg.Point{X: c.Min.X, Y: y}, subtitle)
		y -= vg.Points(5)
	}
	if title != "" || subtitle != "" {
		y -= vg.Points(9)
	}
	return draw.Crop(c, 0, 0, 0, y-c.Max.Y)
}

// newPlot returns a plot without anything that the theme draws itself.
func newPlot() *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.LineStyle = draw.LineStyle{Color: axis, Width: vg.Points(0.75)}
		a.Tick.LineStyle = draw.LineStyle{Color: axis, Width: vg.Points(0.75)}
		a.Tick.Length = vg.Points(4)
		a.Padding = 0
		x, y := a.Tick.Label.XAlign, a.Tick.Label.YAlign
		a.Tick.Label = style(textSize, faint, false)
		a.Tick.Label.XAlign, a.Tick.Label.YAlign = x, y
		a.Label.TextStyle = style(textSize, faint, false)
		a.Label.TextStyle.XAlign, a.Label.TextStyle.YAlign = draw.XCenter, draw.YBottom
		a.Label.Padding = vg.Points(4)
	}
	return p
}
