package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/eventseries/eventseries/events"
)

func TestResult(t *testing.T) {
	r := &result{
		verdicts: []verdict{
			{subject: crashing, history: "Singleton → Ongoing → 1 heartbeat → Finished", count: 1290, emitted: 1290},
			{subject: pulled, history: "Singleton", count: 1, emitted: 1},
		},
		emitted: 1291,
		takenIn: 1291,
		calls:   calls{creates: 2, patches: 3},
	}
	require.NoError(t, r.err())
	assert.Equal(t, `Each Event, its count on the server of what was emitted, and what the server showed of its life:

ok     Pod/checkout BackOff
       1,290 of 1,290: Singleton → Ongoing → 1 heartbeat → Finished
ok     Pod/checkout Pulled
       1 of 1: Singleton

1,291 occurrences cost 5 API calls; one write for each would have cost 1,291.
OK: each Event went through all its states, and each count on the server is right.
`, r.String())
}

func TestResultThatIsWrong(t *testing.T) {
	r := &result{
		verdicts: []verdict{
			{subject: crashing, history: "Singleton → Ongoing → 0 heartbeats", count: 2, emitted: 90, problems: []string{"it had no heartbeat", "it was never seen as Finished"}},
			{subject: pulled, history: "Singleton", count: 1, emitted: 1},
		},
		emitted: 91,
		takenIn: 90,
		dropped: map[events.DropReason]uint64{events.DropRejected: 1, events.DropTableFull: 3},
		calls:   calls{creates: 2, patches: 1},
	}
	require.ErrorIs(t, r.err(), errWrong)
	require.EqualError(t, r.err(), "FAILED: 1 of 2 Events not as they should be; "+
		"the controllers emitted 91 occurrences, the recorder took in 90; "+
		"1 occurrence dropped: Rejected; 3 occurrences dropped: TableFull")
	assert.Equal(t, `Each Event, its count on the server of what was emitted, and what the server showed of its life:

WRONG  Pod/checkout BackOff
       2 of 90: Singleton → Ongoing → 0 heartbeats
       - it had no heartbeat
       - it was never seen as Finished
ok     Pod/checkout Pulled
       1 of 1: Singleton

91 occurrences cost 3 API calls; one write for each would have cost 91.
`, r.String())
}

func TestResultOfNothing(t *testing.T) {
	require.EqualError(t, (&result{}).err(), "FAILED: no Event was seen")
}
