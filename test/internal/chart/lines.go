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

// Lines is a chart of lines. It needs at least one line.
type Lines struct {
	// Title says what the chart shows, Subtitle how it was measured. Both may be empty.
	Title, Subtitle string
	X, Y            Axis
	Lines           []Line
}

// Line is one line of Lines.
type Line struct {
	// Name is at the end of the line. An empty Name is not drawn.
	Name string
	// Color is the color of the line. Nil means Grey.
	Color color.Color
	// Dashed marks lines that are not measurements, such as limits.
	Dashed bool
	// Step keeps each value until the next point.
	Step bool
	// Dots marks the points.
	Dots bool
	// Points are the points in drawing order, at least one.
	Points []Point
}

// Point is a point of a Line, in the units of the axes.
type Point struct{ X, Y float64 }

func (l *Lines) draw(c draw.Canvas) error {
	p := newPlot()
	if err := l.fit(p); err != nil {
		return err
	}
	c = header(c, l.Title, l.Subtitle)
	if l.Y.Label != "" {
		p.Y.Label.Text = "" // horizontal text above the axis is easier to read
		c.FillText(style(textSize, faint, false), vg.Point{X: c.Min.X, Y: c.Max.Y - vg.Points(textSize)}, l.Y.Label)
		c = draw.Crop(c, 0, 0, 0, -vg.Points(textSize+10))
	}
	horizontal := plotter.NewGrid()
	horizontal.Vertical.Width = 0
	horizontal.Horizontal = gridLine
	p.Add(horizontal)

	var names lineNames
	var width vg.Length // of the names
	for i := range l.Lines {
		line := &l.Lines[i]
		if err := line.add(p); err != nil {
			return fmt.Errorf("chart: line %q: %w", line.Name, err)
		}
		if line.Name != "" {
			names = append(names, line)
			width = max(width, widthOf(labelStyle(line.color(), true), line.Name)+labelGap)
		}
	}
	p.Add(names)
	// The grid replaces the vertical axis line.
	p.Y.Width, p.Y.Tick.Width, p.Y.Padding = 0, 0, vg.Points(4)
	p.Draw(draw.Crop(c, 0, -width, 0, 0))
	return nil
}

// fit sets the axes so that they include all points.
func (l *Lines) fit(p *plot.Plot) error {
	if len(l.Lines) == 0 {
		return errors.New("chart: no lines")
	}
	x, y := empty(), empty()
	for _, line := range l.Lines {
		if len(line.Points) == 0 {
			return fmt.Errorf("chart: line %q has no points", line.Name)
		}
		for _, pt := range line.Points {
			if err := errors.Join(l.X.include(&x, pt.X), l.Y.include(&y, pt.Y)); err != nil {
				return fmt.Errorf("chart: line %q: %w", line.Name, err)
			}
		}
	}
	return errors.Join(l.X.apply(&p.X, x, false, false), l.Y.apply(&p.Y, y, true, true))
}

func (l *Line) color() color.Color { return cmp.Or[color.Color](l.Color, Grey) }

// add adds the line to a plot.
func (l *Line) add(p *plot.Plot) error {
	xys := make(plotter.XYs, len(l.Points))
	for i, pt := range l.Points {
		xys[i] = plotter.XY(pt)
	}
	line, err := plotter.NewLine(xys)
	if err != nil {
		return err
	}
	line.LineStyle = draw.LineStyle{Color: l.color(), Width: vg.Points(lineWidth)}
	if l.Dashed {
		line.Width = vg.Points(1)
		line.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
	}
	if l.Step {
		line.StepStyle = plotter.PostStep
	}
	p.Add(line)
	if l.Dots {
		dots, err := plotter.NewScatter(xys)
		if err != nil {
			return err
		}
		dots.GlyphStyle = draw.GlyphStyle{Color: l.color(), Radius: vg.Points(3), Shape: draw.CircleGlyph{}}
		p.Add(dots)
	}
	return nil
}

// lineNames is a plot.Plotter for the names of lines.
type lineNames []*Line

// Plot draws each name to the right of the last point of its line.
func (ls lineNames) Plot(c draw.Canvas, p *plot.Plot) {
	toX, toY := p.Transforms(&c)
	ys := make([]vg.Length, len(ls))
	for i, l := range ls {
		ys[i] = toY(l.Points[len(l.Points)-1].Y)
	}
	spread(ys, vg.Points(textSize*1.3), c.Min.Y, c.Max.Y)
	for i, l := range ls {
		c.FillText(labelStyle(l.color(), true), vg.Point{X: toX(l.Points[len(l.Points)-1].X) + labelGap, Y: ys[i]}, l.Name)
	}
}

// spread moves positions apart until they are at least gap apart. It keeps them
// between low and high if there is enough room.
func spread(ys []vg.Length, gap, low, high vg.Length) {
	order := make([]int, len(ys))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(ys[i], ys[j]) })
	// Push positions up, then push those above high back down.
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
