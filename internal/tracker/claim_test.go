package tracker

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/eventseries/eventseries/internal/fakeapi"
	"github.com/eventseries/eventseries/series"
)

// What a series does about an Event that has its name is in testdata/scripts:
// 13-adopt.txt, 14-successor.txt and 20-standings.txt.

// earlierEvent returns an Event of an earlier process that is alive at start.
func earlierEvent(k *series.Key, count int32) *eventsv1.Event {
	s := restorable(k, start.Add(-time.Hour).Truncate(time.Microsecond), start.Add(-time.Minute).Truncate(time.Microsecond))
	s.Count, s.Note, s.LastNote = count, "before", "lately"
	s.Annotations = map[string]string{"theirs": "1", "both": "theirs"}
	event := s.Event()
	event.Namespace = "ns"
	return event
}

// claimed returns a new tracker with a series of k whose first write has found event
// under its name, and the write that follows.
func claimed(t *testing.T, k *series.Key, event *eventsv1.Event, occurrences ...Occurrence) (*Tracker, *Write) {
	t.Helper()
	tr := New(Options{}, start)
	observe(tr, k, start, occurrences...)
	tr.Apply(send(t, tr, start, Create), Result{Outcome: Taken}, start)
	w := send(t, tr, start, Look)
	patch, err := w.Patch()
	require.NoError(t, err)
	require.Equal(t, "{}", string(patch))
	require.Empty(t, tr.Apply(w, Result{Event: event}, start))
	checkInvariants(t, tr, 1)
	now := start.Add(time.Minute)
	tr.Advance(now)
	w, _, ok := tr.Next(now)
	require.True(t, ok)
	return tr, w
}

// The annotations of both are kept, the latest on top. If there are too many, whoever
// put them there, they stay where they are.
func TestAdoptedAnnotations(t *testing.T) {
	k := testKey("a")
	event := earlierEvent(k, 10)
	event.ResourceVersion = "7"
	tr, w := claimed(t, k, event, Occurrence{Note: "now", Annotations: map[string]string{"ours": "2", "both": "ours"}})
	assert.Equal(t, map[string]string{"theirs": "1", "ours": "2", "both": "ours"}, w.Series.Annotations)
	assert.Equal(t, "before", w.Series.Note)
	assert.Equal(t, "now", w.Series.LastNote)
	assert.EqualValues(t, 11, w.Series.Count)
	assert.EqualValues(t, 1, tr.Stats(start).Adopted)

	patch, err := w.Patch()
	require.NoError(t, err)
	want, err := w.Series.PatchSince(&series.Series{State: series.Ongoing, Window: series.FinishAfter})
	require.NoError(t, err)
	assert.Equal(t, string(want), string(patch))
	assert.Contains(t, string(patch), `"resourceVersion":"7"`)

	event.Annotations["theirs"] = strings.Repeat("x", MaxAnnotationBytes)
	ours := map[string]string{"ours": "2"}
	_, w = claimed(t, k, event, Occurrence{Annotations: ours})
	assert.Equal(t, ours, w.Series.Annotations)

	// A patch has the annotations that the Event does not have, or not with this value.
	event.Annotations["theirs"] = "1"
	for value, want := range map[string]bool{"theirs": false, "ours": true} {
		_, w = claimed(t, k, event, Occurrence{Annotations: map[string]string{"both": value}})
		patch, err = w.Patch()
		require.NoError(t, err)
		assert.Equal(t, want, strings.Contains(string(patch), `"both":"`+value+`"`), "%s", patch)
	}

	delete(event.Annotations, "both")
	event.Annotations["theirs"] = strings.Repeat("x", MaxAnnotationBytes-len("theirs"))
	_, w = claimed(t, k, event, Occurrence{})
	assert.Equal(t, map[string]string{"theirs": event.Annotations["theirs"]}, w.Series.Annotations)
}

// Somebody else writes to an Event whenever a new series is about to close it. After some
// attempts, the series begins under another name.
func TestCloseOfAnEventThatOthersTend(t *testing.T) {
	k := testKey("a")
	event := earlierEvent(k, 10)
	event.EventTime.Time = start.Add(-10 * time.Hour)
	event.Series.LastObservedTime.Time = start.Add(-9 * time.Hour)
	tr := New(Options{}, start)
	observe(tr, k, start, Occurrence{})
	tr.Apply(send(t, tr, start, Create), Result{Outcome: Taken}, start)
	closes := 0
	for now := start; ; {
		var w *Write
		if w, now = await(t, tr, now); w.Kind == Create {
			assert.NotEqual(t, event.Name, w.Series.Name)
			break
		}
		outcome := Written
		if w.Kind == Close {
			closes++
			outcome = Changed
		}
		require.Less(t, closes, 10)
		tr.Apply(w, Result{Outcome: outcome, Event: event}, now)
	}
	assert.Equal(t, maxLooks, closes)
}

