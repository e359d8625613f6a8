package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/eventseries/eventseries/series"
)

// at returns a series after a number of seconds.
func at(second int, state series.State, count int32) series.Series {
	first := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return series.Series{State: state, Count: count, First: first, Last: first.Add(time.Duration(second) * time.Second)}
}

func TestLifecycle(t *testing.T) {
	singleton, ongoing := at(0, series.Singleton, 1), at(1, series.Ongoing, 2)
	heartbeat, finished := at(7, series.Ongoing, 70), at(9, series.Finished, 90)
	for name, test := range map[string]struct {
		observed []series.Series
		steps    []step
		history  string
		problems map[int][]string // for numbers of emitted occurrences
	}{
		"singleton": {
			observed: []series.Series{singleton},
			steps:    []step{stepCreated},
			history:  "Singleton",
			problems: map[int][]string{
				1:  nil,
				90: {"never observed as Ongoing", "never observed as Finished", "no heartbeat", "emitted 90 times, but the count on the server is 1"},
			},
		},
		"series": {
			observed: []series.Series{singleton, ongoing, heartbeat, heartbeat, finished},
			steps:    []step{stepCreated, stepSeries, stepHeartbeat, stepHeartbeat, stepFinished},
			history:  "Singleton → Ongoing → 2 heartbeats → Finished",
			problems: map[int][]string{
				90:   nil,
				1234: {"emitted 1,234 times, but the count on the server is 90"},
			},
		},
		"unexpected series": {
			observed: []series.Series{singleton, ongoing},
			steps:    []step{stepCreated, stepSeries},
			history:  "Singleton → Ongoing → 0 heartbeats",
			problems: map[int][]string{1: {"unexpected state Ongoing", "emitted 1 time, but the count on the server is 2"}},
		},
		"never a singleton": {
			observed: []series.Series{ongoing, heartbeat, finished},
			steps:    []step{stepCreated, stepHeartbeat, stepFinished},
			history:  "Ongoing → 1 heartbeat → Finished",
			problems: map[int][]string{90: {"never observed as Singleton"}},
		},
		"no heartbeat": {
			observed: []series.Series{singleton, ongoing, finished},
			steps:    []step{stepCreated, stepSeries, stepFinished},
			history:  "Singleton → Ongoing → 0 heartbeats → Finished",
			problems: map[int][]string{90: {"no heartbeat"}},
		},
		"never finished": {
			observed: []series.Series{singleton, ongoing, heartbeat},
			steps:    []step{stepCreated, stepSeries, stepHeartbeat},
			history:  "Singleton → Ongoing → 1 heartbeat",
			problems: map[int][]string{70: {"never observed as Finished"}},
		},
		"abandoned": {
			observed: []series.Series{singleton, ongoing, heartbeat, at(9, series.Unknown, 90)},
			steps:    []step{stepCreated, stepSeries, stepHeartbeat, stepWrong},
			history:  "Singleton → Ongoing → 1 heartbeat → Unknown",
			problems: map[int][]string{90: {"the state changed from Ongoing to Unknown", "never observed as Finished", "unexpected state Unknown"}},
		},
		"count and time decrease": {
			observed: []series.Series{singleton, heartbeat, ongoing, finished},
			steps:    []step{stepCreated, stepSeries, stepHeartbeat, stepFinished},
			history:  "Singleton → Ongoing → 1 heartbeat → Finished",
			problems: map[int][]string{90: {"the count decreased from 70 to 2", "the time of the last occurrence went back by 6s"}},
		},
		"written after it finished": {
			observed: []series.Series{singleton, ongoing, heartbeat, finished, finished},
			steps:    []step{stepCreated, stepSeries, stepHeartbeat, stepFinished, stepWrong},
			history:  "Singleton → Ongoing → 1 heartbeat → Finished",
			problems: map[int][]string{90: {"the state changed from Finished to Finished"}},
		},
	} {
		var l lifecycle
		var steps []step
		for _, s := range test.observed {
			steps = append(steps, l.advance(s))
		}
		assert.Equal(t, test.steps, steps, name)
		assert.Equal(t, test.history, l.history(), name)
		for emitted, problems := range test.problems {
			assert.Equal(t, problems, l.problems(emitted), name)
		}
	}
}
