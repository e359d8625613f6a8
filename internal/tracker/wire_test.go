package tracker

import (
	"encoding/json"
	"maps"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/eventseries/eventseries/series"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// testSeries is a series of 42 that is Ongoing.
func testSeries() *series.Series {
	return &series.Series{
		Key:         *testKey("A"),
		State:       series.Ongoing,
		Namespace:   "ns",
		Name:        "pod-a.1890265525580052",
		Note:        "back-off 10s",
		LastNote:    "back-off 5m",
		Annotations: map[string]string{"example.com/team": "shop"},
		First:       time.Date(2026, 1, 2, 3, 4, 5, 678_901_000, time.UTC),
		Last:        time.Date(2026, 1, 2, 3, 14, 15, 0, time.UTC),
		Count:       42,
	}
}

func toJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.MarshalIndent(v, "", "  ")
	require.NoError(t, err)
	return string(data)
}

func TestEventOfSingleton(t *testing.T) {
	s := testSeries()
	s.State, s.Count, s.Last, s.LastNote, s.Annotations = series.Singleton, 1, s.First, "", nil
	s.Key.Related = series.Reference{Kind: "Node", Name: "n1"}
	assert.Equal(t, `{
  "metadata": {
    "name": "pod-a.1890265525580052",
    "namespace": "ns"
  },
  "eventTime": "2026-01-02T03:04:05.678901Z",
  "reportingController": "example.com/controller",
  "reportingInstance": "controller-0",
  "action": "Starting",
  "reason": "Started",
  "regarding": {
    "kind": "Pod",
    "namespace": "ns",
    "name": "pod-a",
    "uid": "uid-1",
    "apiVersion": "v1"
  },
  "related": {
    "kind": "Node",
    "name": "n1"
  },
  "note": "back-off 10s",
  "type": "Warning",
  "deprecatedSource": {},
  "deprecatedFirstTimestamp": null,
  "deprecatedLastTimestamp": null
}`, toJSON(t, s.Event()))
}

func TestEventOfSeries(t *testing.T) {
	assert.Equal(t, `{
  "metadata": {
    "name": "pod-a.1890265525580052",
    "namespace": "ns",
    "annotations": {
      "eventseries.dev/last-note": "back-off 5m",
      "eventseries.dev/state": "Ongoing",
      "example.com/team": "shop"
    }
  },
  "eventTime": "2026-01-02T03:04:05.678901Z",
  "series": {
    "count": 42,
    "lastObservedTime": "2026-01-02T03:14:15.000000Z"
  },
  "reportingController": "example.com/controller",
  "reportingInstance": "controller-0",
  "action": "Starting",
  "reason": "Started",
  "regarding": {
    "kind": "Pod",
    "namespace": "ns",
    "name": "pod-a",
    "uid": "uid-1",
    "apiVersion": "v1"
  },
  "note": "back-off 10s",
  "type": "Warning",
  "deprecatedSource": {},
  "deprecatedFirstTimestamp": null,
  "deprecatedLastTimestamp": null
}`, toJSON(t, testSeries().Event()))
}

