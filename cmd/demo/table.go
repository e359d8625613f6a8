package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/eventseries/eventseries/series"
)

// size is that of a terminal. Zero means that there is no limit.
type size struct{ width, height int }

// SGR sequences of a terminal.
const (
	bold   = "\x1b[1m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	cyan   = "\x1b[36m"
	plain  = "\x1b[0m"
)

const (
	// wide is the width from which on the table has all columns.
	wide = 110
	// narrowObject is the width of an object's name in a narrower one.
	narrowObject = 20
)

// table draws a snapshot for a terminal. What does not fit its size is cut.
func table(s snapshot, fit size, colored bool) string {
	rows := s.rows
	// Beside the rows there are two lines above the heading, the heading, four
	// below, and the one that the cursor is on.
	const others = 8
	omitted := 0
	if room := fit.height - others; fit.height > 0 && len(rows) > room {
		room = max(room-1, 0)
		omitted = len(rows) - room
		rows = rows[:room]
	}

	lines := []string{fmt.Sprintf("%4s  %s", seconds(s.elapsed), s.phase), ""}
	heading := len(lines)
	lines = append(lines, columns(rows, fit.width > 0 && fit.width < wide)...)
	if omitted > 0 {
		lines = append(lines, "and "+plural(omitted, "more Event"))
	}
	lines = append(lines, "")
	lines = append(lines, totals(s)...)

	for i, line := range lines {
		line = cut(line, fit.width)
		if colored {
			switch n := i - heading - 1; {
			case n == -1:
				line = bold + line + plain
			case n >= 0 && n < len(rows):
				line = colorState(line, rows[n].state)
			}
		}
		lines[i] = line
	}
	return strings.Join(lines, "\n") + "\n"
}

// columns sets rows in columns below a heading. The state comes first and the
// note last. Where there is little room for the note, it is made by others.
func columns(rows []row, narrow bool) []string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	line := func(state, count, emitted, age, namespace, object, reason, note string) {
		fmt.Fprintf(w, "%-9s\t%7s\t", state, count)
		if narrow {
			fmt.Fprintf(w, "%4s\t%s\t", age, cut(object, narrowObject))
		} else {
			fmt.Fprintf(w, "%7s\t%4s\t%s\t%s\t", emitted, age, namespace, object)
		}
		fmt.Fprintf(w, "%s\t%s\n", reason, note)
	}
	line("STATE", "COUNT", "EMITTED", "AGE", "NAMESPACE", "OBJECT", "REASON", "NOTE")
	for _, r := range rows {
		line(r.state.String(), thousands(r.count), thousands(r.emitted), seconds(r.age),
			r.namespace, r.subject.regarding.String(), r.subject.reason, r.note)
	}
	_ = w.Flush() // a strings.Builder takes everything
	return strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
}

// totals sets what was emitted against what it cost.
func totals(s snapshot) []string {
	return []string{
		fmt.Sprintf("%9s occurrences emitted", thousands(s.emitted)),
		fmt.Sprintf("%9s API calls by this recorder (%s, %s)", thousands(s.calls.total()),
			plural(s.calls.creates, "create"), patches(s.calls.patches)),
		fmt.Sprintf("%9s API calls by one that writes each occurrence%s", thousands(s.emitted), times(s)),
	}
}

func patches(n int) string {
	if n == 1 {
		return "1 patch"
	}
	return thousands(n) + " patches"
}

// times says how many times as much one write for each occurrence is.
func times(s snapshot) string {
	if s.calls.total() == 0 {
		return ""
	}
	return fmt.Sprintf(": %s times as many", thousands(s.emitted/s.calls.total()))
}

// colorState colors the state that a line begins with.
func colorState(line string, state series.State) string {
	color := map[series.State]string{
		series.Singleton: cyan,
		series.Ongoing:   yellow,
		series.Finished:  green,
	}[state]
	rest, ok := strings.CutPrefix(line, state.String())
	if color == "" || !ok { // cut off, in a very narrow terminal
		return line
	}
	return color + state.String() + plain + rest
}
