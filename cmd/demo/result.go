package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/eventseries/eventseries/events"
)

// errWrong says that the demo has found something that should not be.
var errWrong = errors.New("FAILED")

// result is what the demo has found.
type result struct {
	verdicts []verdict
	emitted  int    // by the controllers
	takenIn  uint64 // by the recorder
	dropped  map[events.DropReason]uint64
	calls    calls
}

// err returns nil if all is as it should be.
func (r *result) err() error {
	wrong := 0
	for _, v := range r.verdicts {
		if len(v.problems) > 0 {
			wrong++
		}
	}
	var problems []string
	if wrong > 0 {
		problems = append(problems, fmt.Sprintf("%d of %s not as they should be", wrong, plural(len(r.verdicts), "Event")))
	}
	if len(r.verdicts) == 0 {
		problems = append(problems, "no Event was seen")
	}
	if r.takenIn != uint64(r.emitted) {
		problems = append(problems, fmt.Sprintf("the controllers emitted %s, the recorder took in %s",
			plural(r.emitted, "occurrence"), thousands(int(r.takenIn))))
	}
	for _, reason := range slices.Sorted(maps.Keys(r.dropped)) {
		problems = append(problems, fmt.Sprintf("%s dropped: %s", plural(int(r.dropped[reason]), "occurrence"), reason))
	}
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", errWrong, strings.Join(problems, "; "))
}

// String tells the result of each Event, and of all.
func (r *result) String() string {
	var text strings.Builder
	text.WriteString("Each Event, its count on the server of what was emitted, and what the server showed of its life:\n\n")
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
	fmt.Fprintf(&text, "%s cost %s; one write for each would have cost %s.\n",
		plural(r.emitted, "occurrence"), plural(r.calls.total(), "API call"), thousands(r.emitted))
	if r.err() == nil {
		text.WriteString("OK: each Event went through all its states, and each count on the server is right.\n")
	}
	return text.String()
}
