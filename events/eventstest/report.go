package eventstest

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// maxListed is the number of events in the report of a failed expectation.
const maxListed = 20

// missed reports that no event is left for m. It shows the closest event and lists all.
func missed(m matcher, recorded []Event) string {
	var b strings.Builder
	matching := slices.IndexFunc(recorded, m.matches)
	if matching >= 0 {
		b.WriteString("eventstest: too few events\n")
	} else {
		b.WriteString("eventstest: no such event\n")
	}
	fmt.Fprintf(&b, "  want: %v\n", m)
	if len(recorded) == 0 {
		b.WriteString("  no event was recorded")
		return b.String()
	}
	if matching < 0 {
		if at, differ := closest(m, recorded); at >= 0 {
			fmt.Fprintf(&b, "  closest is #%d, which differs in\n", at+1)
			width := 0
			for _, d := range differ {
				width = max(width, len(d.field))
			}
			for _, d := range differ {
				fmt.Fprintf(&b, "    %-*s  want: %s\n    %-*s   got: %s\n", width, d.field, d.want, width, "", d.got)
			}
		}
	}
	fmt.Fprintf(&b, "  recorded (%d):\n", len(recorded))
	list(&b, recorded, nil)
	return strings.TrimRight(b.String(), "\n")
}

// outOfOrder reports that no event that matches m follows the one that matches before.
func outOfOrder(before, m matcher, recorded []Event) string {
	var b strings.Builder
	fmt.Fprintf(&b, "eventstest: events are not in order\n  want: %v\n  after: %v\n  recorded (%d):\n", m, before, len(recorded))
	list(&b, recorded, nil)
	return strings.TrimRight(b.String(), "\n")
}

// unexpected reports the events with these indexes, which should not exist.
func unexpected(what string, recorded []Event, indexes []int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "eventstest: unexpected events\n  %s\n  recorded (%d of %d):\n", what, len(indexes), len(recorded))
	list(&b, recorded, indexes)
	return strings.TrimRight(b.String(), "\n")
}

// closest returns the index of the event that differs from m in the fewest fields, and
// the differences. It prefers later events, and returns -1 if every event differs in all
// fields.
func closest(m matcher, recorded []Event) (at int, differ []difference) {
	at = -1
	best := len(m)
	for i := len(recorded) - 1; i >= 0; i-- {
		if d := m.differences(recorded[i]); len(d) < best {
			at, best, differ = i, len(d), d
		}
	}
	return at, differ
}

// list writes the events with these indexes, or all events if indexes is nil.
func list(b *strings.Builder, recorded []Event, indexes []int) {
	if indexes == nil {
		indexes = make([]int, len(recorded))
		for i := range indexes {
			indexes[i] = i
		}
	}
	for n, i := range indexes {
		if n == maxListed {
			fmt.Fprintf(b, "    and %d more\n", len(indexes)-n)
			return
		}
		fmt.Fprintf(b, "    #%d %s %v\n", i+1, recorded[i].Time.Format(time.TimeOnly), recorded[i])
	}
}
