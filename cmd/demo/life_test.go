package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/eventseries/eventseries/series"
)

// at returns a series at a second of its life.
func at(second int, state series.State, count int32) series.Series {
	first := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return series.Series{State: state, Count: count, First: first, Last: first.Add(time.Duration(second) * time.Second)}
}

func TestLife(t *testing.T) {
	var (
		singleton = at(0, series.Singleton, 1)
		ongoing   = at(1, series.Ongoing, 2)
		heartbeat = at(7, series.Ongoing, 70)
		finished  = at(9, series.Finished, 90)
	)
	for name, test := range map[string]struct {
		seen     []series.Series
		emitted  int
		steps    []step
		history  string
		problems []string
	}{
		"singleton": {
			seen:    []series.Series{singleton},
			emitted: 1,
			steps:   []step{stepCreated},
			history: "Singleton",
		},
		"series": {
			seen:    []series.Series{singleton, ongoing, heartbeat, heartbeat, finished},
			emitted: 90,
			steps:   []step{stepCreated, stepSeries, stepHeartbeat, stepHeartbeat, stepFinished},
			history: "Singleton → Ongoing → 2 heartbeats → Finished",
		},
		"singleton that became a series": {
			seen:     []series.Series{singleton, ongoing},
			emitted:  1,
			steps:    []step{stepCreated, stepSeries},
			history:  "Singleton → Ongoing → 0 heartbeats",
			problems: []string{"it became Ongoing", "it was emitted 1 time, but the server counts 2"},
		},
		"never a singleton": {
			seen:     []series.Series{ongoing, heartbeat, finished},
			emitted:  90,
			steps:    []step{stepCreated, stepHeartbeat, stepFinished},
			history:  "Ongoing → 1 heartbeat → Finished",
			problems: []string{"it was never seen as Singleton"},
		},
		"never a series": {
			seen:     []series.Series{singleton},
			emitted:  90,
			steps:    []step{stepCreated},
			history:  "Singleton",
			problems: []string{"it was never seen as Ongoing", "it was never seen as Finished", "it had no heartbeat", "it was emitted 90 times, but the server counts 1"},
		},
		"no heartbeat": {
			seen:     []series.Series{singleton, ongoing, finished},
			emitted:  90,
			steps:    []step{stepCreated, stepSeries, stepFinished},
			history:  "Singleton → Ongoing → 0 heartbeats → Finished",
			problems: []string{"it had no heartbeat"},
		},
		"never finished": {
			seen:     []series.Series{singleton, ongoing, heartbeat},
			emitted:  70,
			steps:    []step{stepCreated, stepSeries, stepHeartbeat},
			history:  "Singleton → Ongoing → 1 heartbeat",
			problems: []string{"it was never seen as Finished"},
		},
		"lost occurrences": {
			seen:     []series.Series{singleton, ongoing, heartbeat, finished},
			emitted:  1234,
			steps:    []step{stepCreated, stepSeries, stepHeartbeat, stepFinished},
			history:  "Singleton → Ongoing → 1 heartbeat → Finished",
			problems: []string{"it was emitted 1,234 times, but the server counts 90"},
		},
		"given up": {
			seen:     []series.Series{singleton, ongoing, heartbeat, at(9, series.Unknown, 90)},
			emitted:  90,
			steps:    []step{stepCreated, stepSeries, stepHeartbeat, stepWrong},
			history:  "Singleton → Ongoing → 1 heartbeat → Unknown",
			problems: []string{"it was written as Unknown when it was Ongoing", "it was never seen as Finished", "it became Unknown"},
		},
		"count and time that go back": {
			seen:     []series.Series{singleton, heartbeat, ongoing, finished},
			emitted:  90,
			steps:    []step{stepCreated, stepSeries, stepHeartbeat, stepFinished},
			history:  "Singleton → Ongoing → 1 heartbeat → Finished",
			problems: []string{"its count fell from 70 to 2", "its last time went back by 6s"},
		},
		"written after its end": {
			seen:     []series.Series{singleton, ongoing, heartbeat, finished, finished},
			emitted:  90,
			steps:    []step{stepCreated, stepSeries, stepHeartbeat, stepFinished, stepWrong},
			history:  "Singleton → Ongoing → 1 heartbeat → Finished",
			problems: []string{"it was written as Finished when it was Finished"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var l life
			var steps []step
			for _, s := range test.seen {
				steps = append(steps, l.advance(s))
			}
			assert.Equal(t, test.steps, steps)
			assert.Equal(t, test.history, l.history())
			assert.Equal(t, test.problems, l.problems(test.emitted))
		})
	}
}

func TestLifeOver(t *testing.T) {
	var l life
	l.advance(at(0, series.Singleton, 1))
	assert.True(t, l.over(1))
	assert.False(t, l.over(2))
	l.advance(at(1, series.Ongoing, 2))
	assert.False(t, l.over(2))
	l.advance(at(1, series.Finished, 2))
	assert.True(t, l.over(2))
}