func TestPatch(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*series.Series)
		want   string
	}{
		{"heartbeat", func(*series.Series) {},
			`{"metadata":{"annotations":{"eventseries.dev/last-note":"back-off 5m","eventseries.dev/state":"Ongoing","example.com/team":"shop"}},` +
				`"series":{"count":42,"lastObservedTime":"2026-01-02T03:14:15.000000Z"}}`},
		{"finish", func(s *series.Series) { s.State, s.LastNote, s.Annotations = series.Finished, "", nil },
			`{"metadata":{"annotations":{"eventseries.dev/state":"Finished"}},"series":{"count":42,"lastObservedTime":"2026-01-02T03:14:15.000000Z"}}`},
		{"the note is as at first again", func(s *series.Series) { s.LastNote, s.Annotations = s.Note, nil },
			`{"metadata":{"annotations":{"eventseries.dev/last-note":null,"eventseries.dev/state":"Ongoing"}},` +
				`"series":{"count":42,"lastObservedTime":"2026-01-02T03:14:15.000000Z"}}`},
		{"as many as there can be", func(s *series.Series) {
			s.State, s.Count, s.LastNote, s.Annotations = series.Unknown, math.MaxInt32, "", nil
		},
			`{"metadata":{"annotations":{"eventseries.dev/state":"Unknown"}},"series":{"count":2147483647,"lastObservedTime":"2026-01-02T03:14:15.000000Z"}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := testSeries()
			tt.change(s)
			got, err := s.Patch()
			require.NoError(t, err)
			assert.Equal(t, tt.want, string(got))
		})
	}

	for _, count := range []int32{0, 1} {
		s := testSeries()
		s.Count = count
		_, err := s.Patch()
		assert.ErrorContains(t, err, "ns/pod-a.1890265525580052")
	}
}

// mergePatch applies a JSON merge patch as RFC 7386 has it in pseudo code.
func mergePatch(target, patch any) any {
	changes, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	object, ok := target.(map[string]any)
	if !ok {
		object = map[string]any{}
	}
	for k, v := range changes {
		if v == nil {
			delete(object, k)
		} else {
			object[k] = mergePatch(object[k], v)
		}
	}
	return object
}

func asAny(t *testing.T, data string) (v any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(data), &v))
	return v
}

// An Event that was created and patched is the one that would be created of the
// series as it is now. So it does not matter when a series was first written.
func TestPatchedIsCreated(t *testing.T) {
	states := []series.State{series.Ongoing, series.Finished, series.Unknown}
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 0))
		table := NewTable(Options{NoteInterval: time.Nanosecond}, start)
		k := testKey("a")
		now := start
		e := table.Observe(k, Occurrence{Note: "a", Annotations: map[string]string{"first": "1"}}, now).Dirty[0]
		w, _, _ := table.Begin(e, now)
		onServer := asAny(t, toJSON(t, w.Series.Event()))
		table.Written(e, w, now)
		for range 5 {
			for range 1 + rng.IntN(3) {
				now = now.Add(time.Second)
				table.Observe(k, Occurrence{
					Note:        []string{"", "a", "b", "c"}[rng.IntN(4)],
					Annotations: map[string]string{[]string{"first", "x", series.AnnotationState, series.AnnotationPrefix + "x"}[rng.IntN(4)]: "new"},
				}, now)
			}
			table.Beat(e)
			w, _, ok := table.Begin(e, now)
			require.True(t, ok)
			// What state is written makes no difference here.
			w.Series.State = states[rng.IntN(len(states))]
			patch, err := w.Series.Patch()
			require.NoError(t, err)
			onServer = mergePatch(onServer, asAny(t, string(patch)))
			require.Equal(t, asAny(t, toJSON(t, w.Series.Event())), onServer, "seed %d", seed)
			// Twice does no harm.
			onServer = mergePatch(onServer, asAny(t, string(patch)))
			require.Equal(t, asAny(t, toJSON(t, w.Series.Event())), onServer, "seed %d", seed)
			for name := range w.Series.Annotations {
				require.False(t, strings.HasPrefix(name, series.AnnotationPrefix), name)
			}
			table.Written(e, w, now)
		}
	}
}

// equalSeries says whether two series are the same. Times are if they are the
// same instant. A last note that is the note itself is none on the wire.
func equalSeries(a, b *series.Series) bool {
	lastNote := func(s *series.Series) string {
		if s.LastNote == s.Note {
			return ""
		}
		return s.LastNote
	}
	return a.Key == b.Key && a.State == b.State && a.Namespace == b.Namespace && a.Name == b.Name &&
		a.Note == b.Note && lastNote(a) == lastNote(b) && maps.Equal(a.Annotations, b.Annotations) &&
		a.First.Equal(b.First) && a.Last.Equal(b.Last) && a.Count == b.Count
}

// What was written is read back as it was.
func TestFromEvent(t *testing.T) {
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 0))
		s := &series.Series{
			Namespace: "ns", Name: "name",
			Note:  []string{"", "a", "b"}[rng.IntN(3)],
			First: time.UnixMicro(rng.Int64N(1 << 52)),
			Count: 1,
		}
		for _, field := range fieldsOf(&s.Key) {
			*field = []string{"", "x", "y"}[rng.IntN(3)]
		}
		s.Last = s.First
		if rng.IntN(2) == 0 {
			s.Annotations = map[string]string{"a": "1", "b": ""}
		}
		if rng.IntN(3) > 0 {
			s.State = series.State(1 + rng.IntN(3))
			s.Count = 2 + rng.Int32N(math.MaxInt32-1)
			s.Last = s.First.Add(time.Duration(rng.Int64N(1<<40)) * time.Microsecond)
			s.LastNote = []string{"", "a", "b", "c"}[rng.IntN(4)]
		}
		event := s.Event()
		got, err := series.FromEvent(event)
		require.NoError(t, err)
		require.True(t, equalSeries(s, got), "seed %d: %+v is read as %+v", seed, s, got)

		// Through the API server as well.
		var received eventsv1.Event
		require.NoError(t, json.Unmarshal([]byte(toJSON(t, event)), &received))
		got, err = series.FromEvent(&received)
		require.NoError(t, err)
		require.True(t, equalSeries(s, got), "seed %d: %+v is received as %+v", seed, s, got)

		// The result has its memory to itself.
		maps.DeleteFunc(event.Annotations, func(string, string) bool { return true })
		require.Equal(t, len(s.Annotations), len(got.Annotations))
	}
}

func TestFromEventOfStrangers(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*eventsv1.Event)
		err    string // the end of it; empty if there is none
	}{
		{"as written", func(*eventsv1.Event) {}, ""},
		{"a legacy Event", func(e *eventsv1.Event) { e.EventTime = metav1.MicroTime{} }, "no eventTime"},
		{"no state", func(e *eventsv1.Event) { delete(e.Annotations, series.AnnotationState) }, ""},
		{"a state that there is not", func(e *eventsv1.Event) { e.Annotations[series.AnnotationState] = "Paused" }, `annotation eventseries.dev/state is "Paused"`},
		{"an empty state", func(e *eventsv1.Event) { e.Annotations[series.AnnotationState] = "" }, `annotation eventseries.dev/state is ""`},
		{"a singleton that says so", func(e *eventsv1.Event) { e.Annotations[series.AnnotationState] = "Singleton" }, `annotation eventseries.dev/state is "Singleton"`},
		{"a state without a series", func(e *eventsv1.Event) { e.Series = nil }, `annotation eventseries.dev/state is "Ongoing", but there is no series`},
		{"a series of one", func(e *eventsv1.Event) { e.Series.Count = 1 }, "series.count is 1"},
		{"a series of less", func(e *eventsv1.Event) { e.Series.Count = math.MinInt32 }, "series.count is -2147483648"},
		{"a series of no time", func(e *eventsv1.Event) { e.Series.LastObservedTime = metav1.MicroTime{} }, "no series.lastObservedTime"},
		{"a series that ends before it begins", func(e *eventsv1.Event) { e.Series.LastObservedTime.Time = e.EventTime.Add(-time.Microsecond) }, "is before eventTime 2026-01-02 03:04:05.678901 +0000 UTC"},
		{"a series of no duration", func(e *eventsv1.Event) { e.Series.LastObservedTime = e.EventTime }, ""},
		{"nothing", func(e *eventsv1.Event) { *e = eventsv1.Event{} }, "no eventTime"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			event := testSeries().Event()
			tt.change(event)
			s, err := series.FromEvent(event)
			if tt.err == "" {
				assert.NoError(t, err)
				return
			}
			require.Error(t, err)
			assert.Nil(t, s)
			assert.True(t, strings.HasPrefix(err.Error(), "series: event "+event.Namespace+"/"+event.Name+": "), err)
			assert.True(t, strings.HasSuffix(err.Error(), tt.err), err)
		})
	}

	// client-go writes series without a state.
	event := testSeries().Event()
	delete(event.Annotations, series.AnnotationState)
	s, err := series.FromEvent(event)
	require.NoError(t, err)
	assert.Equal(t, series.Unknown, s.State)

	// A last note is that of a series.
	event = testSeries().Event()
	event.Series = nil
	delete(event.Annotations, series.AnnotationState)
	s, err = series.FromEvent(event)
	require.NoError(t, err)
	assert.Equal(t, series.Singleton, s.State)
	assert.Empty(t, s.LastNote)
}

// checkFromEvent reads any Event. If it is one of a series, it tells the same
// again.
func checkFromEvent(t *testing.T, event *eventsv1.Event) {
	t.Helper()
	before := event.DeepCopy()
	s, err := series.FromEvent(event)
	if (s == nil) == (err == nil) {
		t.Fatalf("%+v is read as %v and %v", event, s, err)
	}
	if err != nil {
		if !strings.Contains(err.Error(), event.Namespace+"/"+event.Name) {
			t.Errorf("%v does not name %s/%s", err, event.Namespace, event.Name)
		}
		return
	}
	s.Key.Named(s.Name)
	if s.Count < 1 || s.Last.Before(s.First) || (s.State == series.Singleton) != (event.Series == nil) || (s.Count == 1) != (s.State == series.Singleton) {
		t.Errorf("%+v is no series", s)
	}
	if s.Key.Regarding != series.ReferenceOf(&event.Regarding) || s.Key.Related != series.ReferenceOf(event.Related) || s.Note != event.Note {
		t.Errorf("%+v is read as %+v", event, s)
	}
	again, err := series.FromEvent(s.Event())
	if err != nil || !equalSeries(s, again) {
		t.Errorf("%+v becomes %+v, %v", s, again, err)
	}
	if _, err := s.Patch(); (err == nil) != (s.Count > 1) {
		t.Errorf("a patch of %+v: %v", s, err)
	}
	for k := range s.Annotations {
		if strings.HasPrefix(k, series.AnnotationPrefix) {
			t.Errorf("%s is taken for the caller's", k)
		}
	}
	if toJSON(t, before) != toJSON(t, event) {
		t.Errorf("reading has changed the Event")
	}
}

func FuzzFromEvent(f *testing.F) {
	f.Add("ns", "pod-a.1890265525580052", "pod-a", "node", "note", true, "Ongoing", true, "later", true, int32(42), int64(1_767_000_000_000_000), int64(60))
	f.Add("", "a."+strings.Repeat("0", 251), "", "", "", false, "", false, "", false, int32(0), int64(0), int64(-1))
	f.Add("ns", "n", "p", "", "same", true, "Finished", true, "same", true, int32(math.MinInt32), int64(math.MaxInt64), int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, namespace, name, object, related, note string, hasState bool, state string,
		hasLastNote bool, lastNote string, hasSeries bool, count int32, first, duration int64,
	) {
		event := &eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{"other": note}},
			EventTime:  metav1.NewMicroTime(time.UnixMicro(first)),
			Regarding:  corev1.ObjectReference{Name: object, UID: types.UID(related), ResourceVersion: state},
			Note:       note,
			Type:       state,
			Reason:     lastNote,
		}
		if related != "" {
			event.Related = &corev1.ObjectReference{Kind: related, ResourceVersion: "1"}
		}
		if hasState {
			event.Annotations[series.AnnotationState] = state
		}
		if hasLastNote {
			event.Annotations[series.AnnotationLastNote] = lastNote
		}
		if hasSeries {
			event.Series = &eventsv1.EventSeries{Count: count, LastObservedTime: metav1.NewMicroTime(time.UnixMicro(first + duration))}
		}
		checkFromEvent(t, event)
	})
}

func FuzzFromEventJSON(f *testing.F) {
	for _, change := range []func(*series.Series){
		func(*series.Series) {},
		func(s *series.Series) { s.State, s.Count, s.Last = series.Singleton, 1, s.First },
		func(s *series.Series) { s.Key.Related = series.Reference{Name: "n"} },
	} {
		s := testSeries()
		change(s)
		data, err := json.Marshal(s.Event())
		require.NoError(f, err)
		f.Add(data)
	}
	f.Add([]byte(`{"eventTime":"2026-01-02T03:04:05.678901Z","series":{"count":-1,"lastObservedTime":null},"metadata":{"annotations":{"eventseries.dev/state":"Unknown"}}}`))
	f.Add([]byte(`{"eventTime":"0001-01-01T00:00:00.000001Z","related":{}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var event eventsv1.Event
		if json.Unmarshal(data, &event) == nil {
			checkFromEvent(t, &event)
		}
	})
}

func fieldsOf(k *series.Key) []*string {
	return []*string{
		&k.Regarding.APIVersion, &k.Regarding.Kind, &k.Regarding.Namespace,
		&k.Regarding.Name, (*string)(&k.Regarding.UID), &k.Regarding.FieldPath,
		&k.Related.APIVersion, &k.Related.Kind, &k.Related.Namespace,
		&k.Related.Name, (*string)(&k.Related.UID), &k.Related.FieldPath,
		&k.Type, &k.Action, &k.Reason, &k.ReportingController, &k.ReportingInstance,
	}
}
