package tracker

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"

	"github.com/eventseries/eventseries/series"
)

// TestTransitions checks every cell of the transition table in the package
// documentation: each line of testdata/transitions.txt is a row.
//
// The table is generated: -rewrite writes it.
func TestTransitions(t *testing.T) {
	missing := possible()
	rows := map[string][][]string{}
	golden(t, "testdata/transitions.txt", func(script string) string {
		var cells []string
		from := ""
		for outcome := range Outcomes {
			w, write := prepare(t, script)
			from = situation(write.entry)
			var event *eventsv1.Event
			if write.WritesSeries() {
				event = write.Series.Event()
				event.ResourceVersion = "1000"
			}
			w.tracker.Apply(write, Result{Outcome: outcome, Event: event, Reason: "Malformed"}, start)
			checkInvariants(t, w.tracker, 1)
			to := situation(write.entry)
			if to == from {
				to = "same"
			}
			cells = append(cells, to)
		}
		delete(missing, strings.TrimPrefix(from, "closing "))
		rows[from] = append(rows[from], cells)
		return from + " -> " + strings.Join(cells, ", ")
	})
	assert.Empty(t, missing, "no line begins with these")

	source, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(source), "//\tphase: write")
	_, after, ended := strings.Cut(rest, "//\n// # The write protocol")
	require.True(t, found && ended, "doc.go has no table")
	const title = "//\tphase: write               what follows from which responses; others change nothing\n"
	want := before + title + documented(rows) + "//\n// # The write protocol" + after
	if *rewrite {
		require.NoError(t, os.WriteFile("doc.go", []byte(want), 0o666))
		return
	}
	assert.Equal(t, want, string(source), "go test -run TestTransitions -rewrite writes the table")
}

// documented returns what doc.go says about each write: what follows from each outcome that
// changes something. cells are the situations that follow, in the order of the outcomes,
// for each script that puts this write in flight.
func documented(cells map[string][][]string) string {
	var text strings.Builder
	for _, from := range slices.Sorted(maps.Keys(cells)) {
		outcomes, order := map[string][]string{}, []string{}
		for outcome := range Outcomes {
			var to []string
			for _, row := range cells[from] {
				if cell := row[outcome]; !slices.Contains(to, cell) {
					to = append(to, cell)
				}
			}
			cell := strings.Join(to, " or ")
			if cell == "same" {
				continue
			}
			if outcomes[cell] == nil {
				order = append(order, cell)
			}
			outcomes[cell] = append(outcomes[cell], outcome.String())
		}
		for i, cell := range order {
			order[i] = strings.Join(outcomes[cell], ", ") + " → " + cell
		}
		fmt.Fprintf(&text, "//\t%-26s %s\n", from, strings.Join(order, "; "))
	}
	return text.String()
}

// situation returns the phase of an entry and its next write.
func situation(e *Entry) string {
	text := spot{"", e.life, e.spec.state, e.phase, e.need()}.String()
	return strings.TrimSpace(strings.Replace(text, " "+e.spec.state.String(), "", 1))
}

// prepare returns the write that a script puts in flight. All lines are at the same
// time, if they do not say otherwise.
func prepare(t *testing.T, script string) (*world, *Write) {
	t.Helper()
	w := newWorld(t, Options{Scope: SameController}, newServer(t))
	for line := range strings.SplitSeq(script, "; ") {
		now, command := "0s", line
		if first, rest, _ := strings.Cut(line, " "); strings.ContainsAny(first[:1], "-0123456789") {
			now, command = first, rest
		}
		runCommand(t, pair{w: w}, parse(t, time.ParseDuration, now), strings.Fields(command))
	}
	require.Len(t, w.inFlight, 1, script)
	for _, write := range w.inFlight {
		return w, write
	}
	panic("unreachable")
}

// possible returns each phase with each kind of write that it can have.
func possible() map[string]bool {
	found := map[string]bool{}
	for bits := range 1 << 6 {
		is := func(bit int) bool { return bits>>bit&1 == 1 }
		for p := range phaseNames {
			for _, state := range []series.State{series.Singleton, series.Ongoing, series.Finished} {
				e := &Entry{phase: phase(p), rare: &rare{claim: claim{step: Look}}, spec: spec{progress: progress{state: state}}}
				e.status = status{progress: progress{state: series.Singleton}, due: dueLook}
				if is(0) {
					e.status.count = 1
				}
				if is(1) {
					e.status.due |= dueBeat
				}
				if is(2) {
					e.status.due |= dueCount
				}
				if is(3) {
					e.rare.claim.step = Close
				}
				if is(4) {
					e.status.state = series.Ongoing
				}
				if is(5) {
					e.status.due = e.status.due&^dueLook | dueLead
				}
				if kind := e.need(); kind != none && e.phase != refused { // see Entry.tryAgain
					found[e.phase.String()+": "+kind.String()] = true
				}
			}
		}
	}
	return found
}
