package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/eventseries/eventseries/series"
)

// step is what a write on the server meant for an Event.
type step string

const (
	stepCreated   step = "created"
	stepSeries    step = "series"
	stepHeartbeat step = "heartbeat"
	stepFinished  step = "finished"
	stepWrong     step = "WRONG" // none that the life of an Event has
)

// life is what an Event has been through on the server.
type life struct {
	subject         subject
	resourceVersion string
	latest          series.Series
	states          []series.State // in the order in which they were seen
	heartbeats      int
	faults          []string
}

// advance takes in what the Event is now.
func (l *life) advance(now series.Series) step {
	before := l.latest
	l.latest = now
	if len(l.states) == 0 {
		l.states = append(l.states, now.State)
		return stepCreated
	}
	if now.Count < before.Count {
		l.fault("its count fell from %d to %d", before.Count, now.Count)
	}
	if now.Last.Before(before.Last) {
		l.fault("its last time went back by %v", before.Last.Sub(now.Last))
	}
	if now.State != before.State {
		l.states = append(l.states, now.State)
	}
	switch {
	case before.State == series.Singleton && now.State == series.Ongoing:
		return stepSeries
	case before.State == series.Ongoing && now.State == series.Ongoing:
		l.heartbeats++
		return stepHeartbeat
	case before.State == series.Ongoing && now.State == series.Finished:
		return stepFinished
	}
	l.fault("it was written as %v when it was %v", now.State, before.State)
	return stepWrong
}

func (l *life) fault(format string, args ...any) {
	l.faults = append(l.faults, fmt.Sprintf(format, args...))
}

// over reports whether nothing more is to come for an Event that was emitted so
// many times.
func (l *life) over(emitted int) bool {
	if emitted == 1 {
		return l.latest.State == series.Singleton
	}
	return l.latest.State == series.Finished
}

// problems says what was wrong with a life that is over.
func (l *life) problems(emitted int) []string {
	var problems []string
	problems = append(problems, l.faults...)
	complain := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }

	expected := []series.State{series.Singleton}
	if emitted > 1 {
		expected = append(expected, series.Ongoing, series.Finished)
	}
	for _, state := range expected {
		if !slices.Contains(l.states, state) {
			complain("it was never seen as %v", state)
		}
	}
	for _, state := range l.states {
		if !slices.Contains(expected, state) {
			complain("it became %v", state)
		}
	}
	if emitted > 1 && l.heartbeats == 0 {
		complain("it had no heartbeat")
	}
	if int(l.latest.Count) != emitted {
		complain("it was emitted %s, but the server counts %s", plural(emitted, "time"), thousands(int(l.latest.Count)))
	}
	return problems
}

// history tells the life in a line.
func (l *life) history() string {
	var stages []string
	for _, state := range l.states {
		if state == series.Ongoing {
			stages = append(stages, state.String(), plural(l.heartbeats, "heartbeat"))
			continue
		}
		stages = append(stages, state.String())
	}
	return strings.Join(stages, " → ")
}