// Counts stay within what the API has room for.
func TestAdoptedCountSaturates(t *testing.T) {
	for _, count := range []int32{math.MaxInt32, math.MaxInt32 - 1} {
		k := testKey("a")
		tr, w := claimed(t, k, earlierEvent(k, count), Occurrence{}, Occurrence{})
		assert.EqualValues(t, math.MaxInt32, w.Series.Count)
		tr.Apply(w, Result{}, start)
		_, counted, _ := tr.Count(k, tr.offset(start))
		assert.True(t, counted)
		checkInvariants(t, tr, 1)
	}
}

// foreign is an Event that an earlier process can have written, or anybody else.
type foreign struct {
	shared           bool // the scope of the tracker is the controller
	clusterScoped    bool // the object has no namespace
	name             string
	state, successor string
	count            int32
	age, lastAge     int64  // seconds before start
	patch            []byte // changes whatever else there is
}

// key returns the key of the series that claims its name.
func (f *foreign) key() *series.Key {
	k := testKey("a")
	if f.shared {
		k.ReportingInstance = ""
	}
	if f.clusterScoped {
		k.Regarding.Namespace = ""
	}
	return k
}

func (f *foreign) tracker() *Tracker {
	if f.shared {
		return New(Options{Scope: SameController}, start)
	}
	return New(Options{}, start)
}

// event returns the Event, nil if the patch leaves none.
func (f *foreign) event() *eventsv1.Event {
	k := f.key()
	s := series.Series{
		Key: *k, Namespace: "ns", Name: cmp.Or(f.name, k.BaseName()), Note: "before", Count: f.count,
		First: start.Add(-time.Duration(f.age) * time.Second), Last: start.Add(-time.Duration(f.lastAge) * time.Second),
	}
	if f.shared {
		s.Instance = "controller-7"
	}
	event := s.Event()
	event.Annotations = map[string]string{series.AnnotationSuccessor: f.successor}
	if event.Labels = nil; f.state != "" {
		event.Labels = map[string]string{series.LabelState: f.state}
	}
	if len(f.patch) > 0 && json.Unmarshal(f.patch, event) != nil {
		return nil
	}
	return event
}

// belongs reports, independently of the tracker, whether event can belong to a
// series of k, and whether that is alive at start.
func belongs(k *series.Key, shared bool, event *eventsv1.Event) (belongs, isAlive bool) {
	theirs := series.Key{
		Regarding: series.ReferenceOf(&event.Regarding), Related: series.ReferenceOf(event.Related), Type: event.Type,
		Action: event.Action, Reason: event.Reason,
		ReportingController: event.ReportingController, ReportingInstance: event.ReportingInstance,
	}
	if shared {
		theirs.ReportingInstance = ""
	}
	if theirs != *k || event.Namespace != cmp.Or(k.Regarding.Namespace, metav1.NamespaceSystem) || !k.Named(event.Name) {
		return false, false
	}
	soon := start.Add(10 * time.Minute)
	first := event.EventTime.Time
	if first.IsZero() || first.After(soon) {
		return false, false
	}
	_, hasState := event.Labels[series.LabelState]
	if event.Series == nil {
		return !hasState, !hasState && first.After(start.Add(-36*time.Minute))
	}
	last := event.Series.LastObservedTime.Time
	possible := 1_000_000 * (1 + int64(last.Sub(first)/time.Second))
	if event.Series.Count < 2 || last.Before(first) || last.After(soon) || int64(event.Series.Count) > possible {
		return false, false
	}
	switch event.Labels[series.LabelState] {
	case "Ongoing", "Finished", "Unknown":
		return true, last.After(start.Add(-36 * time.Minute))
	default: // without a state, as client-go writes it, it is Unknown
		return !hasState, !hasState && last.After(start.Add(-36*time.Minute))
	}
}

