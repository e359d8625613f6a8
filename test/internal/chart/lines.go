package chart

import (
	"errors"
	"fmt"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Lines is a chart of lines, each named at its end. At least one is needed.
type Lines struct {
	// Title says what is to be seen, Subtitle how it came about. Both may be empty.
	Title, Subtitle string
	X, Y            Axis
	Lines           []Line
}

// Line is one line of Lines.
type Line struct {
	// Name is written at its end. If empty, the line has no name.
	Name string
	// Color is how it looks. If nil, Grey.
	Color color.Color
	// Dashed is for what is no measurement: a limit, a mean.
	Dashed bool
	// Step makes a value hold until the next one.
	Step bool
	// Dots marks the points, where there are few of them.
	Dots bool
	// Points are joined in their order. At least one is needed.
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
		p.Y.Label.Text = "" // it is written above the axis, where nobody has to turn his head
		c.FillText(style(textSize, faint, false), vg.Point{X: c.Min.X, Y: c.Max.Y - vg.Points(textSize)}, l.Y.Label)
		c = draw.Crop(c, 0, 0, 0, -vg.Points(textSize+10))
	}
	horizontal := plotter.NewGrid()
	horizontal.Vertical.Width = 0
	horizontal.Horizontal = draw.LineStyle{Color: grid, Width: vg.Points(0.75)}
	p.Add(horizontal)

	names := make(endLabels, 0, len(l.Lines))
	for i := range l.Lines {
		line := &l.Lines[i]
		if err := line.add(p); err != nil {
			return err
		}
		if line.Name != "" {
			names = append(names, endLabel{at: line.Points[len(line.Points)-1], text: line.Name, color: line.color()})
		}
	}
	p.Add(names)
	// Without the vertical line, as values are read off the grid.
	p.Y.Width, p.Y.Tick.Width, p.Y.Padding = 0, 0, vg.Points(4)
	p.Draw(draw.Crop(c, 0, -names.width(), 0, 0))
	return nil
}

// fit sets the axes so that all points are on them.
func (l *Lines) fit(p *plot.Plot) error {
	if len(l.Lines) == 0 {
		return errors.New("chart: no lines")
	}
	x, y := nothing(), nothing()
	for i := range l.Lines {
		line := &l.Lines[i]
		if len(line.Points) == 0 {
			return fmt.Errorf("chart: line %q has no points", line.Name)
		}
		for _, pt := range line.Points {
			if err := errors.Join(l.X.check(pt.X), l.Y.check(pt.Y)); err != nil {
				return fmt.Errorf("chart: line %q: %w", line.Name, err)
			}
			x.include(pt.X)
			y.include(pt.Y)
		}
	}
	return errors.Join(l.X.apply(&p.X, x, 0), l.Y.apply(&p.Y, y, low|high))
}

func (l *Line) color() color.Color {
	if l.Color == nil {
		return Grey
	}
	return l.Color
}

// add puts the line into a plot.
func (l *Line) add(p *plot.Plot) error {
	xys := make(plotter.XYs, len(l.Points))
	for i, pt := range l.Points {
		xys[i] = plotter.XY(pt)
	}
	line, err := plotter.NewLine(xys)
	if err != nil {
		return fmt.Errorf("chart: line %q: %w", l.Name, err)
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
			return fmt.Errorf("chart: line %q: %w", l.Name, err)
		}
		dots.GlyphStyle = draw.GlyphStyle{Color: l.color(), Radius: vg.Points(3), Shape: draw.CircleGlyph{}}
		p.Add(dots)
	}
	return nil
}
