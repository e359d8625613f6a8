package tracker

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/eventseries/eventseries/internal/schedule"
	"github.com/eventseries/eventseries/internal/wallclock"
	"github.com/eventseries/eventseries/series"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// entryOf returns the entry of a key, nil if there is none.
func entryOf(tr *Tracker, k *series.Key) *Entry { return tr.find(hashOf(tr.seed, k), k) }

// observe records occurrences, and returns the entry that they belong to.
func observe(t testing.TB, tr *Tracker, k *series.Key, now time.Time, occurrences ...Occurrence) *Entry {
	t.Helper()
	for _, o := range occurrences {
		require.Empty(t, tr.Observe(k, o, now))
	}
	return entryOf(tr, k)
}

// advance handles what is due, and returns what was dropped.
func advance(tr *Tracker, now time.Time) (drops []Drop) {
	for {
		_, lost, wake := tr.Next(now, false)
		drops = append(drops, lost...)
		if wake.IsZero() || wake.After(now) {
			return drops
		}
	}
}

// next returns the next write, if there is one.
func next(tr *Tracker, now time.Time) (w *Write, drops []Drop, ok bool) {
	w, drops, _ = tr.Next(now, true)
	return w, drops, w != nil
}

// wakes returns when something is due, and when there can be a write.
func wakes(tr *Tracker, now time.Time) (due, request time.Time) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	at := tr.offset(now)
	times := [2]time.Time{}
	for i, until := range list(tr.sched.Wake(at)) {
		if until < schedule.Never {
			times[i] = now.Add(until - at)
		}
	}
	return times[0], times[1]
}

func list[T any](a, b T) []T { return []T{a, b} }

// send returns the next write, which must be of the given kind.
func send(t testing.TB, tr *Tracker, now time.Time, kind Kind) *Write {
	t.Helper()
	require.Empty(t, advance(tr, now))
	w, drops, ok := next(tr, now)
	require.True(t, ok, "a %s is ready", kind)
	require.Empty(t, drops)
	require.Equal(t, kind.String(), w.Kind.String())
	return w
}

// write sends the next write, which the server accepts.
func write(t testing.TB, tr *Tracker, now time.Time, kind Kind) *Write {
	t.Helper()
	w := send(t, tr, now, kind)
	require.Empty(t, tr.Apply(w, Response{}, now))
	return w
}

// writeAll sends all writes that are ready, and returns what was dropped.
func writeAll(tr *Tracker, now time.Time, respond func(*Write) schedule.Outcome) (drops []Drop) {
	drops = advance(tr, now)
	for {
		w, lost, ok := next(tr, now)
		drops = append(drops, lost...)
		if !ok {
			return drops
		}
		drops = append(drops, tr.Apply(w, Response{Outcome: respond(w)}, now)...)
	}
}

// await returns the next write, and when it is ready.
func await(t testing.TB, tr *Tracker, now time.Time) (*Write, time.Time) {
	t.Helper()
	for range 100 {
		require.Empty(t, advance(tr, now))
		w, drops, ok := next(tr, now)
		require.Empty(t, drops)
		if ok {
			return w, now
		}
		advance, next := wakes(tr, now)
		if now = next; next.IsZero() || !advance.IsZero() && advance.Before(next) {
			now = advance
		}
		require.False(t, now.IsZero(), "nothing is ever ready")
	}
	require.Fail(t, "Wake returns what is over")
	return nil, now
}

// accept is how a server responds that accepts everything.
func accept(*Write) schedule.Outcome { return schedule.Written }

// named returns a key of an object with a name of its own.
func named(key, name string) *series.Key {
	k := testKey(key)
	k.Regarding.Name = name
	return k
}

func TestOptions(t *testing.T) {
	assert.Equal(t, Options{
		FinishAfter: 6 * time.Minute, MaxWindow: 36 * time.Minute, Capacity: 65536, EventTTL: time.Hour, HeartbeatInterval: 30 * time.Minute, ClusterNamespace: "kube-system", Workers: math.MaxInt32,
	}, Options{}.WithDefaults())
	assert.Equal(t, time.Hour, Options{FinishAfter: time.Hour}.WithDefaults().MaxWindow)
	assert.EqualValues(t, 1, Options{EventTTL: 1}.WithDefaults().HeartbeatInterval)
}

func TestNamesOfKinds(t *testing.T) {
	for kind := range Kinds {
		assert.NotEmpty(t, kind.String())
		w := Write{Kind: kind}
		assert.Equal(t, kind == Create || kind == Recreate, w.Creates(), kind)
	}
}

// Each outcome that is a failure has a reason for which a series is given up.
func TestReasons(t *testing.T) {
	for outcome := range schedule.Outcomes {
		assert.NotEmpty(t, outcome.String())
		assert.Equal(t, outcome.Passed(), reasons[outcome] == "", outcome)
	}
}

// A patch contains the note and the annotations that have changed since the latest one that the
// server has accepted.
func TestPatchesContainWhatHasChanged(t *testing.T) {
	k, at := testKey("a"), start
	tr := New(Options{}, at)
	stored := &eventsv1.Event{}
	version := 0
	emit := func(kind Kind, outcome schedule.Outcome, want string, o Occurrence) {
		t.Helper()
		at = at.Add(time.Minute)
		observe(t, tr, k, at, o)
		if kind == FlushCount {
			defer tr.Flush(at).Stop()
		}
		w := send(t, tr, at, kind)
		if kind != Create {
			patch, err := w.Patch()
			require.NoError(t, err)
			var got struct {
				Metadata struct{ Annotations map[string]*string }
			}
			require.NoError(t, json.Unmarshal(patch, &got))
			delete(got.Metadata.Annotations, series.AnnotationHeartbeat)
			assert.JSONEq(t, want, strings.ReplaceAll(toJSON(t, got.Metadata.Annotations), series.AnnotationPrefix, ""), "minute %v", at.Sub(start).Minutes())
		}
		version++
		stored.ResourceVersion = strconv.Itoa(version)
		require.Empty(t, tr.Apply(w, Response{Outcome: outcome, Event: stored.DeepCopy()}, at))
	}
	x := map[string]string{"x": "1"}
	emit(Create, schedule.Written, "", Occurrence{Note: "one", Annotations: x})
	emit(MakeSeries, schedule.Written, `{}`, Occurrence{Note: "one", Annotations: x})
	emit(FlushCount, schedule.Written, `{"last-note":"two"}`, Occurrence{Note: "two"})
	emit(FlushCount, schedule.Written, `null`, Occurrence{Note: "two", Annotations: x})
	emit(FlushCount, schedule.PushedBack, `{"last-note":null,"x":"2"}`, Occurrence{Note: "one", Annotations: map[string]string{"x": "2"}})
	at = at.Add(time.Minute)
	emit(FlushCount, schedule.Written, `{"last-note":null,"x":"2"}`, Occurrence{})
	emit(FlushCount, schedule.Written, `null`, Occurrence{Note: "one"})
}

