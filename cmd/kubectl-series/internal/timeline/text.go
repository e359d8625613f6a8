package timeline

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/table"
	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/terminal"
	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/text"
	"github.com/eventseries/eventseries/series"
)

// Widths of the bars in a terminal, and in a file.
const (
	narrowBars = 16
	wideBars   = 40
)

// WriteText writes the timeline as a table in which one column contains the bars. In a
// terminal, the note of a series is on a line of its own.
func (t *Timeline) WriteText(w io.Writer, term terminal.Terminal) error {
	bars := wideBars
	if term.Width > 0 {
		bars = min(max((term.Width-60)/2, narrowBars), wideBars)
	}
	columns := []table.Column{
		{Name: "FIRST"},
		{Name: "LAST", Omit: 2},
		{Name: "COUNT", Right: true},
		{Name: t.axis(bars)},
		{Name: "STATE", Omit: 4},
		{Name: "TYPE", Omit: 3},
		{Name: "REASON", Min: 16},
		{Name: "OBJECT", Min: 16},
		{Name: "RELATED", Min: 16, Omit: 1},
	}
	if term.Width <= 0 {
		columns = append(columns, table.Column{Name: "NOTE"})
	}
	rows := make([][]table.Cell, len(t.Rows))
	for i := range t.Rows {
		r := &t.Rows[i]
		first, last := t.times(r)
		rows[i] = []table.Cell{
			{Text: first}, {Text: last}, {Text: fmt.Sprint(r.Count)}, {Text: r.bar(bars), Color: r.color()},
			{Text: r.State.String(), Color: StateColor(r.State)},
			{Text: cmp.Or(text.Clean(r.Event.Type), text.None), Color: TypeColor(r.Event.Type)},
			{Text: cmp.Or(text.Clean(r.Event.Reason), text.None)}, {Text: r.object(t.Namespace)},
			{Text: cmp.Or(r.related(t.Namespace), text.None)}, {Text: cmp.Or(r.note(), text.None)},
		}
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
	line(t.span(), terminal.Plain)
	line(t.summary(), terminal.Plain)
	for _, remark := range t.Remarks {
		line("Note: "+text.Clean(remark), terminal.Plain)
	}
	b.WriteByte('\n')
	b.WriteString(layout.Header())
	for i, row := range rows {
		b.WriteString(layout.Line(row))
		if note := t.Rows[i].note(); term.Width > 0 && note != "" {
			line(strings.Repeat(" ", len(t.clock())+2)+note, terminal.Dim)
		}
	}
	b.WriteByte('\n')
	line("━ Warning  ─ Normal   ● ○ once   ▶ ▷ ongoing   ┫ ┤ finished   ? unknown", terminal.Plain)
	_, err := io.WriteString(w, b.String())
	return err
}

// title returns the name of the object, such as "Pod/checkout-0 in shop".
func (t *Timeline) title() string {
	title := text.Clean(t.Kind + "/" + t.Name)
	if t.Namespace != "" {
		title += " in " + text.Clean(t.Namespace)
	}
	return title
}

// summary returns the number of series and occurrences.
func (t *Timeline) summary() string {
	return fmt.Sprintf("%s series, %s ongoing, %s, %s", text.Count(int64(len(t.Rows))),
		text.Count(int64(t.Ongoing)), text.Plural(t.Warnings, "Warning"), text.Plural(int(t.Occurrences), "occurrence"))
}

// axis returns the heading of the bars: the times at their ends and, if there is room, in
// between.
func (t *Timeline) axis(width int) string {
	format := t.format(time.Minute)
	if t.To.Sub(t.From) < 2*time.Minute {
		format = t.clock()
	}
	begin, end := t.From.Format(format), t.To.Format(format)
	if t.To.Equal(t.Now) {
		end = "now"
	}
	axis := []rune(text.Pad(begin, max(width-len(end), len(begin)+1)) + end)
	for _, tick := range t.Ticks {
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

// bar draws the series in a number of columns.
func (r *Row) bar(width int) string {
	if r.First.IsZero() {
		return strings.Repeat(" ", width)
	}
	begin, line, end, once := "├", "─", "┤", "○"
	arrow := "▷"
	if r.Warning() {
		begin, line, end, once, arrow = "┣", "━", "┫", "●", "▶"
	}
	switch r.State {
	case series.Ongoing:
		end = arrow
	case series.Unknown:
		end = "?"
	case series.Singleton:
		end = once
	case series.Finished:
	}
	from, to := column(r.Start, width), column(r.End, width)
	drawn := end
	if to > from {
		drawn = begin + strings.Repeat(line, to-from-1) + end
	}
	return text.Pad(strings.Repeat(" ", from)+drawn, width)
}

// color is that of the bar: only Warnings have one.
func (r *Row) color() terminal.Color {
	switch {
	case !r.Warning():
		return terminal.Plain
	case r.Open():
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
	case series.Finished:
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
