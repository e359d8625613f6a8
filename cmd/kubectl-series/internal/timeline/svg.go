package timeline

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/text"
	"github.com/eventseries/eventseries/series"
)

// Measures of the image in pixels.
const (
	svgWidth  = 1200
	svgMargin = 28
	svgChart  = 360 // where the bars begin
	svgEnd    = 1140
	svgHeader = 104
	svgLine   = 20 // of a remark
	svgAxis   = 34
	svgRow    = 52
	svgFooter = 62
	svgBar    = 14 // height of a bar

	// Widths of the columns in characters, for the average width of a character. A
	// clipping path cuts off what is wider.
	svgReasonChars = 36
	svgObjectChars = 43
	svgNoteChars   = 118
)

type svg struct {
	*view
	Width, Height, Margin, Chart, End int
	Axis, Bottom, Legend              int // y of the axis, the end of the rows, and the legend
	RemarkLines                       []svgText
	Grid                              []svgText
	Bars                              []svgBarRow
	LegendBars                        []svgBarRow
	GapX, GapWidth                    float64 // of the part of the axis that is left out
	GapHeight                         int
}

type svgText struct {
	X, Y   float64
	Text   string
	Anchor string
}

type svgBarRow struct {
	Y                       int
	Reason, Object, Details string
	Badges                  string
	Shape                   svgShape
	Full                    string // for the tooltip
}

// svgShape is a bar.
type svgShape struct {
	Class      string
	X, Y, R    float64 // of the circle, or of the question mark
	Path, Cap  string
	Assumed    string // of an ongoing series, after its latest occurrence
	Circle     bool
	Unknown    bool
	Label      string
	TextAnchor float64
}

// WriteSVG writes the timeline as an image.
func (t *Timeline) WriteSVG(w io.Writer) error {
	v := t.view()
	s := &svg{view: v, Width: svgWidth, Margin: svgMargin, Chart: svgChart, End: svgEnd}
	y := svgHeader
	lines := slices.Concat(v.Paths, v.Remarks)
	if v.Dependents != "" {
		lines = append([]string{"Dependents: " + v.Dependents}, lines...)
	}
	for _, remark := range lines {
		s.RemarkLines = append(s.RemarkLines, svgText{Y: float64(y), Text: text.Cut(remark, svgWidth/7)})
		y += svgLine
	}
	s.Axis = y + svgAxis
	labeled := t.labels(wideScale)
	for i, tick := range v.Ticks {
		x, anchor := svgX(tick.at), "middle"
		label := tick.Label
		switch {
		case !labeled[i]:
			label = ""
		case tick.at > 0.96:
			anchor = "end"
		}
		s.Grid = append(s.Grid, svgText{X: x, Y: float64(s.Axis - 10), Text: label, Anchor: anchor})
	}
	if v.Now {
		s.Grid = append(s.Grid, svgText{X: svgEnd, Y: float64(s.Axis - 10), Text: "now", Anchor: "middle"})
	}
	if t.Break > 0 {
		s.GapX = svgX(t.Break) + 8
		s.GapWidth = svgEnd - 8 - s.GapX
	}
	y = s.Axis
	for i := range v.Bars {
		s.Bars = append(s.Bars, svgRowOf(&v.Bars[i], y))
		y += svgRow
	}
	s.Bottom, s.GapHeight = y, y-s.Axis
	s.Legend = y + 26
	x := float64(svgMargin) + 8
	for _, l := range []struct {
		state        series.State
		class, label string
	}{
		{series.Singleton, "warning", "once"},
		{series.Ongoing, "warning", "ongoing, dashed as assumed"},
		{series.Finished, "warning", "finished or quiet"},
		{series.Unknown, "warning", "unknown: may go on"},
		{series.Finished, "warning", "filled: Warning"},
		{series.Finished, "normal", "outlined: Normal"},
	} {
		width, gap := 20.0, 22.0
		if l.state == series.Singleton { // a circle
			width, gap = 0, 16
		}
		shape := shapeOf(&bar{state: l.state}, l.class, x, x+width/2, x+width, float64(s.Legend-svgBar/2))
		shape.Label, shape.TextAnchor = l.label, x+width+gap
		s.LegendBars = append(s.LegendBars, svgBarRow{Shape: shape, Y: s.Legend + 5})
		x = shape.TextAnchor + 24 + 7*float64(len(l.label))
	}
	s.Height = y + svgFooter
	return templates.ExecuteTemplate(w, "timeline.svg.tmpl", s)
}