// What is patched equals what would be created, however the series has changed.
func TestPatchedIsCreated(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 0))
		w := newWorld(t, Options{}, newServer(t))
		now := time.Duration(0)
		w.see("a", "a", map[string]string{"first": "1"}, now)
		for range 6 {
			w.flush(now)
			require.NotEqual(t, "no write", w.begin("a", now))
			sent := w.inFlight[0].Series
			w.answer("a", now)
			want, got := sent.Event(), w.remote.all("a")[0].event.DeepCopy()
			require.Equal(t, want.Annotations, got.Annotations, "seed %d", seed)
			got.ObjectMeta = want.ObjectMeta
			require.Equal(t, toJSON(t, want), toJSON(t, got), "seed %d", seed)
			for range 1 + rng.IntN(3) {
				now += 10 * time.Second
				w.see("a", oneOf(rng, "", "a", "b", "c"), map[string]string{oneOf(rng, "first", "x", series.AnnotationLastNote, series.AnnotationPrefix+"x"): "new"}, now)
			}
		}
	}
}

// A sink that returns no resourceVersion cannot reject a patch that arrives late, after a newer one.
// The next write repairs all that it has overwritten: also the window.
func TestPatchesWithoutVersionsRepeatAll(t *testing.T) {
	tr, k := New(Options{}, start), testKey("a")
	write := func(after time.Duration, o schedule.Outcome) string {
		now := start.Add(after)
		observe(t, tr, k, now, Occurrence{})
		defer tr.Flush(now).Stop()
		w, now := await(t, tr, now)
		require.Empty(t, tr.Apply(w, Response{Outcome: o}, now))
		if w.Creates() {
			return ""
		}
		patch, err := w.Patch()
		require.NoError(t, err)
		return string(patch)
	}
	write(0, schedule.Written)
	require.Contains(t, write(5*time.Minute, schedule.Troubled), `"eventseries.dev/window":"10m30s"`)
	require.Contains(t, write(15*time.Minute, schedule.Written), `"eventseries.dev/window":"21m"`)
	// The server applies the first patch now.
	require.Contains(t, write(25*time.Minute, schedule.Written), `"eventseries.dev/window":"21m"`)
}

// The Event of an object without a namespace must be somewhere.
func TestClusterNamespace(t *testing.T) {
	node := &series.Key{Regarding: series.Reference{Kind: "Node", Name: "n1"}, Type: "Normal", Reason: "R", Action: "A"}
	for option, want := range map[string]string{"": "kube-system", "default": "default"} {
		tr := New(Options{ClusterNamespace: option}, start)
		observe(t, tr, node, start, Occurrence{})
		assert.Equal(t, want, send(t, tr, start, Create).Series.Namespace)
		single := tr.Single(node, Occurrence{}, start)
		assert.Equal(t, want, single.Namespace)
	}
}

// Hash and equality: each field of a key makes a difference to the entry that is found. The hash
// leaves out those of which there are few combinations for one object.
func TestKeysAreToldApart(t *testing.T) {
	tr := New(Options{}, start)
	k := &series.Key{}
	for i, word := range wordsOf(k) {
		word.SetString(strings.Repeat(string(rune('a'+i)), i+1))
	}
	observe(t, tr, k, start, Occurrence{DistinctNotes: 100})
	var leftOut []string
	for i, word := range wordsOf(k) {
		other := *k
		wordsOf(&other)[i].SetString(word.String() + "x")
		if hashOf(tr.seed, &other) == hashOf(tr.seed, k) {
			leftOut = append(leftOut, word.String())
		}
		require.Nil(t, entryOf(tr, &other), "field %d", i)
		observe(t, tr, &other, start, Occurrence{DistinctNotes: 100})
		require.Equal(t, other, entryOf(tr, &other).Key(), "field %d", i)
	}
	assert.ElementsMatch(t, []string{
		k.Regarding.APIVersion, k.Regarding.Kind, k.Regarding.Namespace,
		k.Related.APIVersion, k.Related.Kind, k.Related.Namespace, k.Related.FieldPath,
		k.Type, k.ReportingController, k.ReportingInstance, k.Note,
	}, leftOut)
	for _, r := range []*series.Reference{&k.Regarding, &k.Related} {
		r.UID = ""
		before := hashOf(tr.seed, k)
		r.Namespace += "x"
		assert.NotEqual(t, before, hashOf(tr.seed, k), "nothing else tells such objects apart")
	}
	checkInvariants(t, tr, start, 0)
	tr.Clear("Test", start)
	assert.Empty(t, tr.entries)
}

// wordsOf returns the place of each string in a key.
func wordsOf(k *series.Key) (places []reflect.Value) {
	var walk func(reflect.Value)
	walk = func(v reflect.Value) {
		if v.Kind() == reflect.String {
			places = append(places, v)
			return
		}
		for i := range v.NumField() {
			walk(v.Field(i))
		}
	}
	walk(reflect.ValueOf(k).Elem())
	return places
}

