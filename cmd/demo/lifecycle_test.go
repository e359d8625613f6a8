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
	var (
		singleton = at(0, series.Singleton, 1)
		ongoing   = at(1, series.Ongoing, 2)
		heartbeat = at(7, series.Ongoing, 70)
		finished  = at(9, series.Finished, 90)
	)
	for name, test := range map[string]struct {
		observed []series.Series
		emitted  int
		steps    []step
		history  string
		problems []string
	}{
		"singleton": {
			observed: []series.Series{singleton},
			emitted:  1,
			steps:    []step{stepCreated},
			history:  "Singleton",
		},
		"series": {
			observed: []series.Series{singleton, ongoing, heartbeat, heartbeat, finished},
			emitted:  90,
			steps:    []step{stepCreated, stepSeries, stepHeartbeat, stepHeartbeat, stepFinished},
			history:  "Singleton → Ongoing → 2 heartbeats → Finished",
		},
		"unexpected series": {
			observed: []series.Series{singleton, ongoing},
			emitted:  1,
			steps:    []step{stepCreated, stepSeries},
			history:  "Singleton → Ongoing → 0 heartbeats",
			problems: []string{"unexpected state Ongoing", "emitted 1 time, but the count on the server is 2"},
		},
		"never a singleton": {
			observed: []series.Series{ongoing, heartbeat, finished},
			emitted:  90,
			steps:    []step{stepCreated, stepHeartbeat, stepFinished},
			history:  "Ongoing → 1 heartbeat → Finished",
			problems: []string{"never observed as Singleton"},
		},
		"never a series": {
			observed: []series.Series{singleton},
			emitted:  90,
			steps:    []step{stepCreated},
			history:  "Singleton",
			problems: []string{"never observed as Ongoing", "never observed as Finished", "no heartbeat", "emitted 90 times, but the count on the server is 1"},
		},
		"no heartbeat": {
			observed: []series.Series{singleton, ongoing, finished},
			emitted:  90,
			steps:    []step{stepCreated, stepSeries, stepFinished},
			history:  "Singleton → Ongoing → 0 heartbeats → Finished",
			problems: []string{"no heartbeat"},
		},
		"never finished": {
			observed: []series.Series{singleton, ongoing, heartbeat},
			emitted:  70,
			steps:    []step{stepCreated, stepSeries, stepHeartbeat},
			history:  "Singleton → Ongoing → 1 heartbeat",
			problems: []string{"never observed as Finished"},
		},
		"lost occurrences": {
			observed: []series.Series{singleton, ongoing, heartbeat, finished},
			emitted:  1234,
			steps:    []step{stepCreated, stepSeries, stepHeartbeat, stepFinished},
			history:  "Singleton → Ongoing → 1 heartbeat → Finished",
			problems: []string{"emitted 1,234 times, but the count on the server is 90"},
		},
		"abandoned": {
			observed: []series.Series{singleton, ongoing, heartbeat, at(9, series.Unknown, 90)},
			emitted:  90,
			steps:    []step{stepCreated, stepSeries, stepHeartbeat, stepWrong},
			history:  "Singleton → Ongoing → 1 heartbeat → Unknown",
			problems: []string{"the state changed from Ongoing to Unknown", "never observed as Finished", "unexpected state Unknown"},
		},
		"count and time decrease": {
			observed: []series.Series{singleton, heartbeat, ongoing, finished},
			emitted:  90,
			steps:    []step{stepCreated, stepSeries, stepHeartbeat, stepFinished},
			history:  "Singleton → Ongoing → 1 heartbeat → Finished",
			problems: []string{"the count decreased from 70 to 2", "the time of the last occurrence went back by 6s"},
		},
		"written after it finished": {
			observed: []series.Series{singleton, ongoing, heartbeat, finished, finished},
			emitted:  90,
			steps:    []step{stepCreated, stepSeries, stepHeartbeat, stepFinished, stepWrong},
			history:  "Singleton → Ongoing → 1 heartbeat → Finished",
			problems: []string{"the state changed from Finished to Finished"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var l lifecycle
			var steps []step
			for _, s := range test.observed {
				steps = append(steps, l.advance(s))
			}
			assert.Equal(t, test.steps, steps)
			assert.Equal(t, test.history, l.history())
			assert.Equal(t, test.problems, l.problems(test.emitted))
		})
	}
}
