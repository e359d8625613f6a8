package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/eventseries/eventseries/events"
)

// errWrong means that the result of the demo is wrong.
var errWrong = errors.New("FAILED")

// result is the result of the demo.
type result struct {
	verdicts []verdict
	emitted  int    // by the controllers
	accepted uint64 // by the recorder
	dropped  map[events.DropReason]uint64
	calls    calls
}

// err returns nil if the result is correct, or errWrong with the problems.
func (r *result) err() error {
	wrong := 0
	for _, v := range r.verdicts {
		if len(v.problems) > 0 {
			wrong++
		}
	}
	var problems []string
	if wrong > 0 {
		problems = append(problems, fmt.Sprintf("%d of %s with problems", wrong, plural(len(r.verdicts), "Event")))
	}
	if len(r.verdicts) == 0 {
		problems = append(problems, "no Events observed")
	}
	if r.accepted != uint64(r.emitted) {
		problems = append(problems, fmt.Sprintf("the controllers emitted %s, but the recorder accepted %s",
			plural(r.emitted, "occurrence"), thousands(int(r.accepted))))
	}
	for _, reason := range slices.Sorted(maps.Keys(r.dropped)) {
		problems = append(problems, fmt.Sprintf("%s dropped (%s)", plural(int(r.dropped[reason]), "occurrence"), reason))
	}
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", errWrong, strings.Join(problems, "; "))
}

// String describes the result for people.
func (r *result) String() string {
	var text strings.Builder
	text.WriteString("For each Event: the count on the server, the number of emitted occurrences, and the states:\n\n")
	for _, v := range r.verdicts {
		word := "ok"
		if len(v.problems) > 0 {
			word = "WRONG"
		}
		fmt.Fprintf(&text, "%-6s %v\n", word, v.subject)
		fmt.Fprintf(&text, "       %s of %s: %s\n", thousands(v.count), thousands(v.emitted), v.history)
		for _, problem := range v.problems {
			fmt.Fprintf(&text, "       - %s\n", problem)
		}
	}
	text.WriteString("\n")
	fmt.Fprintf(&text, "%s took %s; one write per occurrence would have taken %s.\n",
		plural(r.emitted, "occurrence"), plural(r.calls.total(), "API call"), thousands(r.emitted))
	if r.err() == nil {
		text.WriteString("OK: every Event went through all of its states, and every count on the server is correct.\n")
	}
	return text.String()
}