func TestMergeAnnotations(t *testing.T) {
	long := strings.Repeat("x", MaxAnnotationBytes-1)
	type m = map[string]string
	for _, tt := range []struct {
		name              string
		old, latest, want m
	}{
		{"nothing", nil, nil, nil},
		{"first", nil, m{"a": "1"}, m{"a": "1"}},
		{"none later", m{"a": "1"}, nil, m{"a": "1"}},
		{"same", m{"a": "1", "b": "2"}, m{"a": "1"}, m{"a": "1", "b": "2"}},
		{"changed", m{"a": "1", "b": "2"}, m{"a": "3"}, m{"a": "3", "b": "2"}},
		{"added", m{"a": "1"}, m{"b": ""}, m{"a": "1", "b": ""}},
		{"reserved alone", nil, m{series.AnnotationLastNote: "Finished"}, nil},
		{"reserved among others", m{"a": "1"}, m{series.AnnotationLastNote: "x", series.AnnotationPrefix + "y": "z", "b": "2"}, m{"a": "1", "b": "2"}},
		{"as much as there is room for", nil, m{"a": long}, m{"a": long}},
		{"reserved ones need no room", nil, m{"a": long, series.AnnotationLastNote: "x"}, m{"a": long}},
		{"too much at once", nil, m{"ab": long}, nil},
		{"too much in the end", m{"a": long}, m{"b": "x"}, m{"a": long}},
		{"other values fit", m{"a": long}, m{"a": "x", "b": "y"}, m{"a": "x", "b": "y"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			old, latest := maps.Clone(tt.old), maps.Clone(tt.latest)
			assert.Equal(t, tt.want, mergeAnnotations(tt.old, tt.latest))
			assert.Equal(t, old, tt.old, "writes in flight share it")
			assert.Equal(t, latest, tt.latest, "it belongs to the caller")
		})
	}
}

func TestStats(t *testing.T) {
	tr := New(Options{Capacity: 5}, start)
	check := func(now time.Time, want ...int) {
		t.Helper()
		s := tr.Stats(now)
		assert.Equal(t, want, []int{s.Singletons, s.Ongoing, s.Ended, s.Closing, s.Waiting})
	}
	check(start, 0, 0, 0, 0, 0)
	a, b := testKey("a"), testKey("B")
	observe(t, tr, a, start, Occurrence{})
	observe(t, tr, b, start.Add(time.Second), Occurrence{})
	check(start, 2, 0, 0, 0, 2)
	observe(t, tr, b, start, Occurrence{})
	check(start, 1, 1, 0, 0, 2)
	assert.Equal(t, 3*time.Second, tr.Stats(start.Add(3*time.Second)).LongestWait)
	w := send(t, tr, start, Create)
	check(start, 1, 1, 0, 0, 2)
	tr.Apply(w, Response{Outcome: schedule.Troubled, MayBeStored: true}, start)
	check(start, 1, 1, 0, 0, 2)
	now := start.Add(time.Minute)
	write(t, tr, now, Create)
	w = send(t, tr, now, Create)
	tr.Apply(w, Response{Outcome: schedule.PushedBack, Pause: 5 * time.Second}, now)
	s := tr.Stats(now.Add(time.Second))
	assert.Equal(t, []schedule.Namespace{{Name: w.Series.Namespace, Waiting: 1, LongestWait: time.Minute, Failures: 2, Pause: 4 * time.Second}}, s.Sick)
	now = now.Add(5 * time.Second)
	assert.Equal(t, time.Minute+4*time.Second, write(t, tr, now, Create).Waited)
	check(now, 1, 1, 0, 0, 0)
	now = now.Add(7 * time.Minute)
	advance(tr, now)
	check(now, 0, 0, 2, 0, 1)
	write(t, tr, now, Finish)
	check(now, 0, 0, 2, 0, 0)
	assert.EqualValues(t, 3, tr.Stats(now).Occurrences)
	// What occurs during a request waits since its response.
	observe(t, tr, a, now, Occurrence{})
	w = send(t, tr, now, MakeSeries)
	later := now.Add(40 * time.Minute)
	observe(t, tr, a, later, Occurrence{})
	tr.Apply(w, Response{}, later)
	assert.Zero(t, tr.Stats(later).LongestWait)
	assert.Equal(t, 1, tr.Stats(later).Waiting)
	assert.Equal(t, 5, tr.Stats(now).Capacity)
	tr.Clear("Test", now)
	check(now, 0, 0, 0, 0, 0)
}

// A wall clock that is set neither ends a series nor keeps one, and the times that the server stores
// do not go back.
func TestWallClockIsSet(t *testing.T) {
	for _, by := range []time.Duration{-time.Hour, time.Hour} {
		for _, restored := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restored %t", by, restored), func(t *testing.T) { testWallClockIsSet(t, by, restored) })
		}
	}
}

func testWallClockIsSet(t *testing.T, by time.Duration, restored bool) {
	begin := time.Now()
	tr := New(Options{MaxWindow: 6 * time.Minute, Seed: uint64(markRange)}, begin)
	k := testKey("a")
	at := func(d time.Duration) time.Time { return begin.Add(d).Round(0).Truncate(time.Microsecond) }
	before, count := restorable(k, at(-time.Hour), at(-10*time.Minute)), 7
	if restored {
		ok, _ := tr.Restore(before, begin)
		require.True(t, ok)
	} else {
		observe(t, tr, k, begin, Occurrence{})
		observe(t, tr, k, begin.Add(time.Minute), Occurrence{})
		before, count = &write(t, tr, begin.Add(time.Minute), Create).Series, 2
		assert.False(t, before.Last.Before(before.First))
	}

	now := wallclock.Set(begin.Add(5*time.Minute), by)
	assert.Empty(t, advance(tr, now))
	observe(t, tr, k, now, Occurrence{})
	if wake, _ := wakes(tr, now); !restored {
		assert.Less(t, wake.Sub(now), 7*time.Minute)
	}
	flush := func() series.Series {
		tr.Flush(now)
		w, _, ok := next(tr, now)
		require.True(t, ok)
		require.Empty(t, tr.Apply(w, Response{}, now))
		return w.Series
	}
	after := flush()
	assert.EqualValues(t, count+1, after.Count)
	assert.False(t, after.Last.Before(before.Last))
	if by > 0 {
		assert.Equal(t, now.UnixMicro(), after.Last.UnixMicro(), "the new time is believed")
	} else {
		assert.Equal(t, before.Last.UnixMicro(), after.Last.UnixMicro())
	}

	// It is set right again.
	now = begin.Add(6 * time.Minute)
	observe(t, tr, k, now, Occurrence{})
	assert.False(t, flush().Last.Before(after.Last))

	ends := 12 * time.Minute
	if restored { // the earlier process may run
		ends = 26*time.Minute + 2*time.Second
	}
	advance(tr, wallclock.Set(begin.Add(ends-2*time.Second-time.Microsecond), by))
	assert.Equal(t, 1, tr.Stats(now).Ongoing)
	now = wallclock.Set(begin.Add(ends), by)
	advance(tr, now)
	assert.Zero(t, tr.Stats(now).Ongoing)
	assert.False(t, write(t, tr, now, Finish).Series.Last.Before(after.Last))
	checkInvariants(t, tr, now, 0)
}

