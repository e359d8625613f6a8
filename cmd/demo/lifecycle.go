package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/eventseries/eventseries/series"
)

// step is a change of an Event on the server.
type step string

const (
	stepCreated   step = "created"
	stepSeries    step = "series"
	stepHeartbeat step = "heartbeat"
	stepFinished  step = "finished"
	stepWrong     step = "WRONG" // not a valid change
)

// lifecycle is the history of an Event on the server.
type lifecycle struct {
	subject         subject
	resourceVersion string
	latest          series.Series
	states          []series.State // in order of observation
	heartbeats      int
	faults          []string
}

// advance records the current state of the Event.
func (l *lifecycle) advance(now series.Series) step {
	before := l.latest
	l.latest = now
	if len(l.states) == 0 {
		l.states = append(l.states, now.State)
		return stepCreated
	}
	if now.Count < before.Count {
		l.fault("the count decreased from %d to %d", before.Count, now.Count)
	}
	if now.Last.Before(before.Last) {
		l.fault("the time of the last occurrence went back by %v", before.Last.Sub(now.Last))
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
	l.fault("the state changed from %v to %v", before.State, now.State)
	return stepWrong
}

func (l *lifecycle) fault(format string, args ...any) {
	l.faults = append(l.faults, fmt.Sprintf(format, args...))
}

// complete reports whether an Event with a number of emitted occurrences is in its final
// state.
func (l *lifecycle) complete(emitted int) bool {
	if emitted == 1 {
		return l.latest.State == series.Singleton
	}
	return l.latest.State == series.Finished
}

// problems returns what is wrong with a completed lifecycle.
func (l *lifecycle) problems(emitted int) []string {
	problems := slices.Clone(l.faults)
	add := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }

	expected := []series.State{series.Singleton}
	if emitted > 1 {
		expected = append(expected, series.Ongoing, series.Finished)
	}
	for _, state := range expected {
		if !slices.Contains(l.states, state) {
			add("never observed as %v", state)
		}
	}
	for _, state := range l.states {
		if !slices.Contains(expected, state) {
			add("unexpected state %v", state)
		}
	}
	if emitted > 1 && l.heartbeats == 0 {
		add("no heartbeat")
	}
	if int(l.latest.Count) != emitted {
		add("emitted %s, but the count on the server is %s", plural(emitted, "time"), thousands(int(l.latest.Count)))
	}
	return problems
}

// history describes the lifecycle in one line.
func (l *lifecycle) history() string {
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
