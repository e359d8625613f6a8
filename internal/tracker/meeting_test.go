package tracker

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/eventseries/eventseries/internal/wallclock"
	"github.com/eventseries/eventseries/series"
)

// What a series does about what stands under its name is in
// testdata/scripts/13-adopt.txt and 14-successor.txt.

// standingEvent is an Event of an earlier process that is alive at start.
func standingEvent(k *series.Key, count int32) *eventsv1.Event {
	s := series.Series{
		Key: *k, State: series.Ongoing, Namespace: "ns", Name: k.BaseName(), Note: "before", LastNote: "lately",
		Annotations: map[string]string{"theirs": "1", "both": "theirs"},
		First:       start.Add(-time.Hour).Truncate(time.Microsecond), Last: start.Add(-time.Minute).Truncate(time.Microsecond), Count: count,
	}
	return s.Event()
}

// meet has e find event under the name that it wants, and returns the write that
// follows from that.
func meet(t *testing.T, table *Table, e *Entry, event *eventsv1.Event) Write {
	t.Helper()
	w, _, ok := table.Begin(e, start)
	require.True(t, ok)
	require.True(t, w.Creates())
	table.Taken(e, w, start)
	w, _, ok = table.Begin(e, start)
	require.True(t, ok)
	require.Equal(t, WriteLook, w.Kind)
	patch, err := w.Patch()
	require.NoError(t, err)
	require.Equal(t, "{}", string(patch))
	again, eff := table.Found(e, w, event, start)
	require.True(t, again)
	require.Empty(t, eff)
	checkInvariants(t, table, 1)
	w, _, ok = table.Begin(e, start)
	require.True(t, ok)
	return w
}

// The caller's annotations of both are kept, the latest on top.
func TestAdoptedAnnotations(t *testing.T) {
	table := NewTable(Options{}, start)
	k := testKey("a")
	e := table.Observe(k, Occurrence{Note: "now", Annotations: map[string]string{"ours": "2", "both": "ours"}}, start).Dirty[0]
	w := meet(t, table, e, standingEvent(k, 10))
	assert.Equal(t, map[string]string{"theirs": "1", "ours": "2", "both": "ours"}, w.Series.Annotations)
	assert.Equal(t, "before", w.Series.Note)
	assert.Equal(t, "now", w.Series.LastNote)
	assert.EqualValues(t, 11, w.Series.Count)
	assert.EqualValues(t, 1, table.Adopted())

	patch, err := w.Patch()
	require.NoError(t, err)
	require.JSONEq(t, `{"metadata":{"annotations":{"theirs":"1","ours":"2","both":"ours",
		"eventseries.dev/state":"Ongoing","eventseries.dev/last-note":"now"}},
		"series":{"count":11,"lastObservedTime":"2026-01-02T03:04:05.123456Z"}}`, string(patch))
}

// Too many of them, whoever put them there, are left where they are.
func TestAdoptedAnnotationsAreBounded(t *testing.T) {
	table := NewTable(Options{}, start)
	k := testKey("a")
	event := standingEvent(k, 10)
	event.Annotations["theirs"] = strings.Repeat("x", series.MaxAnnotationBytes)
	e := table.Observe(k, Occurrence{Annotations: map[string]string{"ours": "2"}}, start).Dirty[0]
	w := meet(t, table, e, event)
	assert.Equal(t, map[string]string{"ours": "2"}, w.Series.Annotations)
}

// Counts do not go past what the API has room for.
func TestAdoptedCountSaturates(t *testing.T) {
	for _, count := range []int32{math.MaxInt32, math.MaxInt32 - 1} {
		table := NewTable(Options{}, start)
		k := testKey("a")
		e := table.Observe(k, Occurrence{}, start).Dirty[0]
		table.Observe(k, Occurrence{}, start)
		w := meet(t, table, e, standingEvent(k, count))
		assert.EqualValues(t, math.MaxInt32, w.Series.Count)
		table.Written(e, w, start)
		_, counted, _ := table.Count(k, start)
		assert.True(t, counted)
		checkInvariants(t, table, 1)
	}
}