// The first write comes after the clock was set back, so the first occurrence is in the future. The
// latest is not before it. If there is no response, the server may have stored the request, so the
// next attempt has no earlier time.
func TestWallClockIsSetBeforeTheFirstWrite(t *testing.T) {
	begin := time.Now()
	tr, k := New(Options{Seed: uint64(markRange)}, begin), testKey("a")
	observe(t, tr, k, begin, Occurrence{})
	now := wallclock.Set(begin.Add(time.Minute), -time.Hour)
	observe(t, tr, k, now, Occurrence{})
	w := send(t, tr, now, Create)
	assert.EqualValues(t, 2, w.Series.Count)
	assert.Equal(t, begin.UnixMicro(), w.Series.First.UnixMicro())
	assert.Equal(t, w.Series.First, w.Series.Last)
	_, err := series.FromEvent(w.Series.Event())
	assert.NoError(t, err)

	tr.Apply(w, Response{Outcome: schedule.Troubled, MayBeStored: true}, now)
	later := send(t, tr, begin.Add(2*time.Minute), Create)
	assert.Equal(t, begin.Add(time.Minute).UnixMicro(), later.Series.Last.UnixMicro(), "the clock was set right")
	tr.Apply(later, Response{Outcome: schedule.Troubled, MayBeStored: true}, begin.Add(2*time.Minute))
	now = wallclock.Set(begin.Add(4*time.Minute), -time.Minute)
	assert.Equal(t, later.Series.Last, send(t, tr, now, Create).Series.Last)
}

// A count stays where the API has no room for more, and times continue.
func TestCountSaturates(t *testing.T) {
	tr, k := New(Options{Seed: uint64(markRange)}, start), testKey("a")
	e := observe(t, tr, k, start, Occurrence{}, Occurrence{})
	write(t, tr, start, Create)
	e.count = math.MaxInt32 - 2
	for i, want := range []int32{math.MaxInt32 - 1, math.MaxInt32} {
		now := start.Add(time.Duration(i+1) * time.Minute)
		_, counted, _ := tr.Count(k, tr.offset(now))
		require.True(t, counted)
		tr.Flush(now)
		w := write(t, tr, now, FlushCount)
		assert.Equal(t, want, w.Series.Count)
		assert.Equal(t, now.UnixMicro(), w.Series.Last.UnixMicro())
	}
	for i := range 10 {
		tr.Count(k, tr.offset(start.Add(time.Duration(i+3)*time.Minute)))
	}
	assert.Zero(t, tr.Flush(start).Left())
	now := start.Add(20 * time.Minute)
	w := write(t, tr, now, Finish)
	assert.EqualValues(t, math.MaxInt32, w.Series.Count)
	assert.Equal(t, start.Add(12*time.Minute).UnixMicro(), w.Series.Last.UnixMicro())
	checkInvariants(t, tr, now, 1)
}

// restorable returns a series of k that an earlier process has left.
func restorable(k *series.Key, first, last time.Time) *series.Series {
	return &series.Series{
		Key: *k, State: series.Ongoing, Namespace: k.Regarding.Namespace, Name: k.Name(0), Instance: "controller-0",
		Count: 7, First: first, Last: last,
	}
}

// Series that have not been written for long, however long, are finished with the time that they have.
func TestRestoreLongQuiet(t *testing.T) {
	for _, last := range []time.Time{{}, start.AddDate(-1000, 0, 0), start.Add(-67 * time.Minute)} {
		tr := New(Options{Capacity: math.MaxInt}, start)
		restored, drops := tr.Restore(restorable(testKey("a"), last, last), start)
		require.True(t, restored)
		require.Empty(t, drops)
		checkInvariants(t, tr, start, 0)
		w := send(t, tr, start, Finish)
		assert.Equal(t, series.Finished, w.Series.State)
		assert.Equal(t, last.UnixMicro(), w.Series.Last.UnixMicro())
	}
}

// Readers never take an Ongoing series for stale, however rarely it occurs.
func TestHeartbeatIsKept(t *testing.T) {
	for _, finishAfter := range []time.Duration{time.Minute, 6 * time.Minute, 20 * time.Minute, time.Hour} {
		tr, k := New(Options{FinishAfter: finishAfter}, start), testKey("a")
		observe(t, tr, k, start, Occurrence{}, Occurrence{})
		stored := &write(t, tr, start, Create).Series
		for now := start; now.Before(start.Add(5 * time.Hour)); now = now.Add(time.Minute) {
			if now.Sub(start)%max(finishAfter-time.Minute, time.Minute) == 0 {
				observe(t, tr, k, now, Occurrence{})
			}
			advance(tr, now)
			assert.Equal(t, series.Ongoing, stored.StateAt(now), "%s after the last occurrence that is stored", now.Sub(stored.Last))
			if w, _, ok := next(tr, now); ok {
				tr.Apply(w, Response{}, now)
				stored = &w.Series
			}
			assert.Equal(t, 30*time.Minute, stored.Heartbeat)
		}
	}
}

