package tracker

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"

	"github.com/eventseries/eventseries/series"
)

// cell is a row of the transition table: what becomes of an entry whose write has
// each outcome. The script puts a write of a/1 in flight.
type cell struct {
	from   string
	script string
	to     [Outcomes]string // written, pushedBack, troubled, denied, gone, changed, taken, refused
}

// TestTransitions checks every cell of the transition table in the package
// documentation.
func TestTransitions(t *testing.T) {
	covered := map[string]bool{}
	for _, tt := range cells {
		covered[strings.TrimPrefix(tt.from, "closing ")] = true
		t.Run(tt.from, func(t *testing.T) {
			for outcome, want := range tt.to {
				w, write := prepare(t, tt.script)
				require.Equal(t, tt.from, situation(write.entry))
				var event *eventsv1.Event
				if write.WritesSeries() {
					event = write.Series.Event()
					event.ResourceVersion = "1000"
				}
				w.tracker.Apply(write, Result{Outcome: Outcome(outcome), Event: event, Reason: "Malformed"}, start)
				checkInvariants(t, w.tracker, 1)
				got := situation(write.entry)
				if got == tt.from {
					got = "same"
				}
				assert.Equal(t, want, got, Outcome(outcome))
			}
		})
	}
	for from := range possible() {
		assert.True(t, covered[from], "no cell for %s", from)
	}
}

// situation returns the phase of an entry and its next write.
func situation(e *Entry) string {
	text := place{"", e.life, e.spec.state, e.phase, e.need()}.String()
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
				e := &Entry{phase: phase(p), extra: &extra{claim: claim{step: Look}}, spec: spec{state: state}}
				e.status = status{state: series.Singleton, existed: is(0), beatDue: is(1), flush: is(2), signpost: true}
				if is(3) {
					e.extra.claim.step = Close
				}
				if is(4) {
					e.status.state = series.Ongoing
				}
				if is(5) {
					e.status.baseOwner = ownerUs
				}
				if kind := e.need(); kind != none {
					found[e.phase.String()+": "+kind.String()] = true
				}
			}
		}
	}
	return found
}

const (
	ongoing    = "see a x2; write a/1; "
	uniqueName = "stand a base Finished x2 -20m -10m; see a x2; write a/1; write a/1; write a/1; "
	deadEvent  = "stand a base Ongoing x7 -3h -1h; see a; write a/1; "
)

// What several kinds of writes have in common.
var (
	created       = [Outcomes]string{"live", "same", "same", "same", "same", "same", "claiming: look", "refused"}
	patched       = [Outcomes]string{"live", "same", "same", "same", "unwritten: recreate", "conflicted: look", "claiming: look", "refused"}
	aboutBase     = [Outcomes]string{"live", "same", "same", "same", "live", "same", "same", "live"}
	endedInFlight = [Outcomes]string{"same", "same", "same", "same", "closing unwritten: recreate", "closing conflicted: look", "closing claiming: look", "forgotten"}
)

var cells = []cell{
	{"unwritten: create", "see a; begin a/1", created},
	{"unwritten: recreate", ongoing + "beat a/1; begin a/1; gone a/1; begin a/1", created},
	{"claiming: look", deadEvent + "begin a/1", [Outcomes]string{
		"unwritten: create", "same", "same", "same", "unwritten: create", "same", "unwritten: create", "same",
	}},
	{"claiming: close", deadEvent + "write a/1; begin a/1", [Outcomes]string{
		"unwritten: create", "same", "same", "same", "unwritten: create", "claiming: look", "unwritten: create", "unwritten: create",
	}},
	{"live: series", "see a; write a/1; see a; begin a/1", patched},
	{"live: heartbeat", ongoing + "beat a/1; begin a/1", patched},
	{"closing live: finish", ongoing + "6m expire a/1; begin a/1", [Outcomes]string{
		"forgotten", "same", "same", "same", "closing unwritten: recreate", "closing conflicted: look", "closing claiming: look", "forgotten",
	}},
	{"live: flush", ongoing + "see a; flush; begin a/1", patched},
	{"live: look", uniqueName + "delete a base; beat a/1; write a/1; write a/1; beat a/1; write a/1; begin a/1", aboutBase},
	{"live: successor", uniqueName + "begin a/1", aboutBase},
	{"conflicted: look", ongoing + "meddle a base x3 Ongoing; beat a/1; write a/1; begin a/1", [Outcomes]string{
		"unwritten: recreate", "same", "same", "same", "unwritten: recreate", "same", "same", "same",
	}},
	{"refused: create", "see a; begin a/1; refuse a/1 Malformed; see a x2; beat a/1; begin a/1", [Outcomes]string{
		"live", "same", "same", "same", "unwritten: create", "same", "claiming: look", "refused",
	}},

	// An entry that is closing is forgotten when there is nothing to write.
	{"closing unwritten: create", "see a; 6m expire a/1; begin a/1", [Outcomes]string{
		"forgotten", "same", "same", "same", "same", "same", "closing claiming: look", "forgotten",
	}},
	{"closing claiming: look", deadEvent + "6m expire a/1; begin a/1", [Outcomes]string{
		"closing unwritten: create", "same", "same", "same", "closing unwritten: create", "same", "closing unwritten: create", "same",
	}},
	{"closing live: finish", "see a; write a/1; see a; begin a/1; 6m expire a/1", endedInFlight},
	{"closing live: finish", ongoing + "beat a/1; begin a/1; 6m expire a/1", endedInFlight},
	{"closing conflicted: look", ongoing + "meddle a base x3 Ongoing; 6m expire a/1; write a/1; begin a/1", [Outcomes]string{
		"closing unwritten: recreate", "same", "same", "same", "closing unwritten: recreate", "same", "same", "same",
	}},
	{"closing refused", "see a; begin a/1; refuse a/1 Malformed; see a x2; beat a/1; begin a/1; 6m expire a/1", [Outcomes]string{
		"closing live: finish", "forgotten", "forgotten", "forgotten", "closing unwritten: create", "forgotten", "closing claiming: look", "forgotten",
	}},

	// One that was restored and has not occurred since is forgotten when its Event is gone.
	{"live: heartbeat", "stand a base Ongoing x7 -10m -1m; list; restore; beat a/1; begin a/1", [Outcomes]string{
		"live", "same", "same", "same", "forgotten", "conflicted: look", "claiming: look", "refused",
	}},
	{"conflicted: look", "stand a base Ongoing x7 -10m -1m; list; restore; meddle a base x3 Ongoing; beat a/1; write a/1; begin a/1", [Outcomes]string{
		"forgotten", "same", "same", "same", "forgotten", "same", "same", "same",
	}},

	// The third look that the server refuses is the last.
	{"claiming: look", deadEvent + "begin a/1; refuse a/1; begin a/1; refuse a/1; begin a/1", [Outcomes]string{
		"unwritten: create", "same", "same", "unwritten: create", "unwritten: create", "unwritten: create", "unwritten: create", "unwritten: create",
	}},
	{"conflicted: look", ongoing + "meddle a base x3 Ongoing; beat a/1; write a/1; begin a/1; refuse a/1; begin a/1; refuse a/1; begin a/1", [Outcomes]string{
		"unwritten: recreate", "same", "same", "same", "unwritten: recreate", "same", "same", "refused",
	}},
}
