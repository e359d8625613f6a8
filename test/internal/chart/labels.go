package chart

import (
	"cmp"
	"image/color"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// labelGap is the distance between the end of a line and its name.
const labelGap = 7

// endLabel is the name of a line, right of its last point.
type endLabel struct {
	at    Point
	text  string
	color color.Color
}

// endLabels are the names of all lines. They are moved apart where they would
// overlap.
type endLabels []endLabel

// width is what the widest name needs on the right of the data.
func (ls endLabels) width() vg.Length {
	var widest vg.Length
	for _, l := range ls {
		widest = max(widest, widthOf(style(textSize, l.color, true), l.text)+vg.Points(labelGap))
	}
	return widest
}

// Plot draws the names.
func (ls endLabels) Plot(c draw.Canvas, p *plot.Plot) {
	toX, toY := p.Transforms(&c)
	ys := make([]vg.Length, len(ls))
	for i, l := range ls {
		ys[i] = toY(l.at.Y)
	}
	spread(ys, vg.Points(textSize*1.3), c.Min.Y, c.Max.Y)
	for i, l := range ls {
		s := style(textSize, l.color, true)
		s.YAlign = draw.YCenter
		c.FillText(s, vg.Point{X: toX(l.at.X) + vg.Points(labelGap), Y: ys[i]}, l.text)
	}
}

// spread moves places apart until no two are nearer than gap, and keeps them
// between low and high, if there is room for all.
func spread(ys []vg.Length, gap, low, high vg.Length) {
	order := make([]int, len(ys))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(ys[i], ys[j]) })
	// Up from the lowest, then down from the top: what was pushed out of the
	// picture comes back and pushes the others down.
	floor := low
	for _, i := range order {
		ys[i] = max(ys[i], floor)
		floor = ys[i] + gap
	}
	ceiling := high
	for _, i := range slices.Backward(order) {
		ys[i] = min(ys[i], ceiling)
		ceiling = ys[i] - gap
	}
}