// Whatever the keys differ in, the heartbeats of many do not come at the same time: neither those of
// one process, nor those of the processes of a DaemonSet. No heartbeat is later than an interval.
func TestHeartbeatsOfSimilarKeysSpread(t *testing.T) {
	for name, vary := range map[string]func(*series.Key, string){
		"namespace": func(k *series.Key, s string) { k.Regarding.Namespace = s },
		"name":      func(k *series.Key, s string) { k.Regarding.Name = s },
		"uid":       func(k *series.Key, s string) { k.Regarding.UID = types.UID(s) },
		"related":   func(k *series.Key, s string) { k.Related.Namespace = s },
		"note":      func(k *series.Key, s string) { k.Note = s },
		"instance":  func(k *series.Key, s string) { k.ReportingInstance = s },
	} {
		tr := New(Options{Workers: 10}, start)
		const n, minutes = 1500, 30
		var due [minutes + 1]int
		for i := range n {
			k := testKey("a")
			vary(k, fmt.Sprint("x-", i))
			o := Occurrence{Note: "n", DistinctNotes: n}
			e := observe(t, tr, k, start, o, o)
			write(t, tr, start, Create)
			require.LessOrEqual(t, e.beatAt, tr.offset(start)+minutes*time.Minute)
			if i > tr.opts.Workers {
				due[e.beatAt/time.Minute]++
			} else if i < tr.opts.Workers {
				require.Equal(t, minutes*time.Minute, e.beatAt-tr.offset(start), "few need not be spread")
			}
		}
		assert.Less(t, slices.Max(due[:]), 2*n/minutes, "%s: %v", name, due)
	}
}

// What the server denies for longer than it keeps an Event, while it answers others, is dropped.
// Other namespaces are not affected, and in an outage nothing is dropped.
func TestGivingUp(t *testing.T) {
	for outcome, reason := range map[schedule.Outcome]DropReason{schedule.Denied: DropDenied, schedule.Troubled: DropUnavailable} {
		for _, isOutage := range []bool{false, true} {
			tr, dropped := New(Options{}, start), 0
			lose := func(drops []Drop) {
				for _, d := range drops {
					assert.Equal(t, reason, d.Reason)
					assert.True(t, isOutage || d.Key.Regarding.Namespace == "ns-a")
					dropped += d.Count
				}
			}
			now := start
			for range 75 {
				lose(tr.Observe(testKey("a"), Occurrence{}, now))
				lose(tr.Observe(testKey("b"), Occurrence{}, now))
				lose(writeAll(tr, now, func(w *Write) schedule.Outcome {
					if w.Series.Namespace == "ns-a" || isOutage {
						return outcome
					}
					return schedule.Written
				}))
				checkInvariants(t, tr, now, 1)
				now = now.Add(time.Minute)
			}
			if isOutage && outcome == schedule.Troubled {
				assert.Zero(t, dropped, "the server has answered nothing")
				continue
			}
			if !isOutage {
				assert.GreaterOrEqual(t, dropped, 60, "%s", outcome)
				assert.Equal(t, live, entryOf(tr, testKey("b")).phase)
			}
		}
	}
}

// A permission arrives after more than EventTTL. Each series is tried once more before it is dropped.
func TestGivingUpSparesTheOthers(t *testing.T) {
	const n = 10
	tr, now, denied := New(Options{}, start), start, true
	for i := range n {
		observe(t, tr, named("a", fmt.Sprint(i)), now, Occurrence{})
	}
	var drops []Drop
	written := 0
	for denied || tr.Stats(now).Waiting > 0 {
		tr.Observe(testKey("b"), Occurrence{}, now) // the server answers others
		drops = append(drops, writeAll(tr, now, func(w *Write) schedule.Outcome {
			switch {
			case w.Series.Namespace == "ns-b":
			case denied:
				denied = now.Sub(start) < time.Hour
				return schedule.Denied
			default:
				written++
			}
			return schedule.Written
		})...)
		now = now.Add(time.Minute)
		require.Less(t, now.Sub(start), 3*time.Hour)
	}
	assert.Len(t, drops, 1)
	assert.Equal(t, n-1, written)
}

// What has failed for long may pass when the fault is over. A denial of another object says nothing about it.
func TestDenialsGiveUpNoFailures(t *testing.T) {
	tr, now := New(Options{}, start), start
	failed := observe(t, tr, named("a", "failed"), now, Occurrence{})
	for i := range 20 {
		observe(t, tr, named("a", fmt.Sprint("denied-", i)), now, Occurrence{})
	}
	for now.Before(start.Add(2 * time.Hour)) {
		tr.Observe(testKey("b"), Occurrence{}, now) // the server answers others
		for _, d := range writeAll(tr, now, func(w *Write) schedule.Outcome {
			switch {
			case w.Series.Namespace == "ns-b":
				return schedule.Written
			case w.entry == failed && now.Before(start.Add(time.Hour)):
				return schedule.Troubled
			case w.entry == failed:
				return schedule.Written
			}
			return schedule.Denied
		}) {
			require.Contains(t, d.Key.Regarding.Name, "denied")
		}
		now = now.Add(time.Second)
	}
	assert.Equal(t, live, failed.phase)
}

