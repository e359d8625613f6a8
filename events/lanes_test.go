package events

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/eventseries/eventseries/internal/tracker"
	"github.com/eventseries/eventseries/series"
)

// entries makes entries that wait for something.
type entries struct {
	table *tracker.Table
	now   time.Time
}

func newEntries() *entries {
	now := time.Unix(1e9, 0)
	return &entries{table: tracker.NewTable(tracker.Options{}, now), now: now}
}

func (es *entries) key(eventtype, name string) *series.Key {
	return &series.Key{Regarding: series.Reference{Name: name}, Type: eventtype, Reason: "R", Action: "A"}
}

// news returns an entry that waits to be created.
func (es *entries) news(t *testing.T, eventtype, name string) *tracker.Entry {
	t.Helper()
	dirty := es.table.Observe(es.key(eventtype, name), tracker.Occurrence{}, es.now).Dirty
	require.Len(t, dirty, 1)
	return dirty[0]
}

// series returns an entry that is Ongoing and has been written.
func (es *entries) series(t *testing.T, eventtype, name string) *tracker.Entry {
	t.Helper()
	e := es.news(t, eventtype, name)
	es.table.Observe(es.key(eventtype, name), tracker.Occurrence{}, es.now)
	es.write(t, e)
	return e
}

// heartbeat returns an entry that waits for its heartbeat.
func (es *entries) heartbeat(t *testing.T, eventtype, name string) *tracker.Entry {
	t.Helper()
	e := es.series(t, eventtype, name)
	es.table.Beat(e)
	return e
}

func (es *entries) write(t *testing.T, e *tracker.Entry) {
	t.Helper()
	w, _, ok := es.table.Begin(e, es.now)
	require.True(t, ok)
	again, _ := es.table.Written(e, w, es.now)
	require.False(t, again)
}

// finish ends a series, so that its heartbeat becomes news.
func (es *entries) finish(t *testing.T, e *tracker.Entry) {
	t.Helper()
	require.Contains(t, es.table.Expire(e, es.now.Add(time.Hour)).Dirty, e)
}

func drain(l *lanes) (names []string) {
	for l.Len() > 0 {
		names = append(names, l.Pop().Key().Regarding.Name)
	}
	return names
}

func TestLanesOrder(t *testing.T) {
	const normal, warning = corev1.EventTypeNormal, corev1.EventTypeWarning
	es := newEntries()
	l := newLanes()
	for _, e := range []*tracker.Entry{
		es.heartbeat(t, normal, "7"), es.news(t, normal, "3"), es.heartbeat(t, warning, "5"), es.news(t, warning, "1"),
		es.news(t, warning, "2"), es.heartbeat(t, warning, "6"), es.news(t, normal, "4"), es.heartbeat(t, normal, "8"),
	} {
		l.Push(e)
	}
	assert.Equal(t, 8, l.Len())
	assert.Equal(t, []string{"1", "2", "3", "4", "5", "6", "7", "8"}, drain(l))
	assert.Zero(t, l.Len())
}

// What waits as a heartbeat and has ended meanwhile goes with the news.
func TestLanesTouchRaises(t *testing.T) {
	es := newEntries()
	l := newLanes()
	raised := es.heartbeat(t, corev1.EventTypeNormal, "raised")
	l.Push(es.heartbeat(t, corev1.EventTypeWarning, "heartbeat"))
	l.Push(raised)
	l.Push(es.news(t, corev1.EventTypeNormal, "news"))
	es.finish(t, raised)
	l.Touch(raised)
	l.Touch(raised)
	assert.Equal(t, 3, l.Len(), "it is there once")
	assert.Equal(t, []string{"news", "raised", "heartbeat"}, drain(l))
}

// What it left behind when it was raised is not taken for it when it comes back.
func TestLanesForgetWhatWasLeftBehind(t *testing.T) {
	es := newEntries()
	l := newLanes()
	e := es.heartbeat(t, corev1.EventTypeNormal, "e")
	l.Push(e)
	es.finish(t, e)
	l.Touch(e)
	assert.Equal(t, []string{"e"}, drain(l))
	l.Push(e)
	l.Push(es.heartbeat(t, corev1.EventTypeNormal, "f"))
	assert.Equal(t, []string{"e", "f"}, drain(l))
}

func TestLanesTouchDoesNotLower(t *testing.T) {
	es := newEntries()
	l := newLanes()
	e := es.news(t, corev1.EventTypeWarning, "e")
	l.Push(e)
	es.write(t, e)
	es.table.Observe(es.key(corev1.EventTypeWarning, "e"), tracker.Occurrence{}, es.now)
	es.write(t, e)
	es.table.Beat(e)
	require.Equal(t, tracker.RefreshWarning, e.Urgency())
	l.Touch(e)
	l.Push(es.news(t, corev1.EventTypeNormal, "f"))
	assert.Equal(t, []string{"e", "f"}, drain(l), "it has waited long enough")
}