func svgX(at float64) float64 { return svgChart + at*(svgEnd-svgChart) }

func svgRowOf(r *viewRow, y int) svgBarRow {
	if len(r.Rows) == 1 {
		r = &r.Rows[0] // with its note
	}
	row := svgBarRow{Y: y}
	var badges []string
	if r.Type == "Warning" {
		badges = append(badges, r.Type)
	}
	if r.State != series.Singleton.String() {
		badges = append(badges, r.State)
	}
	row.Badges = strings.Join(badges, ", ")
	reason, object := r.Reason, r.Object
	if reason == "" {
		reason, object = object, ""
	}
	row.Reason = text.Cut(reason, svgReasonChars-text.Width(row.Badges))
	if r.Related != "" {
		object += " ↔ " + r.Related
	}
	row.Object = text.Cut(object, svgObjectChars)

	var details []string
	switch {
	case !r.Timed:
		details = append(details, "no time")
	case r.Lasted != "":
		details = append(details, r.First+" to "+r.Last+" ("+r.Ago+")")
	default:
		details = append(details, r.First+" ("+r.Ago+")")
	}
	if r.Many != "" {
		details = append(details, r.Many)
	}
	if r.State != series.Singleton.String() || r.Many != "" {
		details = append(details, r.Count+" times")
	}
	if r.Rate != "" {
		details = append(details, r.Rate)
	}
	note := strings.Join(r.Notes, " ")
	if note != "" {
		details = append(details, note)
	}
	row.Details = text.Cut(strings.Join(details, " · "), svgNoteChars)
	row.Full = strings.Join([]string{reason, object, r.Controller, strings.Join(details, " · ")}, "\n")
	if r.Drawn {
		class := "normal"
		if r.Type == "Warning" {
			class = "warning"
		}
		row.Shape = shapeOf(&r.bar, class, svgX(r.bar.Start), svgX(r.bar.Known), svgX(r.bar.End), float64(y+10))
	}
	return row
}

// shapeOf returns the bar from x0 to x1 with its upper edge at y. What follows known is assumed.
func shapeOf(b *bar, class string, x0, known, x1, y float64) svgShape {
	s := svgShape{Class: class + " " + strings.ToLower(b.state.String())}
	x1 = max(x1, x0+4)
	middle, bottom := y+svgBar/2, y+svgBar
	switch {
	case b.state == series.Singleton && x1-x0 > svgBar:
		s.Path = fmt.Sprintf("M%.1f %.1fH%.1fV%.1fH%.1fZ", x0, y, x1, bottom, x0)
	case b.state == series.Singleton:
		s.Circle, s.X, s.Y, s.R = true, x0, middle, svgBar/2
	case b.state == series.Ongoing:
		known = min(max(known, x0+4), x1)
		s.Path = fmt.Sprintf("M%.1f %.1fH%.1fV%.1fH%.1fZ", x0, y, known, bottom, x0)
		s.Assumed = fmt.Sprintf("M%.1f %.1fH%.1fV%.1fL%.1f %.1fL%.1f %.1fV%.1fH%.1f", known, y, x1, y-4, x1+13, middle, x1, bottom+4, bottom, known)
		if b.partly { // no arrow, because some have ended
			s.Assumed = fmt.Sprintf("M%.1f %.1fH%.1fM%.1f %.1fH%.1f", known, y, x1, known, bottom, x1)
		}
	case b.state == series.Unknown:
		s.Path = fmt.Sprintf("M%.1f %.1fH%.1fV%.1fH%.1f", x1, y, x0, bottom, x1)
		s.Unknown, s.X, s.Y = true, x1+6, middle+5
	default:
		s.Path = fmt.Sprintf("M%.1f %.1fH%.1fV%.1fH%.1fZ", x0, y, x1, bottom, x0)
		s.Cap = fmt.Sprintf("M%.1f %.1fh4V%.1fh-4Z", x1, y-4, bottom+4)
	}
	return s
}