// What has failed and has waited for EventTTL needs no request of its own to be dropped, and has the reason of its own
// response. What has not failed is sent first. No lock takes long.
func TestGivingUpMany(t *testing.T) {
	const n = 1000
	tr, now := New(Options{Capacity: 2 * n}, start), start
	for i := range n {
		observe(t, tr, named("a", fmt.Sprint(i)), now, Occurrence{})
	}
	outcome := func(w *Write) schedule.Outcome {
		switch {
		case w.Series.Namespace == "ns-b":
			return schedule.Written
		case strings.HasSuffix(w.Series.Key.Regarding.Name, "7"):
			return schedule.Refused
		}
		return schedule.Denied
	}
	require.Empty(t, writeAll(tr, now, outcome))
	requests := 0
	for ; now.Before(start.Add(time.Hour)); now = now.Add(time.Second) {
		tr.Observe(testKey("b"), Occurrence{}, now)
		require.Empty(t, writeAll(tr, now, func(w *Write) schedule.Outcome { requests++; return outcome(w) }))
	}
	var drops []Drop
	for requests = 0; len(drops) < n; now = now.Add(time.Second) {
		require.Less(t, now.Sub(start), time.Hour+2*time.Minute)
		w, lost, wake := tr.Next(now, true)
		require.LessOrEqual(t, len(lost), batch)
		if drops = append(drops, lost...); wake.Equal(now) {
			now = now.Add(-time.Second)
		}
		if w != nil {
			requests++
			lost = tr.Apply(w, Response{Outcome: outcome(w)}, now)
			require.LessOrEqual(t, len(lost), 1)
			drops = append(drops, lost...)
		}
	}
	assert.LessOrEqual(t, requests, 130)
	for _, d := range drops {
		want := DropDenied
		if strings.HasSuffix(d.Key.Regarding.Name, "7") {
			want = DropRejected
		}
		require.Equal(t, want, d.Reason)
	}
	checkInvariants(t, tr, now, 1)
}

// Adopted counts series that continue in an Event found by its name.
func TestAdopted(t *testing.T) {
	w := newWorld(t, Options{}, newServer(t))
	w.stand("a", series.Series{State: series.Ongoing, Count: 7, First: timeOf(-time.Hour), Last: timeOf(-time.Minute)}, "base", false)
	for _, key := range []string{"a", "b"} {
		w.see(key, "", nil, 0)
		run(w, 0, []string{"write", key})
		run(w, 0, []string{"write", key})
	}
	assert.EqualValues(t, 1, w.tracker.Stats(start).Adopted)
}

// Each look is a conflict, too, as a webhook that changes the Event each time can make it. That is no hot
// loop, and no rarer than others.
func TestLooksThatAreConflicts(t *testing.T) {
	tr, k, now := New(Options{FirstHeartbeat: time.Minute}, start), testKey("a"), start
	observe(t, tr, k, now, Occurrence{}, Occurrence{})
	stored := write(t, tr, now, Create).Series.Event()
	now = now.Add(time.Minute)
	observe(t, tr, k, now, Occurrence{})
	require.Empty(t, tr.Apply(send(t, tr, now, Heartbeat), Response{Outcome: schedule.Changed}, now))
	stored.Series.Count++ // somebody else has written
	require.Empty(t, tr.Apply(send(t, tr, now, Look), answerOf(stored), now))
	require.Empty(t, tr.Apply(send(t, tr, now, Heartbeat), Response{Outcome: schedule.Changed}, now))
	for n := range 300 {
		w, at := await(t, tr, now)
		require.Equal(t, Look, w.Kind)
		require.LessOrEqual(t, at.Sub(now), schedule.RetryMax, n)
		require.GreaterOrEqual(t, at.Sub(now), 2*schedule.RetryFirst, n)
		now = at
		require.Empty(t, tr.Apply(w, Response{Outcome: schedule.Changed}, now))
	}
}

// The wall clock jumps ahead while a heartbeat is due without news. The next occurrence is written.
func TestWallClockJumpsWithoutNews(t *testing.T) {
	now := time.Now()
	tr, k := New(Options{FirstHeartbeat: time.Minute}, now), testKey("a")
	observe(t, tr, k, now, Occurrence{}, Occurrence{})
	write(t, tr, now, Create)
	now = now.Add(time.Minute)
	require.Empty(t, advance(tr, now))
	for range 2 {
		now = wallclock.Set(now, time.Hour)
		require.Empty(t, advance(tr, now))
	}
	observe(t, tr, k, now, Occurrence{})
	write(t, tr, now, Heartbeat)
}

// The wall clock jumps before the first write, whose answer is lost, and a webhook changes the instance. The
// occurrence counts once: an Event of one has no other time than the first.
func TestWallClockJumpsBeforeALostCreate(t *testing.T) {
	now := time.Now()
	tr, k := New(Options{Shared: true}, now), testKey("a")
	e := observe(t, tr, k, now, Occurrence{Instance: "controller-0"})
	now = wallclock.Set(now, time.Hour)
	w := send(t, tr, now, Create)
	stored := w.Series.Event()
	stored.ReportingInstance = "changed"
	require.Empty(t, tr.Apply(w, Response{Outcome: schedule.Troubled, MayBeStored: true}, now))
	now = now.Add(time.Minute)
	require.Empty(t, tr.Apply(send(t, tr, now, Create), Response{Outcome: schedule.Taken}, now))
	require.Empty(t, tr.Apply(send(t, tr, now, Look), answerOf(stored), now))
	assert.EqualValues(t, 1, e.count)
}

// The response to the create is lost, and somebody has moved its latest time. What it contains counts once.
func TestTimeMovesAfterALostCreate(t *testing.T) {
	tr, k := New(Options{}, start), testKey("a")
	e := observe(t, tr, k, start, Occurrence{}, Occurrence{})
	w := send(t, tr, start, Create)
	require.Empty(t, tr.Apply(w, Response{Outcome: schedule.Troubled, MayBeStored: true}, start))
	now := start.Add(2 * time.Minute)
	require.Empty(t, tr.Apply(send(t, tr, now, Create), Response{Outcome: schedule.Taken}, now))
	stored := w.Series.Event()
	stored.Series.LastObservedTime.Time = start.Add(time.Minute)
	require.Empty(t, tr.Apply(send(t, tr, now, Look), answerOf(stored), now))
	assert.EqualValues(t, 2, e.count)
}

