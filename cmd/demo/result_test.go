package main

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/eventseries/eventseries/events"
)

func TestResult(t *testing.T) {
	const heading = "For each Event: the count on the server, the number of emitted occurrences, and the states:\n\n"
	once := verdict{subject: pulled, history: "Singleton", count: 1, emitted: 1}
	right := &result{
		verdicts: []verdict{
			{subject: crashing, history: "Singleton → Ongoing → 1 heartbeat → Finished", count: 1290, emitted: 1290}, once,
		},
		emitted:  1291,
		accepted: 1291,
		calls:    calls{creates: 2, patches: 3},
	}
	assert.NoError(t, right.err())
	assert.Equal(t, heading+`ok     Pod/checkout BackOff
       1,290 of 1,290: Singleton → Ongoing → 1 heartbeat → Finished
ok     Pod/checkout Pulled
       1 of 1: Singleton

1,291 occurrences took 5 API calls; one write per occurrence would have taken 1,291.
OK: every Event went through all of its states, and every count on the server is correct.
`, right.String())

	wrong := &result{
		verdicts: []verdict{
			{subject: crashing, history: "Singleton → Ongoing → 0 heartbeats", count: 2, emitted: 90, problems: []string{"no heartbeat", "never observed as Finished"}}, once,
		},
		emitted:  91,
		accepted: 90,
		dropped:  map[events.DropReason]uint64{events.DropRejected: 1, events.DropTableFull: 3},
		calls:    calls{creates: 2, patches: 1},
	}
	assert.ErrorIs(t, wrong.err(), errWrong)
	assert.EqualError(t, wrong.err(), "FAILED: 1 of 2 Events with problems; "+
		"the controllers emitted 91 occurrences, but the recorder accepted 90; "+
		"1 occurrence dropped (Rejected); 3 occurrences dropped (TableFull)")
	assert.Equal(t, heading+`WRONG  Pod/checkout BackOff
       2 of 90: Singleton → Ongoing → 0 heartbeats
       - no heartbeat
       - never observed as Finished
ok     Pod/checkout Pulled
       1 of 1: Singleton

91 occurrences took 3 API calls; one write per occurrence would have taken 91.
`, wrong.String())
	assert.EqualError(t, (&result{}).err(), "FAILED: no Events observed")
}