// A sink that answers with nothing, or with something else, tells of no Event.
func TestFoundNothing(t *testing.T) {
	k := testKey("a")
	other := standingEvent(k, 10)
	other.Name = k.UniqueName(start.Truncate(time.Microsecond), 0)
	for _, event := range []*eventsv1.Event{nil, {}, other} {
		table := NewTable(Options{}, start)
		e := table.Observe(k, Occurrence{}, start).Dirty[0]
		w := meet(t, table, e, event)
		assert.Equal(t, WriteCreate, w.Kind)
		assert.Equal(t, other.Name, w.Series.Name)
	}
}

// Where keys have the instance in them, that of another is a stranger's. Where they
// have not, it is the same series.
func TestFoundOfAnotherInstance(t *testing.T) {
	for _, share := range []bool{false, true} {
		table := NewTable(Options{ShareInstances: share}, start)
		k := testKey("a")
		if share {
			k.ReportingInstance = ""
		}
		event := standingEvent(k, 10)
		event.ReportingInstance = "controller-1"
		e := table.Observe(k, Occurrence{Instance: "controller-0"}, start).Dirty[0]
		w := meet(t, table, e, event)
		if share {
			assert.EqualValues(t, 11, w.Series.Count)
			assert.Equal(t, "controller-1", w.Series.Instance)
			assert.Equal(t, k.BaseName(), w.Series.Name)
		} else {
			assert.EqualValues(t, 1, w.Series.Count)
			assert.Equal(t, k.UniqueName(start.Truncate(time.Microsecond), 0), w.Series.Name)
		}
	}
}

// The Event of a cluster-scoped object is where such Events are put.
func TestFoundInAnotherNamespace(t *testing.T) {
	k := testKey("a")
	k.Regarding.Namespace = ""
	for namespace, adopted := range map[string]bool{"kube-system": true, "default": false, "": false, "ns": false} {
		table := NewTable(Options{}, start)
		event := standingEvent(k, 10)
		event.Namespace = namespace
		e := table.Observe(k, Occurrence{}, start).Dirty[0]
		w := meet(t, table, e, event)
		assert.Equal(t, adopted, w.Kind == WriteFlush, namespace)
		found, err := series.FromEvent(event)
		require.NoError(t, err)
		restored, _ := NewTable(Options{}, start).Restore(found, 0, start)
		assert.Equal(t, adopted, restored != nil, namespace)
	}
}

// A successor is followed only to a name that a series of the same key can have.
func TestSuccessorElsewhere(t *testing.T) {
	k := testKey("a")
	for _, successor := range []string{
		"", " ", "x", "x 2026-01-02T03:04:05Z", " " + k.UniqueName(start, 0), k.BaseName(), k.BaseName() + ".x",
		testKey("b").UniqueName(start, 0), "../" + k.UniqueName(start, 0),
	} {
		table := NewTable(Options{}, start)
		event := standingEvent(k, 10)
		event.Annotations[series.AnnotationState] = "Finished"
		metav1.SetMetaDataAnnotation(&event.ObjectMeta, series.AnnotationSuccessor, successor)
		e := table.Observe(k, Occurrence{}, start).Dirty[0]
		w := meet(t, table, e, event)
		assert.Equal(t, WriteCreate, w.Kind, successor)
	}
}

// A wall clock that is set does not end what was adopted or restored.
func TestWallClockIsSetAfterAdoption(t *testing.T) {
	for _, by := range []time.Duration{-time.Hour, time.Hour} {
		begin := time.Now()
		table := NewTable(Options{}, begin)
		k := testKey("a")
		event := standingEvent(k, 10)
		event.EventTime.Time = begin.Add(-time.Hour).Round(0)
		event.Series.LastObservedTime.Time = begin.Add(-10 * time.Minute).Round(0)
		found, err := series.FromEvent(received(t, event))
		require.NoError(t, err)
		e, _ := table.Restore(found, 0.5, begin)
		require.NotNil(t, e)

		now := wallclock.Set(begin.Add(5*time.Minute), by)
		assert.Empty(t, table.Expire(e, now).Ended)
		_, counted, _ := table.Count(k, now)
		assert.True(t, counted)
		table.Beat(e)
		w, _, ok := table.Begin(e, now)
		require.True(t, ok)
		assert.False(t, w.Series.Last.Before(found.Last))
		assert.EqualValues(t, 11, w.Series.Count)
		checkInvariants(t, table, 1)
	}
}