// An Event that was written through core/v1 has no eventTime. A webhook strips its labels or its annotations, or each sign
// of this project. It is the Event of its key all the same, for this process and for the next one, and counts once.
func TestEventIsStripped(t *testing.T) {
	for name, strip := range map[string]func(*eventsv1.Event){
		"annotations": func(event *eventsv1.Event) { event.Annotations = nil },
		"labels":      func(event *eventsv1.Event) { event.Labels = nil },
		"both":        func(event *eventsv1.Event) { event.Annotations, event.Labels = nil, nil },
		"the time":    func(event *eventsv1.Event) { delete(event.Annotations, series.AnnotationEventTime) },
		"and another changes the key": func(event *eventsv1.Event) {
			delete(event.Annotations, series.AnnotationEventTime)
			event.Annotations[series.AnnotationPrefix+"other"] = ""
			event.Reason, event.ReportingInstance = "Changed", "changed"
		},
	} {
		t.Run(name, func(t *testing.T) {
			var stored *eventsv1.Event
			store := func(w *Write) {
				stored = w.Series.Event()
				stored.ResourceVersion = "1"
				stored.DeprecatedFirstTimestamp = metav1.NewTime(stored.EventTime.Truncate(time.Second))
				metav1.SetMetaDataAnnotation(&stored.ObjectMeta, series.AnnotationEventTime, stored.EventTime.UTC().Format(metav1.RFC3339Micro))
				stored.EventTime = metav1.MicroTime{}
				strip(stored)
			}
			now := start
			for process := range 3 {
				tr, k := New(Options{}, now), testKey("a")
				e := observe(t, tr, k, now, Occurrence{}, Occurrence{})
				w := send(t, tr, now, Create)
				if process == 0 {
					store(w)
					require.Empty(t, tr.Apply(w, Response{Outcome: schedule.Troubled, MayBeStored: true}, now))
					now = now.Add(2 * time.Second)
					w = send(t, tr, now, Create)
				}
				require.Empty(t, tr.Apply(w, Response{Outcome: schedule.Taken}, now))
				require.Empty(t, tr.Apply(send(t, tr, now, Look), answerOf(stored), now))
				require.EqualValues(t, 2*process+2, e.count)
				if process > 0 {
					w, _, _ := next(tr, now) // the count, and the state if that is gone
					require.Empty(t, tr.Apply(w, Response{Outcome: schedule.Troubled, MayBeStored: true}, now))
					now = now.Add(2 * time.Second)
					w, _, _ = next(tr, now)
					store(w)
					require.Empty(t, tr.Apply(w, Response{Outcome: schedule.Changed}, now))
					w, now = await(t, tr, now)
					require.Empty(t, tr.Apply(w, answerOf(stored), now))
				}
				require.EqualValues(t, 2*process+2, e.count)
				require.Equal(t, testKey("a").Name(0), e.name(testKey("a")))
				now = now.Add(time.Minute)
			}
		})
	}
}

func answerOf(event *eventsv1.Event) Response { return Response{Event: event} }

// What is due at once is handled in parts, and all of it.
func TestManyAreDue(t *testing.T) {
	tr, keys := ongoingSeries(t, 2*batch+1)
	now := start.Add(6 * time.Minute)
	require.Empty(t, advance(tr, now))
	assert.Equal(t, len(keys), tr.Stats(now).Ended)
}

// The namespaces that are remembered are bounded.
func TestPlacesAreBounded(t *testing.T) {
	tr := New(Options{}, start)
	w := &Write{Kind: Heartbeat, entry: observe(t, tr, testKey("a"), start, Occurrence{})}
	for i := range schedule.MaxRemembered {
		remember(tr.known, fmt.Sprint(i), knowledge{permits: true})
	}
	remember(tr.known, "0", knowledge{permits: true})
	assert.Len(t, tr.known, schedule.MaxRemembered)
	tr.hear(w, &Response{Outcome: schedule.Gone}, 0)
	assert.Equal(t, map[string]knowledge{"ns-a": {permits: true}}, tr.known)
}

// A namespace that does not exist was deleted if it has existed lately, or has had the Event.
func TestMissingNamespace(t *testing.T) {
	for _, tt := range []struct {
		kind        Kind
		existsUntil time.Duration
		want        DropReason
	}{
		{Create, 0, DropNamespaceNotFound}, {Create, time.Hour, DropNamespaceNotFound}, {Create, time.Hour + 1, DropNamespaceTerminating},
		{Recreate, 0, DropNamespaceTerminating}, {Recreate, time.Hour, DropNamespaceTerminating},
	} {
		tr := New(Options{}, start)
		w := &Write{Kind: tt.kind, entry: observe(t, tr, testKey("a"), start, Occurrence{})}
		tr.known["ns-a"] = knowledge{existsUntil: tt.existsUntil}
		r := Response{Outcome: schedule.Refused, Never: DropNamespaceNotFound}
		tr.hear(w, &r, time.Hour)
		assert.Equal(t, tt.want, r.Never, "%+v", tt)
	}
}

// A write of the previous process that the server handles late is not one of two writes of this
// process whose responses were lost, although its count and its time are between theirs.
func TestLateWriteOfThePreviousProcess(t *testing.T) {
	tr, k := New(Options{Seed: 1}, start), testKey("a")
	at := func(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }
	found := restorable(k, at(-60), at(-1))
	ok, _ := tr.Restore(found, start)
	require.True(t, ok)
	var e *Entry
	for minutes := range 2 {
		e = observe(t, tr, k, at(10*minutes), Occurrence{}, Occurrence{})
		defer tr.Flush(at(10 * minutes)).Stop()
		w := send(t, tr, at(10*minutes), FlushCount)
		require.Empty(t, tr.Apply(w, Response{Outcome: schedule.Troubled, MayBeStored: true}, at(10*minutes)))
	}
	found.Count += 3
	found.Last = at(5) // the clock was set back by six minutes
	defer tr.Flush(at(20)).Stop()
	require.Empty(t, tr.Apply(send(t, tr, at(20), FlushCount), Response{Outcome: schedule.Changed}, at(20)))
	require.Empty(t, tr.Apply(send(t, tr, at(20), Look), Response{Event: found.Event()}, at(20)))
	assert.EqualValues(t, found.Count+4, e.count)
}