// fuzzForeign runs check with an Event, nil if there is none.
func fuzzForeign(f *testing.F, check func(t *testing.T, its *foreign, event *eventsv1.Event)) {
	k := testKey("a")
	unique := k.UniqueName(start, 0)
	for _, patch := range []string{
		"", `{}`, `{"metadata":{"annotations":null}}`, `{"series":null}`, `{"eventTime":null}`, `{"reason":"Other"}`,
		`{"metadata":{"namespace":"other"}}`, `{"reportingInstance":"other"}`, `{"related":{"kind":"Node"}}`,
		`{"series":{"lastObservedTime":"9999-12-31T23:59:59.999999Z"}}`, `{"eventTime":"0001-01-01T00:00:00.000001Z"}`,
		`{"series":{"lastObservedTime":null}}`, `{"regarding":{"resourceVersion":"1"}}`, `[]`, `null`,
		`{"metadata":{"annotations":{"other":"x"}}}`, `{"metadata":{"name":"x"}}`, `{"metadata":{"resourceVersion":"-7"}}`,
		`{"metadata":{"name":"","namespace":"","annotations":null},"eventTime":null,"series":null,"regarding":{"name":""}}`,
		`{"metadata":{"name":"` + k.UniqueName(start.Truncate(time.Microsecond), 0) + `"}}`,
	} {
		f.Add(false, false, "", "Ongoing", "", int32(100), int64(3600), int64(60), []byte(patch))
	}
	// The Event of a cluster-scoped object is in one namespace only.
	for _, namespace := range []string{"kube-system", "default", "", "ns"} {
		f.Add(false, true, "", "Ongoing", "", int32(10), int64(3600), int64(60), []byte(`{"metadata":{"namespace":"`+namespace+`"}}`))
	}
	for _, successor := range []string{
		"", " ", "x", "x 2026-01-02T03:04:05Z", " " + unique, k.BaseName(), k.BaseName() + ".x",
		testKey("b").UniqueName(start, 0), "../" + unique,
	} {
		f.Add(false, false, "", "Finished", successor, int32(10), int64(3600), int64(60), []byte(nil))
	}
	f.Add(true, false, "", "Ongoing", unique, int32(math.MaxInt32), int64(3600), int64(60), []byte(`{"reportingInstance":""}`))
	f.Add(false, false, "", "", "", int32(1), int64(60), int64(60), []byte(nil))
	f.Add(false, false, "", "", "", int32(100), int64(3567), int64(60), []byte(nil)) // of another recorder
	// It begins as the series does.
	for _, count := range []int32{0, 1, 2, 3, math.MaxInt32} {
		f.Add(false, false, "", "Finished", "", count, int64(0), int64(0), []byte(`{"eventTime":"2026-01-02T03:04:05.123456Z","series":{"lastObservedTime":"2026-01-02T03:04:05.123456Z"}}`))
	}
	f.Add(false, false, "", "", unique+" 2026-01-02T03:04:05Z", int32(1), int64(3600), int64(3600), []byte(nil))
	f.Add(false, false, unique, "Finished", k.BaseName(), int32(3), int64(3600), int64(3600), []byte(nil))
	f.Add(true, false, unique, "Ongoing", unique, int32(3), int64(36000), int64(3600), []byte(nil))
	f.Add(false, false, "", "Ongoing", "", int32(0), int64(math.MinInt64), int64(math.MaxInt64), []byte(nil))
	f.Add(false, false, "", "Ongoing", "x", int32(-1), int64(-61), int64(-60), []byte(nil))
	f.Add(false, false, "", "Ongoing", "", int32(100), int64(600), int64(-600), []byte(nil))
	f.Add(false, false, "", "Ongoing", "", int32(1_000_001), int64(60), int64(60), []byte(nil))
	f.Fuzz(func(t *testing.T, shared, clusterScoped bool, name, state, successor string, count int32, age, lastAge int64, patch []byte) {
		its := &foreign{shared, clusterScoped, name, state, successor, count, age, lastAge, patch}
		check(t, its, its.event())
	})
}

