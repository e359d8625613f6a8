package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/eventseries/eventseries/series"
)

func TestLedger(t *testing.T) {
	const s, o, f, u = series.Singleton, series.Ongoing, series.Finished, series.Unknown
	type write struct {
		state series.State
		count int32
	}
	for name, test := range map[string]struct {
		emitted  int
		writes   []write
		changes  []string
		history  string
		problems []string
	}{
		"singleton": {1, []write{{s, 1}}, []string{"created"}, "Singleton", nil},
		"series": {90, []write{{s, 1}, {o, 2}, {o, 70}, {o, 80}, {f, 90}}, []string{"created", "series", "heartbeat", "heartbeat", "finished"},
			"Singleton → Ongoing → 2 heartbeats → Finished", nil},
		"missing": {1, nil, nil, "", []string{"the writes are [], want [Singleton]", "emitted 1 time, but the count on the server is 0"}},
		"no heartbeat, wrong count": {1234, []write{{s, 1}, {o, 2}, {f, 90}}, []string{"created", "series", "finished"}, "Singleton → Ongoing → 0 heartbeats → Finished",
			[]string{"the writes are [Singleton Ongoing Finished], want [Singleton Ongoing Ongoing Finished]", "emitted 1,234 times, but the count on the server is 90"}}, //nolint:dupword // states
		"never finished": {90, []write{{s, 1}, {o, 2}, {o, 70}, {u, 90}}, []string{"created", "series", "heartbeat", "unknown"}, "Singleton → Ongoing → 1 heartbeat → Unknown",
			[]string{"the writes are [Singleton Ongoing Ongoing Unknown], want [Singleton Ongoing Ongoing Finished]"}}, //nolint:dupword // states
		"written after it finished": {90, []write{{s, 1}, {o, 2}, {o, 70}, {f, 90}, {f, 90}}, []string{"created", "series", "heartbeat", "finished", "finished"},
			"Singleton → Ongoing → 1 heartbeat → Finished", []string{"the writes are [Singleton Ongoing Ongoing Finished Finished], want [Singleton Ongoing Ongoing Finished]"}}, //nolint:dupword // states
	} {
		var l ledger
		var changes []string
		for range test.emitted {
			l.emit(subject{"Pod/checkout", "BackOff", ""})
		}
		for i, w := range test.writes {
			assert.False(t, i < 3 && l.settled(), "%s: %v", name, w)
			event := eventOf(w.state, w.count, i)
			_, _, change := l.store(event)
			changes = append(changes, change)
			_, _, change = l.store(event)
			assert.Empty(t, change, "%s: a response without a change", name)
		}
		h := l.histories[0]
		assert.Len(t, l.histories, 1, name)
		assert.Equal(t, test.changes, changes, name)
		assert.Equal(t, test.history, h.String(), name)
		assert.Equal(t, test.problems, h.problems(), name)
		assert.Equal(t, test.emitted, l.emitted(), name)
	}
}

func TestLedgerFindsWrongEvents(t *testing.T) {
	var l ledger
	l.emit(subject{"Pod/checkout", "BackOff", ""})
	l.store(eventOf(series.Singleton, 1, 1))
	second := eventOf(series.Singleton, 1, 2)
	second.Name = "second"
	l.store(second)
	invalid := eventOf(series.Singleton, 1, 3)
	invalid.EventTime = metav1.MicroTime{}
	_, _, change := l.store(invalid)
	assert.Equal(t, "WRONG", change)
	assert.Equal(t, []string{"another Event: second", "series: event shop/first: no eventTime"}, l.histories[0].problems())
}

// eventOf returns a version of the Event of a Pod.
func eventOf(state series.State, count int32, version int) *eventsv1.Event {
	first := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	event := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "first", ResourceVersion: plural(version, "write")},
		EventTime:  metav1.NewMicroTime(first),
		Reason:     "BackOff",
		Regarding:  corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: "checkout"},
	}
	if count > 1 {
		event.Labels = map[string]string{series.LabelState: state.String()}
		event.Series = &eventsv1.EventSeries{Count: count, LastObservedTime: metav1.NewMicroTime(first.Add(time.Duration(count) * time.Second))}
	}
	return event
}

func TestPlural(t *testing.T) {
	for n, want := range map[int]string{0: "0 Events", 1: "1 Event", 999: "999 Events", 1000: "1,000 Events", 1234567: "1,234,567 Events"} {
		assert.Equal(t, want, plural(n, "Event"))
	}
}
