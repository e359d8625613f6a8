package main

import (
	"cmp"
	"fmt"
	"go/token"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/eventseries/eventseries/cmd/eventsmigrate/internal/driver"
	"github.com/eventseries/eventseries/cmd/eventsmigrate/internal/move"
)

// rules are the rows of the table, in this order.
var rules = []string{
	"types", "Event", "Eventf", "AnnotatedEventf", "action", "related", "GetEventRecorderFor", "manager", "messages", "recorder", "shutdown", "tests", "RBAC", "series", "lint",
}

// harm orders the findings: what makes series impossible comes first.
var harm = map[string]int{"series": -4, "recorder": -4, "manager": -4, "messages": -3, "shutdown": -2, "RBAC": -1, "related": 1, "lint": 2}

// line of the report.
type line struct {
	pos    token.Position
	rule   string
	status move.Status
	text   string
	cause  token.Position
	why    string // the same for all places of a cause
}

// report prints what moved, what stays, and what a person must decide.
func report(w io.Writer, cwd string, r *driver.Result, f flags) {
	lines := collect(r)
	count := map[string]map[move.Status]int{}
	for _, l := range lines {
		if count[l.rule] == nil {
			count[l.rule] = map[move.Status]int{}
		}
		count[l.rule][l.status]++
	}
	moved := "to move"
	if f.fix {
		moved = "moved"
	}
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintf(t, "rule\t%s\tleft\tto decide\n", moved)
	for _, rule := range rules {
		if c := count[rule]; c != nil {
			fmt.Fprintf(t, "%s\t%d\t%d\t%d\n", rule, c[move.Moved], c[move.Left], c[move.Decide])
		}
	}
	_ = t.Flush()
	calls := r.Plan.Calls
	if calls.All > 0 {
		fmt.Fprintf(w, "\n%d of %d calls emit series, %d %s, %d files\n", calls.Series, calls.All, calls.Moved, moved, len(r.Changed))
	}
	if n := r.Plan.Others; n > 0 {
		fmt.Fprintf(w, "\nNo series: %d calls still use the recorder of client-go; see the rules manager and recorder\n", n)
	}
	section := func(title string, s move.Status) {
		var list []line
		for _, l := range lines {
			if l.status == s {
				list = append(list, l)
			}
		}
		if list = perCause(list); len(list) == 0 {
			return
		}
		fmt.Fprintf(w, "\n%s:\n", title)
		for _, l := range list {
			text := strings.ReplaceAll(l.text, "\n", "\n      ")
			fmt.Fprintf(w, "  %s:%d: %s: %s\n", relative(cwd, l.pos.Filename), l.pos.Line, l.rule, text)
		}
	}
	if f.verbose {
		section(strings.ToUpper(moved[:1])+moved[1:], move.Moved)
	}
	section("To decide", move.Decide)
	left := "Left as it is"
	if calls.Left > 0 && calls.Series == calls.All {
		left += "; these calls emit series, too"
	}
	section(left, move.Left)
}

func collect(r *driver.Result) (lines []line) {
	for _, i := range r.Plan.Items {
		lines = append(lines, line{r.Fset.Position(i.Pos), i.Rule, i.Status, i.Text, r.Fset.Position(i.Cause.Pos), i.Cause.Text})
	}
	for _, d := range r.Missed {
		lines = append(lines, line{pos: d.Pos, rule: d.Rule, status: move.Left, text: d.Text})
	}
	for _, d := range slices.Concat(r.Manifests, r.Lint) {
		lines = append(lines, line{pos: d.Pos, rule: d.Rule, status: move.Decide, text: d.Text})
	}
	slices.SortStableFunc(lines, func(a, b line) int {
		return cmp.Or(harm[a.rule]-harm[b.rule], strings.Compare(a.pos.Filename, b.pos.Filename), a.pos.Line-b.pos.Line)
	})
	return lines
}

// perCause replaces the places that stay for the same cause by a line, and those in generated
// files by a line for each package.
func perCause(lines []line) (list []line) {
	type key struct{ where, why string }
	index, count := map[key]int{}, map[key]int{}
	for _, l := range lines {
		k := key{l.cause.String(), l.why}
		text := "%d places stay: " + l.why
		if strings.Contains(l.text, move.Generated) {
			k = key{filepath.Dir(l.pos.Filename), move.Generated}
			text, l.cause = "%d places in this package: "+move.Generated, l.pos
		}
		count[k]++
		switch n := count[k]; {
		case k.why == "" || n == 1:
			index[k] = len(list)
			list = append(list, l)
		default:
			first := &list[index[k]]
			if first.text = fmt.Sprintf(text, n); l.cause.IsValid() && n == 2 && k.why != move.Generated {
				first.pos = l.cause
			}
		}
	}
	return list
}
