package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/eventseries/eventseries/series"
)

// size is the size of a terminal. Zero means no limit.
type size struct{ width, height int }

// Terminal color sequences.
const (
	bold   = "\x1b[1m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	cyan   = "\x1b[36m"
	plain  = "\x1b[0m"
)

const (
	// wide is the minimum width of a table with all columns.
	wide = 110
	// narrowObject is the maximum width of an object's name in a narrower table.
	narrowObject = 20
)

// table formats a snapshot for a terminal, and truncates it to the size.
func table(s snapshot, fit size, colored bool) string {
	rows := s.rows
	// Two lines precede the heading, four follow the rows, and the cursor is on
	// another one.
	const others = 8
	omitted := 0
	if room := fit.height - others; fit.height > 0 && len(rows) > room {
		room = max(room-1, 0)
		omitted = len(rows) - room
		rows = rows[:room]
	}

	lines := []string{fmt.Sprintf("%5s  %s", duration.HumanDuration(s.elapsed), s.phase), ""}
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

// columns formats rows as columns with a heading. A narrow table omits or truncates
// columns to make room for the note.
func columns(rows []row, narrow bool) []string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	line := func(state, count, emitted, age, namespace, object, reason, note string) {
		fmt.Fprintf(w, "%-9s\t%7s\t", state, count)
		if narrow {
			fmt.Fprintf(w, "%5s\t%s\t", age, cut(object, narrowObject))
		} else {
			fmt.Fprintf(w, "%7s\t%5s\t%s\t%s\t", emitted, age, namespace, object)
		}
		fmt.Fprintf(w, "%s\t%s\n", reason, note)
	}
	line("STATE", "COUNT", "EMITTED", "AGE", "NAMESPACE", "OBJECT", "REASON", "NOTE")
	for _, r := range rows {
		line(r.state.String(), thousands(r.count), thousands(r.emitted), duration.HumanDuration(r.age),
			r.namespace, r.subject.regarding.String(), r.subject.reason, r.note)
	}
	_ = w.Flush() // a strings.Builder returns no errors
	return strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
}

// totals compares the number of occurrences with the number of API calls.
func totals(s snapshot) []string {
	return []string{
		fmt.Sprintf("%9s occurrences emitted", thousands(s.emitted)),
		fmt.Sprintf("%9s API calls by this recorder (%s, %s, %s)", thousands(s.calls.total()),
			plural(s.calls.creates, "create"), patches(s.calls.patches), plural(s.calls.others, "list")),
		fmt.Sprintf("%9s API calls with one write per occurrence%s", thousands(s.emitted), times(s)),
	}
}

func patches(n int) string {
	if n == 1 {
		return "1 patch"
	}
	return thousands(n) + " patches"
}

// times compares one write per occurrence with the calls of the recorder.
func times(s snapshot) string {
	if s.calls.total() == 0 {
		return ""
	}
	return fmt.Sprintf(", %s times as many", thousands(s.emitted/s.calls.total()))
}

// colorState colors the state at the beginning of a line.
func colorState(line string, state series.State) string {
	color := map[series.State]string{
		series.Singleton: cyan,
		series.Ongoing:   yellow,
		series.Finished:  green,
	}[state]
	rest, ok := strings.CutPrefix(line, state.String())
	if color == "" || !ok { // truncated, in a very narrow terminal
		return line
	}
	return color + state.String() + plain + rest
}