// Whatever Event has the name that a series wants, the series has an Event after a
// few requests, and it is that Event only if that belongs to the same series. The same
// holds if another Event is where that of the series was.
func FuzzClaim(f *testing.F) {
	fuzzForeign(f, func(t *testing.T, its *foreign, event *eventsv1.Event) {
		ours, isAlive := false, false
		if event != nil {
			ours, isAlive = belongs(its.key(), its.shared, event)
		}
		for _, conflicted := range []bool{false, true} {
			before := event.DeepCopy()
			tr := its.tracker()
			occurrence := Occurrence{Note: "now", Instance: "controller-7"}
			e := observe(tr, its.key(), start, occurrence)
			if conflicted {
				w := send(t, tr, start, Create)
				created := w.Series.Event()
				created.ResourceVersion = "1"
				tr.Apply(w, Result{Event: created}, start)
				tr.Observe(its.key(), occurrence, start)
				tr.Apply(send(t, tr, start, MakeSeries), Result{Outcome: Changed}, start)
			}
			looked := false
			for requests := 0; ; requests++ {
				if requests > 7 {
					t.Fatal("the claim does not end")
				}
				tr.Flush(start).Stop() // retry at once
				w, _, ok := tr.Next(start)
				if !ok {
					break
				}
				if !its.key().Named(w.Series.Name) {
					t.Errorf("%s of %s, which no series of the key has", w.Kind, w.Series.Name)
				}
				has := event != nil && w.Series.Name == event.Name
				r := Result{}
				switch {
				case w.Kind == Close && !ours, w.Kind == Signpost && !ours && has:
					t.Errorf("%s of an Event of another key", w.Kind)
				case w.Creates() && (requests == 0 || has):
					r.Outcome = Taken
				case w.Kind == Look && !has && looked:
					r.Outcome = Gone
				case w.Kind == Look:
					// At first the Event is also returned for names that it does not have.
					looked, r.Event = true, event
				case has && w.WritesSeries() && w.Series.Count < its.count:
					t.Errorf("%d becomes %d", its.count, w.Series.Count)
				}
				tr.Apply(w, r, start)
				if !conflicted && w.Kind == Look && r.Outcome == Written && e.exists() != isAlive && (e.exists() || has) {
					t.Errorf("%+v is adopted: %t", event, e.exists())
				}
				checkInvariants(t, tr, 1)
			}
			assert.True(t, e.exists(), e.phase)
			assert.Equal(t, before, event, "a look does not change the Event")
		}
	})
}

// Whatever is listed is restored only if it belongs to a series that this tracker
// could have begun, and is alive or says so.
func FuzzRestore(f *testing.F) {
	fuzzForeign(f, func(t *testing.T, its *foreign, event *eventsv1.Event) {
		if event == nil {
			return
		}
		found, err := series.FromEvent(event)
		if err != nil {
			return
		}
		k := found.Key
		if its.shared {
			k.ReportingInstance = ""
		}
		ours, isAlive := belongs(&k, its.shared, event)
		known := *found
		for _, occurred := range []bool{false, true} {
			tr, now := its.tracker(), start
			if occurred {
				tr.Observe(&k, Occurrence{}, now)
			}
			restored, drops := tr.Restore(found, now)
			require.Empty(t, drops)
			checkInvariants(t, tr, 0)
			switch {
			case !restored && isAlive:
				t.Errorf("%+v is not restored", event)
			case !restored:
				continue
			case !ours || !isAlive && found.State != series.Ongoing:
				t.Errorf("%+v is restored", event)
			}
			if again, _ := tr.Restore(found, now); again {
				t.Error("it is restored twice")
			}
			for range 5 { // its later life
				writeAll(tr, now, func(w *Write) Outcome {
					if w.Kind == Look {
						return Gone
					}
					if w.Series.Name == found.Name && (w.Series.Count < found.Count || w.Series.Last.UnixMicro() < found.Last.UnixMicro()) {
						t.Errorf("%+v becomes %+v", found, w.Series)
					}
					return Written
				})
				now = now.Add(7 * time.Minute)
				tr.Advance(now)
			}
			checkInvariants(t, tr, 0)
		}
		if known.Key != found.Key || known.Count != found.Count || known.Name != found.Name {
			t.Error("Restore has changed what it was given")
		}
	})
}

