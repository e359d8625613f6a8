package timeline

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/table"
	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/terminal"
	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/text"
	"github.com/eventseries/eventseries/series"
)

// Widths of the bars in a terminal, and in a file.
const (
	leastBars  = 10
	narrowBars = 16
	wideBars   = 40
)

// roomForTimes is the width from which on a terminal shows the time of the latest occurrence in
// addition to its age.
const roomForTimes = 110

// WriteText writes the timeline as a table in which one column contains the bars. In a
// terminal, the note of a series is on a line of its own.
func (t *Timeline) WriteText(w io.Writer, term terminal.Terminal) error {
	bars := wideBars
	if term.Width > 0 {
		bars = min(max((term.Width-60)/2, min(narrowBars, term.Width/4), leastBars), wideBars)
	}
	columns := []table.Column{
		{Name: "FIRST", Omit: 3},
		{Name: "LAST"},
		{Name: "COUNT", Right: true, Omit: 5},
		{Name: t.axis(bars)},
		{Name: "STATE", Omit: 4},
		{Name: "TYPE", Initial: true, Omit: 2},
		{Name: "REASON", Min: 12},
		{Name: "OBJECT", Min: 16, Middle: true},
		{Name: "RELATED", Min: 16, Omit: 1, Middle: true},
	}
	if term.Width <= 0 {
		columns = append(columns, table.Column{Name: "NOTE"})
	}
	lines := t.lines(bars, term.Width <= 0 || term.Width >= roomForTimes)
	rows := make([][]table.Cell, len(lines))
	for i := range lines {
		rows[i] = lines[i].cells
	}
	layout := table.Fit(columns, rows, term)
	var b strings.Builder
	line := func(s string, color terminal.Color) {
		if term.Width > 0 {
			s = text.Cut(s, term.Width)
		}
		b.WriteString(term.Paint(s, color) + "\n")
	}
	line(t.title(), terminal.Bold)
	if t.Dependents != "" { // in full: it names what fails
		b.WriteString(term.Paint("Dependents: "+text.Clean(t.Dependents), terminal.Bold) + "\n")
	}
	line(t.span(), terminal.Plain)
	line(t.summary(), terminal.Plain)
	for _, path := range t.Paths { // the cause is at its end, so nothing is cut off
		b.WriteString(text.Clean(path) + "\n")
	}
	for _, remark := range t.Remarks {
		line("Note: "+text.Clean(remark), terminal.Plain)
	}
	b.WriteByte('\n')
	b.WriteString(layout.Header())
	for i, row := range rows {
		b.WriteString(layout.Line(row))
		if note := lines[i].note; term.Width > 0 && note != "" {
			line("    "+note, terminal.Dim)
		}
	}
	b.WriteByte('\n')
	line("━ Warning  ─ Normal   ● ○ once   ▶ ▷ ongoing   ╍ ┄ assumed   ┫ ┤ end   ? unknown", terminal.Plain)
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	return WriteNext(w, t.Next)
}

// WriteNext writes where to look next. It truncates nothing: the commands are to be copied.
func WriteNext(w io.Writer, next []Hop) error {
	if len(next) == 0 {
		return nil
	}
	width := 0
	for _, hop := range next {
		width = max(width, text.Width(hop.Command))
	}
	s := "\nNext:\n"
	for _, hop := range next {
		s += "  " + text.Pad(hop.Command, width) + "   # " + hop.Why + "\n"
	}
	_, err := io.WriteString(w, s)
	return err
}

// textLine is a line of the table, and its note.
type textLine struct {
	cells []table.Cell
	note  string
}

// lines returns the rows, or the groups if there are any. times adds the time of the latest
// occurrence to its age.
func (t *Timeline) lines(bars int, times bool) []textLine {
	ago := func(first time.Time, last string, at time.Time) string {
		switch age := text.Age(at, t.Now); {
		case first.IsZero() || at.IsZero():
			return text.None
		case times:
			return last + " (" + age + ")"
		default:
			return age
		}
	}
	var lines []textLine
	add := func(r *Row, b *bar, first, last time.Time, count, eventType, reason, object, related string) {
		from, to := t.times(first, last)
		lines = append(lines, textLine{[]table.Cell{
			{Text: from}, {Text: ago(first, to, last)}, {Text: count}, {Text: b.draw(bars), Color: b.color()},
			{Text: b.state.String(), Color: StateColor(b.state)}, {Text: cmp.Or(text.Clean(eventType), text.None), Color: TypeColor(eventType)},
			{Text: cmp.Or(text.Clean(reason), text.None)}, {Text: object}, {Text: cmp.Or(related, text.None)}, {Text: cmp.Or(r.note(), text.None)},
		}, r.note()})
	}
	for i := range t.Groups {
		g := &t.Groups[i]
		add(&g.Rows[0], &g.bar, g.First, g.Last, text.AtLeast(fmt.Sprint(g.Occurrences), g.LowerBound), g.Type, g.Reason, g.What(), "")
	}
	for i := range t.Rows {
		if r := &t.Rows[i]; len(t.Groups) == 0 {
			add(r, &r.bar, r.First, r.Last, text.AtLeast(fmt.Sprint(r.Count), r.LowerBound()), r.Event.Type, r.Event.Reason, r.object(t.Namespace), r.related(t.Namespace))
		}
	}
	return lines
}