// The times of series that processes share are within a millisecond of those of their occurrences, do
// not go back, and tell by which process they were written.
func TestMarks(t *testing.T) {
	for seed := range uint64(20) {
		tr, k := New(Options{Shared: true, Seed: seed + 1}, start), testKey("a")
		last := time.Time{}
		for i := range 20 {
			now := start.Add(time.Duration(i) * 700 * time.Microsecond)
			observe(t, tr, k, now, Occurrence{Instance: "controller-0"})
			defer tr.Flush(now).Stop()
			w, _, ok := next(tr, now)
			require.True(t, ok)
			require.Empty(t, tr.Apply(w, Response{}, now))
			if i > 0 {
				assert.EqualValues(t, seed+1, (w.Series.Last.UnixMicro()-tr.epoch.UnixMicro())%markRange)
			}
			assert.False(t, w.Series.Last.Before(last))
			assert.LessOrEqual(t, w.Series.Last.Sub(now).Abs(), time.Millisecond)
			last = w.Series.Last
		}
	}
}

// Versions that are no decimal numbers are none.
func TestVersions(t *testing.T) {
	for text, want := range map[string]uint64{"": 0, "17": 17, "x": 0, "-1": 0, "18446744073709551616": 0} {
		assert.Equal(t, want, versionNumber(text), text)
	}
}

// A Warning goes before Normals that have waited for less than 3/4 of the TTL, and after those that have
// waited longer.
func TestWarningsGoFirst(t *testing.T) {
	for waits, first := range map[time.Duration]string{45*time.Minute - time.Second: corev1.EventTypeWarning, 45*time.Minute + time.Second: corev1.EventTypeNormal} {
		tr, now := New(Options{}, start), start.Add(waits)
		observe(t, tr, testKey("a"), start, Occurrence{})
		observe(t, tr, testKey("B"), now, Occurrence{})
		w, _, ok := next(tr, now)
		require.True(t, ok)
		assert.Equal(t, first, w.Series.Key.Type)
	}
}

// A Warning waits behind no number of heartbeats.
func TestWarningsGoBeforeHeartbeats(t *testing.T) {
	tr, now := New(Options{}, start), start
	for i := range 100 {
		observe(t, tr, named("a", fmt.Sprint(i)), now, Occurrence{}, Occurrence{})
		write(t, tr, now, Create)
	}
	for now.Before(start.Add(31 * time.Minute)) {
		now = now.Add(2 * time.Minute)
		for i := range 100 {
			tr.Observe(named("a", fmt.Sprint(i)), Occurrence{}, now)
		}
	}
	advance(tr, now)
	require.Greater(t, tr.Stats(now).Waiting, 90)
	observe(t, tr, testKey("B"), now, Occurrence{})
	assert.Equal(t, corev1.EventTypeWarning, send(t, tr, now, Create).Series.Key.Type)
}

// A loop ends at a random time. A heartbeat that is due while it is quiet for longer than before is written with its
// end: at most one write contains no occurrence, and none if a heartbeat was due then.
func TestEndIsTheLastHeartbeat(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	together := 0
	for range 300 {
		tr, k, now := New(Options{HeartbeatInterval: oneOf(rng, 30*time.Minute, 5*time.Minute), FirstHeartbeat: oneOf(rng, 0, time.Second)}, start), testKey("a"), start
		gap, count, empty := between(rng, 10*time.Second, 10*time.Minute), int32(0), 0
		e := observe(t, tr, k, now, Occurrence{})
		send := func() {
			for w, _, ok := next(tr, now); ok; w, _, ok = next(tr, now) {
				if w.Series.Count == count {
					empty++
				}
				count = w.Series.Count
				tr.Apply(w, Response{}, now)
			}
		}
		for send(); rng.IntN(30) > 0 || e.count < 3; send() {
			for end := now.Add(gap); now.Before(end); send() {
				wake, _ := wakes(tr, now)
				if now = end; !wake.IsZero() && wake.Before(end) {
					now = wake
				}
			}
			observe(t, tr, k, now, Occurrence{})
		}
		last, window := e.last, tr.window.Of(e.rhythm, e.last)
		due := e.unstored() > 0 && e.beatAt > last+window/21*10 && e.beatAt < last+window
		for e.life == active {
			now, _ = wakes(tr, now)
			send()
		}
		require.Equal(t, series.Finished, e.stored.state)
		require.LessOrEqual(t, empty, 1, gap)
		if due {
			together++
			require.Zero(t, empty, gap)
		}
	}
	assert.Positive(t, together)
}

// The heartbeat of a loop that is nearly as slow as its window waits for the next occurrence, and no longer.
func TestHeartbeatWaitsForOneOccurrence(t *testing.T) {
	tr, k := New(Options{FinishAfter: 6 * time.Minute, MaxWindow: 6 * time.Minute, FirstHeartbeat: time.Minute}, start), testKey("a")
	now := start
	e := observe(t, tr, k, now, Occurrence{})
	for end := now.Add(4 * time.Hour); now.Before(end); {
		occurs := now.Add(5 * time.Minute)
		for now.Before(occurs) {
			for w, _, ok := next(tr, now); ok; w, _, ok = next(tr, now) {
				tr.Apply(w, Response{}, now)
			}
			wake, _ := wakes(tr, now)
			if now = occurs; !wake.IsZero() && wake.Before(occurs) {
				now = wake
			}
		}
		if _, counted, _ := tr.Count(k, now.Sub(start)); !counted {
			tr.Observe(k, Occurrence{}, now)
		}
		require.Less(t, now.Sub(start)-e.stored.at, 41*time.Minute)
	}
}

// An evicted series that occurred once is no Singleton any more when another process has counted, too.
func TestShareOfAnEvictedSeries(t *testing.T) {
	for _, found := range []series.State{series.Singleton, series.Ongoing, series.Finished, series.Unknown} {
		tr := New(Options{}, start)
		e := observe(t, tr, testKey("a"), start, Occurrence{})
		e.life = closing
		s := tr.step(e, start)
		e.share(&s, &series.Series{State: found, Last: start.Add(time.Minute)})
		assert.NotEqual(t, series.Singleton, e.state, found)
	}
}