// The sink is an API server: what the tracker sends passes its validation, and the
// server writes each renewal of a signpost. A signpost names the version of the Event
// that it is for.
func TestSignpostIsRenewed(t *testing.T) {
	var api fakeapi.Server
	k := testKey("a")
	event := earlierEvent(k, 10)
	event.Labels[series.LabelState] = "Finished"
	event.Series.LastObservedTime.Time = event.EventTime.Time // long ago
	api.Put(event)
	tr, w := claimed(t, k, event, Occurrence{}, Occurrence{})
	tr.Apply(w, Result{}, start)
	versions := map[string]bool{}
	for i := range 3 {
		now := start.Add(time.Duration(i+1) * time.Minute)
		w := send(t, tr, now, Signpost)
		patch, err := w.Patch()
		require.NoError(t, err)
		patched, err := api.Patch(context.Background(), event, patch)
		require.NoError(t, err)
		assert.Equal(t, entryOf(tr, k).name()+" "+now.UTC().Format(time.RFC3339Nano), patched.Annotations[series.AnnotationSuccessor])
		versions[patched.ResourceVersion] = true
		tr.Apply(w, Result{Event: patched}, now)
		tr.Count(k, tr.offset(now))
		beat(tr, entryOf(tr, k), now)
		write(t, tr, now, Heartbeat)
	}
	assert.Len(t, versions, 3)

	// Somebody replaces that Event.
	now := start.Add(3 * time.Minute)
	w = send(t, tr, now, Signpost)
	assert.True(t, versions[w.Series.Version], w.Series.Version)
	tr.Apply(w, Result{Outcome: Changed}, now)
	w = send(t, tr, now, Look)
	event.Reason = "Other"
	tr.Apply(w, Result{Event: event}, now)
	_, _, ok := tr.Next(now)
	assert.False(t, ok, "the Event of a stranger needs no signpost")
}

// Two entries of one key begin in the same microsecond, and no create of either has a
// response.
func TestEventOfAnotherEntryIsNotOwn(t *testing.T) {
	tr := New(Options{Capacity: 2}, start)
	k := testKey("a")
	twice := func(k *series.Key, now time.Time) {
		tr.Observe(k, Occurrence{Instance: "controller-0"}, now)
		tr.Observe(k, Occurrence{Instance: "controller-0"}, now)
	}
	twice(k, start)
	first := entryOf(tr, k)
	w := send(t, tr, start, Create)
	tr.Apply(w, Result{Outcome: Troubled}, start)
	found := w.Series
	assert.Equal(t, own, judgeFor(tr, first, &found, start))

	// Others evict the first entry, and the second one evicts one of them.
	twice(testKey("b"), start.Add(time.Microsecond))
	twice(testKey("c"), start.Add(time.Microsecond))
	twice(k, start.Add(tr.opts.MaxWindow))
	second := entryOf(tr, k)
	require.NotSame(t, first, second)
	second.more().attempts, second.spec.first = first.rare.attempts, first.spec.first
	assert.Equal(t, tended, judgeFor(tr, second, &found, start))
	assert.Equal(t, own, judgeFor(tr, first, &found, start))
}

// A series is quiet here but not in another process, which ends it later.
func TestClosingSeriesIsNotReopened(t *testing.T) {
	k := testKey("a")
	tr := New(Options{HeartbeatInterval: time.Minute}, start)
	event := func(w *Write, version string, count int32, state series.State, last time.Time) *eventsv1.Event {
		s := w.Series
		s.Count, s.State, s.Last = count, state, last
		e := s.Event()
		e.ResourceVersion = version
		return e
	}
	tr.Observe(k, Occurrence{}, start)
	tr.Observe(k, Occurrence{}, start)
	w := send(t, tr, start, Create)
	tr.Apply(w, Result{Event: event(w, "1", 2, series.Ongoing, start)}, start)
	tr.Observe(k, Occurrence{}, start)
	now := start.Add(6 * time.Minute)
	tr.Advance(now)
	tr.Apply(send(t, tr, now, Finish), Result{Outcome: Changed}, now)
	w = send(t, tr, now, Look)
	tr.Apply(w, Result{Event: event(w, "2", 5, series.Ongoing, now)}, now)
	tr.Apply(send(t, tr, now, FlushCount), Result{Outcome: Changed}, now)
	now = now.Add(time.Minute)
	tr.Advance(now)
	w = send(t, tr, now, Look)
	tr.Apply(w, Result{Event: event(w, "3", 5, series.Finished, now)}, now)
	if w, _, ok := tr.Next(now); ok {
		assert.True(t, w.Series.State.Closed(), "%v of %v at version %s", w.Kind, w.Series.State, w.Series.Version)
	}
}

// The microseconds of a time name the process, whatever the time is.
func TestMarkedTimes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		tr := New(Options{}, start)
		last, atLeast := rng.Int64N(1<<52)-1<<51, int64(math.MinInt64)
		if rng.IntN(2) == 0 {
			atLeast = last - rng.Int64N(2)
		}
		at := tr.marked(last, atLeast)
		require.GreaterOrEqual(t, at, atLeast)
		require.Less(t, max(at-last, last-at), int64(2*markRange))
		require.Equal(t, at, tr.marked(at, at), "a retry says the same")
		require.Zero(t, (at-tr.epoch.UnixMicro()-tr.mark)%markRange)
	}
}