// title returns the name of the object, such as "Pod/checkout-0 in shop".
func (t *Timeline) title() string {
	title := text.Clean(t.Kind + "/" + t.Name)
	if t.Namespace != "" {
		title += " in " + text.Clean(t.Namespace)
	}
	return title
}

// summary returns the number of series and occurrences, and how long ago the latest one was.
func (t *Timeline) summary() string {
	groups := ""
	if len(t.Groups) > 0 {
		groups = " in " + text.Plural(len(t.Groups), "group")
	}
	last := ""
	if !t.Last.IsZero() {
		last = ", latest occurrence " + text.Ago(t.Last, t.Now)
	}
	return fmt.Sprintf("%s series%s, %s ongoing%s, %s, %s", text.Count(int64(len(t.Rows))), groups,
		text.Count(int64(t.Ongoing)), last, text.Plural(t.Warnings, "Warning"), text.AtLeast(text.Count(t.Occurrences), t.LowerBound)+strings.TrimLeft(text.Plural(int(t.Occurrences), "occurrence"), "0123456789,"))
}

// axis returns the heading of the bars: the times at their ends and, if there is room, in
// between.
func (t *Timeline) axis(width int) string {
	format := t.format(time.Minute)
	if t.To.Sub(t.From) < 2*time.Minute {
		format = t.clock()
	}
	begin, end := t.From.Format(format), t.To.Format(format)
	if t.endsNow() {
		end = "now"
	}
	if t.isEmpty {
		begin, end = "", "now"
	}
	axis := []rune(text.Pad(begin, max(width-len(end), len(begin)+1)) + end)
	ticks := t.Ticks
	if t.Break > 0 {
		ticks = append(slices.Clip(ticks), Tick{At: t.Break, Label: "⋯"})
	}
	for _, tick := range ticks {
		at, label := column(tick.At, width), []rune(tick.Label)
		around := axis[max(at-2, 0):min(at+len(label)+2, len(axis))]
		if at+len(label) < len(axis) && strings.TrimSpace(string(around)) == "" {
			copy(axis[at:], label)
		}
	}
	return string(axis)
}

// column returns the column of a position.
func column(at float64, width int) int { return min(int(at*float64(width)), width-1) }

// draw draws a bar in a number of columns.
func (b *bar) draw(width int) string {
	if !b.Drawn {
		return strings.Repeat(" ", width)
	}
	first, line, last, once := "├", "─", "┤", "○"
	assumed, arrow := "┄", "▷"
	if b.warning {
		first, line, last, once = "┣", "━", "┫", "●"
		assumed, arrow = "╍", "▶"
	}
	switch b.state {
	case series.Ongoing:
		if last = arrow; b.partly {
			last = assumed
		}
	case series.Unknown:
		last = "?"
	case series.Singleton:
		last = once
	case series.Finished, series.Quiet:
	}
	from, known, to := column(b.Start, width), column(b.Known, width), column(b.End, width)
	drawn := last
	if to > from {
		known = min(max(known, from), to-1)
		drawn = first + strings.Repeat(line, known-from) + strings.Repeat(assumed, to-known-1) + last
	}
	return text.Pad(strings.Repeat(" ", from)+drawn, width)
}

// color is that of the bar: only Warnings have one.
func (b *bar) color() terminal.Color {
	switch {
	case !b.warning:
		return terminal.Plain
	case b.state == series.Ongoing:
		return terminal.Red
	default:
		return terminal.Yellow
	}
}

// StateColor returns the color of a state.
func StateColor(s series.State) terminal.Color {
	switch s {
	case series.Ongoing:
		return terminal.Yellow
	case series.Finished, series.Quiet:
		return terminal.Green
	case series.Unknown:
		return terminal.Magenta
	default:
		return terminal.Plain
	}
}

// TypeColor returns the color of the type of an Event.
func TypeColor(eventType string) terminal.Color {
	if eventType == "Warning" {
		return terminal.Red
	}
	return terminal.Plain
}
