package chart

import (
	"image/color"

	"golang.org/x/image/font"
	"gonum.org/v1/plot"
	plotfont "gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// The default size of a picture in points. It fills the width of a page on GitHub.
const (
	Width  = 640
	Height = 340
)

// Colors of data. They differ in lightness too, for color-blind readers.
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

	gridLine = draw.LineStyle{Color: grid, Width: vg.Points(0.75)}
)

const (
	titleSize    = 14
	subtitleSize = 10.5
	textSize     = 10
	margin       = 16 // around a chart
	lineWidth    = 2
	// labelGap is the distance between data and its label.
	labelGap = vg.Length(7)
)

func style(size float64, c color.Color, bold bool) draw.TextStyle {
	f := plotfont.Font{Typeface: "Liberation", Variant: "Sans", Size: vg.Points(size)}
	if bold {
		f.Weight = font.WeightBold
	}
	return draw.TextStyle{Color: c, Font: f, Handler: plot.DefaultTextHandler}
}

// labelStyle is the style of labels that are vertically centered at their data.
func labelStyle(c color.Color, bold bool) draw.TextStyle {
	s := style(textSize, c, bold)
	s.YAlign = draw.YCenter
	return s
}

// widthOf returns the width of a text, with reserve for substitutes of the font.
func widthOf(s draw.TextStyle, text string) vg.Length { return s.Width(text) * 1.2 }

// header draws title and subtitle and returns the rest of the canvas.
func header(c draw.Canvas, title, subtitle string) draw.Canvas {
	y := c.Max.Y
	write := func(size float64, color color.Color, bold bool, text string) {
		if text != "" {
			y -= vg.Points(size)
			c.FillText(style(size, color, bold), vg.Point{X: c.Min.X, Y: y}, text)
			y -= vg.Points(5)
		}
	}
	write(titleSize, ink, true, title)
	write(subtitleSize, faint, false, subtitle)
	if y < c.Max.Y {
		y -= vg.Points(9)
	}
	return draw.Crop(c, 0, 0, 0, y-c.Max.Y)
}

// newPlot returns a plot without the parts that the theme draws itself.
func newPlot() *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil
	line := draw.LineStyle{Color: axis, Width: vg.Points(0.75)}
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.LineStyle, a.Tick.LineStyle = line, line
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
