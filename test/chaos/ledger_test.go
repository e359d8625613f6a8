package chaos

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// eventOf returns an Event of a key that tells of so many occurrences.
func eventOf(emitter, key int, count int32) eventsv1.Event {
	event := eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Name: "e"}, Regarding: *subjectReference("ns", emitter, key)}
	if count > 1 {
		event.Series = &eventsv1.EventSeries{Count: count}
	}
	return event
}

func TestCompare(t *testing.T) {
	// Of key 1 of emitter 1, the first life put 3 to 5 on the server and the
	// second one 2; each can have begun a series.
	first := newAccount(keysPerEmitter)
	first.keys[1] = keyAccount{taken: 5, flushed: 3, sent: map[string]int64{"e": 5}, begun: 1}
	second := newAccount(keysPerEmitter)
	second.keys[1] = keyAccount{taken: 2, sent: map[string]int64{"e": 2}, begun: 1}
	second.ended = true
	l := ledger{{newAccount(keysPerEmitter)}, {first, second}}

	for name, tt := range map[string]struct {
		found []eventsv1.Event
		wrong string
	}{
		"the least":       {[]eventsv1.Event{eventOf(1, 1, 5)}, ""},
		"the most":        {[]eventsv1.Event{eventOf(1, 1, 6), eventOf(1, 1, 1)}, ""},
		"one lost":        {[]eventsv1.Event{eventOf(1, 1, 4)}, "4 occurrences in 1 Events; expected 5 to 7"},
		"all lost":        {nil, "0 occurrences in 0 Events; expected 5 to 7"},
		"one twice":       {[]eventsv1.Event{eventOf(1, 1, 8)}, "8 occurrences in 1 Events; expected 5 to 7"},
		"in three Events": {[]eventsv1.Event{eventOf(1, 1, 3), eventOf(1, 1, 1), eventOf(1, 1, 1)}, "in 3 Events; expected 5 to 7 occurrences in at most 2"},
		"of another key":  {[]eventsv1.Event{eventOf(1, 1, 5), eventOf(1, 2, 1)}, "emitter 1, key 2: 1 occurrences"},
		"of another":      {[]eventsv1.Event{eventOf(1, 1, 5), eventOf(0, 1, 1)}, "emitter 0, key 1: 1 occurrences"},
		"a stranger":      {[]eventsv1.Event{eventOf(1, 1, 5), eventOf(7, 1, 1)}, "emitter -1"},
	} {
		wrong := l.compare(tt.found)
		if tt.wrong == "" {
			assert.Empty(t, wrong, name)
			continue
		}
		require.Len(t, wrong, 1, name)
		assert.Contains(t, wrong[0].String(), tt.wrong, name)
	}
}

func TestDifferenceTellsAllThatIsKnown(t *testing.T) {
	killed := newAccount(keysPerEmitter)
	killed.keys[3] = keyAccount{taken: 5, flushed: 4, sent: map[string]int64{"e": 5}, begun: 1}
	wrong := ledger{{killed}}.compare([]eventsv1.Event{eventOf(0, 3, 2)})
	require.Len(t, wrong, 1)
	text := wrong[0].String()
	assert.Contains(t, text, "life 0 (ended: false): {taken:5 flushed:4")
	assert.Contains(t, text, "count 2")
}

func TestSubjectsAreFoundAgain(t *testing.T) {
	emitter, key, ok := parseSubject(subjectReference("ns", 3, 42).Name)
	assert.True(t, ok)
	assert.Equal(t, 3, emitter)
	assert.Equal(t, 42, key)
	for _, name := range []string{"", "kube-apiserver", "emitter-x-key-1", "emitter--1-key-1"} {
		_, _, ok = parseSubject(name)
		assert.False(t, ok, name)
	}
}
