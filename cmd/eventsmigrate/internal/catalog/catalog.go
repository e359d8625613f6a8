// Package catalog lists the events that a program can emit.
//
// It finds each call of a recorder in the SSA form of the program, and follows the arguments to
// what decides about them: constants, and the types of objects. It goes through variables,
// fields, results, and parameters. A function that passes its parameters to a recorder is a wrapper: each of
// its callers is an event of its own. Code that the program cannot reach does not count.
//
// # Guarantees
//
//   - Each call of a recorder in the packages is in the catalogue. What the package cannot
//     follow is in [Catalog.Open], with its place.
//   - The catalogue contains no line numbers unless the caller asks for them, so that it
//     changes only if an event changes, appears, moves to another file, or goes away.
//
// # Limitations
//
//   - It does not know in which order functions run: all assignments of a field or of a shared
//     variable count. A type that the program mentions counts with all its methods.
//   - What calls a function that is a value comes from variable type analysis, which does not
//     follow values through packages without syntax.
//   - It follows values through lists and maps that a literal makes and the same variable
//     changes, and not through channels, nor through packages without syntax. Fields with a
//     tag come from outside, so their values are open.
package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Catalog lists the events of a program.
type Catalog struct {
	Events []Event `json:"events"`
	Open   []Open  `json:"open,omitempty"` // what only the running program knows
}

// Event is what occurrences have in common that a user reads, counts, and searches for.
// Where a field has several values, only the running program knows which of them it takes.
type Event struct {
	Regarding []string `json:"regarding"`         // kinds; [Any] if it can be an object of any kind
	Related   []string `json:"related,omitempty"` // kinds; empty if there is none
	Types     []string `json:"types"`
	Reason    string   `json:"reason"`             // a format, if it is variable
	Actions   []string `json:"actions,omitempty"`  // empty for the legacy recorder
	Notes     []string `json:"notes"`              // formats, as for fmt.Sprintf
	Variable  bool     `json:"variable,omitempty"` // the reason is
	Places    []Place  `json:"places"`
}

// Any is the kind of an object that can have any kind, and the value of a field that can
// have any value.
const Any = "*"

// Place is where a program emits an event.
type Place struct {
	File     string `json:"file"`
	Function string `json:"function,omitempty"`
	Line     int    `json:"line,omitempty"`
}

// Open is a field of an event that the catalogue does not know.
type Open struct {
	Place
	Field      string `json:"field"`
	Expression string `json:"expression"`
	Why        string `json:"why"`
}

func (p Place) compare(o Place) int {
	return cmp.Or(strings.Compare(p.File, o.File), strings.Compare(p.Function, o.Function), p.Line-o.Line)
}

func (o Open) compare(x Open) int {
	return cmp.Or(o.Place.compare(x.Place), strings.Compare(o.Field, x.Field), strings.Compare(o.Expression, x.Expression),
		strings.Compare(o.Why, x.Why))
}

// compare orders events by what a user searches for.
func (e Event) compare(o Event) int {
	return cmp.Or(
		slices.Compare(e.Regarding, o.Regarding), strings.Compare(e.Reason, o.Reason), slices.Compare(e.Types, o.Types),
		slices.Compare(e.Related, o.Related), slices.Compare(e.Actions, o.Actions), slices.Compare(e.Notes, o.Notes),
	)
}

// sorted merges events that differ only in notes and places, or only in the object, and
// sorts everything.
func (c *Catalog) sorted() *Catalog {
	c.merge(
		func(e *Event) []any { return []any{e.Regarding, e.Reason, e.Types, e.Related, e.Actions} },
		func(e, o *Event) { e.Notes, e.Places = append(e.Notes, o.Notes...), append(e.Places, o.Places...) },
	)
	for i := range c.Events {
		e := &c.Events[i]
		e.Notes, e.Places = unique(e.Notes, strings.Compare), unique(e.Places, Place.compare)
	}
	c.merge(
		func(e *Event) []any { return []any{e.Reason, e.Types, e.Related, e.Actions, e.Notes, e.Places} },
		func(e, o *Event) { e.Regarding = append(e.Regarding, o.Regarding...) },
	)
	for i := range c.Events {
		c.Events[i].Regarding = unique(c.Events[i].Regarding, strings.Compare)
	}
	slices.SortFunc(c.Events, Event.compare)
	c.Open = unique(c.Open, Open.compare)
	return c
}

// merge joins the events with the same key.
func (c *Catalog) merge(key func(*Event) []any, join func(e, o *Event)) {
	index := map[string]int{}
	list := []Event{}
	for _, e := range c.Events {
		k := fmt.Sprintf("%q", key(&e))
		if i, ok := index[k]; ok {
			join(&list[i], &e)
			continue
		}
		index[k] = len(list)
		list = append(list, e)
	}
	c.Events = list
}

func unique[T any](list []T, compare func(a, b T) int) []T {
	slices.SortFunc(list, compare)
	return slices.CompactFunc(list, func(a, b T) bool { return compare(a, b) == 0 })
}
