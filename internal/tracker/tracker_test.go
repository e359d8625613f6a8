package tracker

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/eventseries/eventseries/heartbeat"
	"github.com/eventseries/eventseries/internal/wallclock"
	"github.com/eventseries/eventseries/series"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// passGates says that a request has passed each gate of the namespace "ns", so that several can
// be in flight.
func passGates(tr *Tracker) {
	for _, verb := range []string{"create", "patch"} {
		p := heartbeat.Pass{Gate: heartbeat.Gate{Namespace: "ns", Verb: verb}}
		tr.sched.Abandon(&p, heartbeat.Passed, 0, 0)
	}
}

// send returns the next write, which must be of the given kind.
func send(t testing.TB, tr *Tracker, now time.Time, kind Kind) *Write {
	t.Helper()
	w, drops, ok := tr.Next(now)
	require.True(t, ok, "a %s is ready", kind)
	require.Empty(t, drops)
	require.Equal(t, kind.String(), w.Kind.String())
	return w
}

// write sends the next write, which the server accepts.
func write(t testing.TB, tr *Tracker, now time.Time, kind Kind) *Write {
	t.Helper()
	w := send(t, tr, now, kind)
	require.Empty(t, tr.Apply(w, Result{}, now))
	return w
}

// writeAll sends all writes that are ready, and returns what was dropped.
func writeAll(tr *Tracker, now time.Time, respond func(*Write) Outcome) (drops []Drop) {
	for {
		w, lost, ok := tr.Next(now)
		drops = append(drops, lost...)
		if !ok {
			return drops
		}
		drops = append(drops, tr.Apply(w, Result{Outcome: respond(w)}, now)...)
	}
}

// await returns the next write, and when it is ready.
func await(t testing.TB, tr *Tracker, now time.Time) (*Write, time.Time) {
	t.Helper()
	for {
		w, drops, ok := tr.Next(now)
		require.Empty(t, drops)
		if ok {
			return w, now
		}
		advance, next := tr.Wake(now)
		if now = next; next.IsZero() || !advance.IsZero() && advance.Before(next) {
			now = advance
		}
		require.False(t, now.IsZero(), "nothing is ever ready")
		require.Empty(t, tr.Advance(now))
	}
}

// accept is how a server responds that accepts everything.
func accept(*Write) Outcome { return Written }

// observe records occurrences, and returns the entry that they belong to.
func observe(tr *Tracker, k *series.Key, now time.Time, occurrences ...Occurrence) *Entry {
	for _, o := range occurrences {
		tr.Observe(k, o, now)
	}
	return entryOf(tr, k)
}

// entryOf returns the entry that accepts occurrences of k, nil if there is none.
func entryOf(tr *Tracker, k *series.Key) *Entry {
	hash := fastHash(tr.seed, k)
	return tr.shard(hash).entries.find(hash, k)
}

// judgeFor says what found is to e.
func judgeFor(tr *Tracker, e *Entry, found *series.Series, now time.Time) standing {
	s := tr.step(e, now)
	s.tended = tr.tends(e, found.Name)
	return e.judge(&s, found)
}

// beat makes the heartbeat of e due.
func beat(tr *Tracker, e *Entry, now time.Time) {
	tr.mu.Lock()
	e.status.beatAt = tr.offset(now)
	e.status.due |= dueNext // an occurrence has just come
	tr.place(e, e.status.beatAt)
	tr.mu.Unlock()
	tr.Advance(now)
}

// sizes returns the numbers of singletons, of ongoing series, and of those that are
// closing.
func sizes(tr *Tracker) [3]int {
	s := tr.Stats(start)
	return [3]int{s.Singletons, s.Ongoing, s.Closing}
}

func TestOptions(t *testing.T) {
	assert.Equal(t, Options{
		FinishAfter: 6 * time.Minute, MaxWindow: 36 * time.Minute, Capacity: 65536, EventTTL: time.Hour, HeartbeatInterval: 30 * time.Minute, ClusterNamespace: "kube-system",
		ListLimit: 2000,
	}, Options{}.WithDefaults())
	assert.Equal(t, 50_000, Options{Scope: SameController}.WithDefaults().ListLimit)
	assert.Equal(t, heartbeat.Intervals{Heartbeat: 1, First: 2}, Options{HeartbeatInterval: 1, FirstHeartbeat: 2}.intervals())
	assert.EqualValues(t, 1, Options{EventTTL: 1}.WithDefaults().HeartbeatInterval)
}

// A patch says which note and annotations have changed since the latest one that the
// server has accepted, and clears the managedFields that the server adds to a create.
func TestPatchesSayWhatHasChanged(t *testing.T) {
	k, at := testKey("a"), start
	tr := New(Options{}, at)
	onServer := &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}}}
	version := 0
	say := func(kind Kind, outcome Outcome, want string, o Occurrence) {
		t.Helper()
		at = at.Add(time.Minute)
		e := observe(tr, k, at, o)
		if kind == Heartbeat {
			beat(tr, e, at)
		}
		tr.Advance(at)
		w := send(t, tr, at, kind)
		if kind != Create {
			patch, err := w.Patch()
			require.NoError(t, err)
			var got struct {
				Metadata struct{ Annotations map[string]*string }
			}
			require.NoError(t, json.Unmarshal(patch, &got))
			delete(got.Metadata.Annotations, series.AnnotationHeartbeat)
			text, err := json.Marshal(got.Metadata.Annotations)
			require.NoError(t, err)
			assert.JSONEq(t, want, strings.ReplaceAll(string(text), series.AnnotationPrefix, ""), "minute %v", at.Sub(start).Minutes())
			assert.Equal(t, onServer.ManagedFields != nil, strings.Contains(string(patch), `"managedFields":[{}]`), "minute %v", at.Sub(start).Minutes())
			onServer.ManagedFields = nil
		}
		version++
		onServer.ResourceVersion = strconv.Itoa(version)
		require.Empty(t, tr.Apply(w, Result{Outcome: outcome, Event: onServer.DeepCopy()}, at))
	}
	x := map[string]string{"x": "1"}
	say(Create, Written, "", Occurrence{Note: "one", Annotations: x})
	say(MakeSeries, Written, `{}`, Occurrence{Note: "one", Annotations: x})
	say(Heartbeat, Written, `{"last-note":"two"}`, Occurrence{Note: "two"})
	say(Heartbeat, Written, `null`, Occurrence{Note: "two", Annotations: x})
	say(Heartbeat, PushedBack, `{"last-note":null,"x":"2"}`, Occurrence{Note: "one", Annotations: map[string]string{"x": "2"}})
	at = at.Add(time.Minute)
	say(Heartbeat, Written, `{"last-note":null,"x":"2"}`, Occurrence{})
	say(Heartbeat, Written, `null`, Occurrence{Note: "one"})
}

// The Event of an object without a namespace must be somewhere.
func TestClusterNamespace(t *testing.T) {
	node := &series.Key{Regarding: series.Reference{Kind: "Node", Name: "n1"}, Type: "Normal", Reason: "R", Action: "A"}
	for option, want := range map[string]string{"": "kube-system", "default": "default"} {
		tr := New(Options{ClusterNamespace: option}, start)
		observe(tr, node, start, Occurrence{})
		assert.Equal(t, want, send(t, tr, start, Create).Series.Namespace)
		single := tr.Single(node, Occurrence{}, start)
		assert.Equal(t, want, single.Namespace)
	}
}

func TestNamesOfKindsAndOutcomes(t *testing.T) {
	for kind := range Kinds {
		assert.NotEmpty(t, kind.String())
		w := Write{Kind: kind}
		assert.Equal(t, kind == Create || kind == Recreate, w.Creates(), kind)
		assert.Equal(t, kind != Look && kind != Close && kind != Signpost && kind != List, w.WritesSeries(), kind)
	}
	assert.Equal(t, "heartbeat", Heartbeat.String())
	gates := [Outcomes]heartbeat.Result{PushedBack: heartbeat.PushedBack, Troubled: heartbeat.Failed, Denied: heartbeat.Denied}
	for outcome := range Outcomes {
		assert.NotEmpty(t, outcome.String())
		assert.Equal(t, max(gates[outcome], heartbeat.Passed), outcome.forGate(), outcome)
	}
}

// An entry has three cache lines, and an occurrence needs two of them: it reads the
// first, which hardly ever changes, and changes the second.
func TestEntryIsSmall(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("words have another size")
	}
	var e Entry
	assert.LessOrEqual(t, unsafe.Sizeof(e), uintptr(3*cacheLine))
	assert.Greater(t, unsafe.Sizeof(e), uintptr(176), "of the size class that is aligned")
	assert.EqualValues(t, cacheLine, unsafe.Offsetof(e.counter))
	assert.Less(t, unsafe.Offsetof(e.spec)+unsafe.Offsetof(e.spec.notedAt), uintptr(2*cacheLine))
}

// Each field of a key makes a difference to the hash by which the tombstones know it, and
// so does the border between two. The hash by which entries are found leaves some out.
func TestHashes(t *testing.T) {
	tr := New(Options{}, start)
	k := &series.Key{}
	for i, word := range wordsOf(k) {
		word.SetString(strings.Repeat(string(rune('a'+i)), i+1))
	}
	same := *k
	seen := map[uint64]bool{nameHash(tr.seed, &same): true}
	assert.True(t, seen[nameHash(tr.seed, k)])
	var leftOut []string
	for i, word := range wordsOf(k) {
		longer, moved := *k, *k
		wordsOf(&longer)[i].SetString(word.String() + "x")
		if fastHash(tr.seed, &longer) == fastHash(tr.seed, k) {
			leftOut = append(leftOut, word.String())
		}
		hash := nameHash(tr.seed, &longer)
		assert.False(t, seen[hash], "field %d", i)
		seen[hash] = true
		if words := wordsOf(&moved); i+1 < len(words) {
			text := words[i].String() + words[i+1].String()
			words[i].SetString(text[:i])
			words[i+1].SetString(text[i:])
			assert.False(t, seen[nameHash(tr.seed, &moved)], "the last byte of field %d", i)
		}
	}
	assert.ElementsMatch(t, []string{
		k.Regarding.APIVersion, k.Regarding.Kind, k.Regarding.Namespace,
		k.Related.APIVersion, k.Related.Kind, k.Related.Namespace, k.Related.FieldPath,
		k.Type, k.ReportingController, k.ReportingInstance, k.Note,
	}, leftOut)
	assert.NotEqual(t, fastHash(newSeed(0), k), fastHash(tr.seed, k))
	fixed := newSeed(1) // the hashes are the same in each process
	assert.Equal(t, uint64(0x4e7be68013b3f185), fastHash(fixed, k))
	assert.Equal(t, uint64(0xc6c838b6075f875f), nameHash(fixed, k))
	assert.NotEqual(t, fastHash(newSeed(2), k), fastHash(fixed, k))
	for _, r := range []*series.Reference{&k.Regarding, &k.Related} {
		r.UID = ""
		before := fastHash(tr.seed, k)
		r.Namespace += "x"
		assert.NotEqual(t, before, fastHash(tr.seed, k), "nothing else tells such objects apart")
	}
}

// A hot loop allocates nothing.
func TestCountAllocatesNothing(t *testing.T) {
	tr := New(Options{}, start)
	k := testKey("a")
	e := observe(tr, k, start, Occurrence{}, Occurrence{})
	now := start
	for name, do := range map[string]func(){
		"count":                 func() { now = now.Add(time.Millisecond); tr.Count(k, tr.offset(now)) },
		"describe with no news": func() { tr.Describe(e, Occurrence{Note: "later"}, now) },
		"a key on the stack":    func() { own := *k; tr.Count(&own, tr.offset(now)) },
	} {
		assert.Zero(t, testing.AllocsPerRun(1000, do), name)
	}
	assert.Equal(t, 2+2*1001, e.counted())
}

// A note that is formatted anew each time and stays the same is stored once.
func TestNoteIsStoredOnce(t *testing.T) {
	tr := New(Options{}, start)
	note := func() Occurrence { return Occurrence{Note: strings.Clone("back-off restarting")} }
	e := observe(tr, testKey("a"), start, note(), note())
	assert.Nil(t, e.spec.latest)
	tr.Describe(e, Occurrence{Note: "another"}, start)
	assert.Equal(t, "another", e.spec.latestOrZero().note)
	tr.Describe(e, note(), start)
	assert.Equal(t, "back-off restarting", e.spec.latestOrZero().note)
	assert.Same(t, unsafe.StringData(e.spec.note), unsafe.StringData(e.spec.latestOrZero().note))
}

// All series together want 1,000 notes per second, and each at most one in ten seconds.
func TestNotesHaveARate(t *testing.T) {
	for series, want := range map[int64]time.Duration{1: 10 * time.Second, 10_000: 10 * time.Second, 1_000_000: 1000 * time.Second} {
		tr := New(Options{}, start)
		k := testKey("a")
		observe(tr, k, start, Occurrence{}, Occurrence{})
		tr.accepting.Store(series)
		for at := 5 * time.Second; at <= want; at += 5 * time.Second {
			_, counted, wantNote := tr.Count(k, at)
			assert.Equal(t, []bool{true, at == want}, []bool{counted, wantNote}, "%d series, after %v", series, at)
		}
	}
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
			got := mergeAnnotations(tt.old, tt.latest)
			assert.Equal(t, tt.want, got)
			assert.Equal(t, old, tt.old, "writes in flight share it")
			assert.Equal(t, latest, tt.latest, "it belongs to the caller")
		})
	}
}

// What is patched equals what would be created, however the series has changed.
func TestPatchedIsCreated(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 0))
		w := newWorld(t, Options{}, newServer(t))
		k := testKey("a")
		now := time.Duration(0)
		occur := func(note string, annotations map[string]string) {
			w.tracker.Observe(k, Occurrence{Note: note, Annotations: annotations}, start.Add(now))
			w.tracker.Describe(entryOf(w.tracker, k), Occurrence{Note: note, Annotations: annotations}, start.Add(now))
		}
		occur("a", map[string]string{"first": "1"})
		for range 6 {
			sent := send(t, w.tracker, start.Add(now), entryOf(w.tracker, k).need())
			r, ev := w.remote.do(sent)
			w.tracker.Apply(sent, r, start.Add(now))
			want, got := sent.Series.Event(), ev.event.DeepCopy()
			got.ObjectMeta = want.ObjectMeta
			require.Equal(t, toJSON(t, want), toJSON(t, got), "seed %d", seed)
			require.Equal(t, want.Annotations, ev.event.Annotations, "seed %d", seed)
			for name := range sent.Series.Annotations {
				require.False(t, strings.HasPrefix(name, series.AnnotationPrefix), name)
			}
			for range 1 + rng.IntN(3) {
				now += time.Second
				occur(oneOf(rng, "", "a", "b", "c"), map[string]string{oneOf(rng, "first", "x", series.AnnotationLastNote, series.AnnotationPrefix+"x"): "new"})
			}
			beat(w.tracker, entryOf(w.tracker, k), start.Add(now))
		}
	}
}

func TestStats(t *testing.T) {
	tr := New(Options{Capacity: 5}, start)
	check := func(now time.Time, want ...int) {
		t.Helper()
		s := tr.Stats(now)
		assert.Equal(t, want, []int{s.Singletons, s.Ongoing, s.Closing, s.Ready, s.Waiting})
	}
	check(start, 0, 0, 0, 0, 0)
	a, b := testKey("a"), testKey("b")
	observe(tr, a, start, Occurrence{})
	observe(tr, b, start.Add(time.Second), Occurrence{})
	check(start, 2, 0, 0, 2, 2)
	observe(tr, a, start, Occurrence{})
	check(start, 1, 1, 0, 2, 2)
	assert.Equal(t, 3*time.Second, tr.Stats(start.Add(3*time.Second)).LongestWait)
	w := send(t, tr, start, Create)
	check(start, 1, 1, 0, 1, 2)
	tr.Apply(w, Result{Outcome: Troubled}, start)
	check(start, 1, 1, 0, 1, 2)
	now := start.Add(time.Minute)
	tr.Advance(now) // the retry
	write(t, tr, now, Create)
	w = send(t, tr, now, Create)
	tr.Apply(w, Result{Outcome: PushedBack, RetryAfter: time.Second}, now)
	s := tr.Stats(now.Add(time.Second))
	assert.True(t, s.Paused)
	assert.Equal(t, []any{now.Add(5 * time.Second), time.Second}, []any{s.PausedUntil, s.PausedTotal})
	now = now.Add(5 * time.Second)
	write(t, tr, now, Create)
	check(now, 1, 1, 0, 0, 0)
	now = now.Add(time.Hour)
	tr.Advance(now)
	check(now, 0, 0, 1, 1, 1)
	assert.EqualValues(t, 3, tr.Stats(now).Occurrences)
	assert.Equal(t, 5, tr.Stats(now).Capacity)
	tr.Clear("Test")
	check(now, 0, 0, 0, 0, 0)
}

// Series that are over count as ended before and after their last write.
func TestStatsOfEndedSeries(t *testing.T) {
	tr := New(Options{}, start)
	warning := testKey("b")
	warning.Type = corev1.EventTypeWarning
	normal := testKey("a")
	normal.Type = corev1.EventTypeNormal
	for _, k := range []*series.Key{normal, warning} {
		observe(tr, k, start, Occurrence{}, Occurrence{})
		write(t, tr, start, Create)
	}
	assert.Zero(t, tr.Stats(start).Ended)
	now := start.Add(7 * time.Minute)
	tr.Advance(now)
	assert.Equal(t, 2, tr.Stats(now).Ended)
	require.Empty(t, writeAll(tr, now, accept))
	assert.Equal(t, 2, tr.Stats(now).Ended)
}

// A series waits until the later of two times.
func TestHolds(t *testing.T) {
	var e Entry
	e.more().hold.extend(10*time.Minute, denial)
	e.more().hold.extend(5*time.Minute, backoff)
	until, ok := e.hold().left(0)
	assert.True(t, ok)
	assert.Equal(t, 10*time.Minute, until)
	assert.Equal(t, denial, e.hold().why)
	e.release()
	_, ok = e.hold().left(0)
	assert.False(t, ok)
	e.more().hold.extend(5*time.Minute, backoff)
	until, _ = e.hold().left(0)
	assert.Equal(t, 5*time.Minute, until)
}

// Among series that wait for their last write, a Normal is dropped before a Warning, also if
// a closed gate holds up the Warning.
func TestNormalsThatCloseMakeRoomFirst(t *testing.T) {
	tr := New(Options{Capacity: 4}, start)
	begin := func(name, namespace string) *Entry {
		k := testKey(name)
		k.Regarding.Namespace = namespace
		e := observe(tr, k, start, Occurrence{}, Occurrence{})
		write(t, tr, start, Create)
		observe(tr, k, start, Occurrence{})
		return e
	}
	warning, normals := begin("W", "denied"), []*Entry{begin("a", "ns"), begin("b", "ns"), begin("c", "ns")}
	tr.opts.Capacity = len(normals)
	tr.end(warning, series.Unknown, start)
	w, _, ok := tr.Next(start)
	require.True(t, ok)
	require.Empty(t, tr.Apply(w, Result{Outcome: Denied}, start))
	for _, e := range normals {
		require.Empty(t, tr.dropped())
		tr.end(e, series.Unknown, start)
	}
	drops := tr.dropped()
	require.Len(t, drops, 1)
	assert.Equal(t, DropClosingFull, drops[0].Reason)
	assert.Equal(t, corev1.EventTypeNormal, drops[0].Key.Type)
}

// A wall clock that is set neither ends a series nor keeps one, and the times that
// the server learns do not go back.
func TestWallClockIsSet(t *testing.T) {
	for _, by := range []time.Duration{-time.Hour, time.Hour} {
		for _, restored := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restored %t", by, restored), func(t *testing.T) { testWallClockIsSet(t, by, restored) })
		}
	}
}

func testWallClockIsSet(t *testing.T, by time.Duration, restored bool) {
	begin := time.Now()
	tr := New(fixed, begin)
	k := testKey("a")
	at := func(d time.Duration) time.Time { return begin.Add(d).Round(0).Truncate(time.Microsecond) }
	before, count := restorable(k, at(-time.Hour), at(-10*time.Minute)), 7
	if restored {
		ok, _ := tr.Restore(before, begin)
		require.True(t, ok)
	} else {
		tr.Observe(k, Occurrence{}, begin)
		tr.Observe(k, Occurrence{}, begin.Add(time.Minute))
		before, count = &write(t, tr, begin.Add(time.Minute), Create).Series, 2
		assert.False(t, before.Last.Before(before.First))
	}
	e := entryOf(tr, k)

	now := wallclock.Set(begin.Add(5*time.Minute), by)
	assert.Empty(t, tr.Advance(now))
	tr.Observe(k, Occurrence{}, now)
	assert.Equal(t, tr.offset(now).Truncate(time.Microsecond), e.last())
	if !restored { // otherwise its heartbeat can be due
		wake, _ := tr.Wake(now)
		assert.False(t, wake.IsZero())
		assert.Less(t, wake.Sub(now), 3*time.Minute)
	}
	beat(tr, e, now)
	after := write(t, tr, now, Heartbeat)
	assert.EqualValues(t, count+1, after.Series.Count)
	assert.False(t, after.Series.Last.Before(before.Last))
	if by > 0 {
		assert.Equal(t, now.UnixMicro(), after.Series.Last.UnixMicro(), "the new time is believed")
	} else {
		assert.Equal(t, before.Last.UnixMicro(), after.Series.Last.UnixMicro())
	}

	// It is set right again.
	now = begin.Add(6 * time.Minute)
	_, counted, _ := tr.Count(k, tr.offset(now))
	assert.True(t, counted)
	beat(tr, e, now)
	assert.False(t, write(t, tr, now, Heartbeat).Series.Last.Before(after.Series.Last))

	tr.Advance(wallclock.Set(begin.Add(12*time.Minute-time.Microsecond), by))
	assert.Equal(t, [3]int{0, 1, 0}, sizes(tr))
	now = wallclock.Set(begin.Add(12*time.Minute), by)
	tr.Advance(now)
	assert.Equal(t, [3]int{0, 0, 1}, sizes(tr))
	assert.False(t, write(t, tr, now, Finish).Series.Last.Before(after.Series.Last))
	checkInvariants(t, tr, 0)
}

// The first write comes after the clock was set back, so the first occurrence is in
// the future. The latest is not before it. If there is no response, the server may
// have handled the request. The clocks for the wall time and for the time that passes
// differ a little each time that they are read, so the next attempt must not say an
// earlier time.
func TestWallClockIsSetBeforeTheFirstWrite(t *testing.T) {
	begin := time.Now()
	tr := New(Options{}, begin)
	k := testKey("a")
	tr.Observe(k, Occurrence{}, begin)
	now := wallclock.Set(begin.Add(time.Minute), -time.Hour)
	tr.Observe(k, Occurrence{}, now)
	w := send(t, tr, now, Create)
	assert.EqualValues(t, 2, w.Series.Count)
	assert.Equal(t, begin.UnixMicro(), w.Series.First.UnixMicro())
	assert.Equal(t, w.Series.First, w.Series.Last)
	_, err := series.FromEvent(w.Series.Event())
	assert.NoError(t, err)

	tr.Apply(w, Result{Outcome: Troubled}, now)
	tr.Advance(begin.Add(2 * time.Minute))
	later := send(t, tr, begin.Add(2*time.Minute), Create)
	assert.Equal(t, begin.Add(time.Minute).UnixMicro(), later.Series.Last.UnixMicro(), "the clock was set right")
	tr.Apply(later, Result{Outcome: Troubled}, begin.Add(2*time.Minute))
	now = wallclock.Set(begin.Add(4*time.Minute), -time.Minute)
	tr.Advance(now)
	assert.Equal(t, later.Series.Last, send(t, tr, now, Create).Series.Last)
}

// A count stays where the API has no room for more, and times continue.
func TestCountSaturates(t *testing.T) {
	tr := New(Options{}, start)
	k := testKey("a")
	e := observe(tr, k, start, Occurrence{}, Occurrence{})
	write(t, tr, start, Create)
	e.spec.count = math.MaxInt32 - 2
	for i, want := range []int32{math.MaxInt32 - 1, math.MaxInt32, math.MaxInt32, math.MaxInt32} {
		now := start.Add(time.Duration(i+1) * time.Minute)
		_, counted, _ := tr.Count(k, tr.offset(now))
		require.True(t, counted)
		beat(tr, e, now)
		w := write(t, tr, now, Heartbeat)
		assert.Equal(t, want, w.Series.Count)
		assert.Equal(t, now.UnixMicro(), w.Series.Last.UnixMicro())
	}
	// The server knows the count, but not that there was another occurrence.
	tr.Count(k, tr.offset(start.Add(5*time.Minute)))
	require.Equal(t, 1, tr.Flush(start).Left())
	assert.Empty(t, tr.Clear("Shutdown"))
}

// The order of eviction is in testdata/scripts/05-evict.txt and 06-closing.txt.
func TestLongestIdle(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	tr := New(Options{}, start)
	list := &tr.lists[ongoingNormal]
	assert.Nil(t, tr.lists.longestIdle(ongoingNormal))
	var entries []*Entry
	for i := range 200 {
		k := testKey("a")
		k.Regarding.Name = fmt.Sprint(i)
		entries = append(entries, observe(tr, k, start.Add(time.Duration(i)*time.Microsecond), Occurrence{}, Occurrence{}))
	}
	for len(entries) > 0 {
		for range 20 {
			e := entries[rng.IntN(len(entries))]
			e.counter.occurred(e.last() + time.Duration(rng.IntN(100))*time.Microsecond)
		}
		want := slices.MinFunc(entries, func(a, b *Entry) int { return cmp.Compare(a.last(), b.last()) }).last()
		var e *Entry
		for range entries { // each call corrects a bounded number of times
			if e = tr.lists.longestIdle(ongoingNormal); list.At(e) == e.last() {
				break
			}
		}
		require.Equal(t, want, e.last())
		tr.lose(e, "Test")
		entries = slices.DeleteFunc(entries, func(other *Entry) bool { return other == e })
	}
}

// If all series occur all the time, all times in a list are out of date. The search for one
// to evict ends all the same.
func TestLongestIdleInHotLoops(t *testing.T) {
	tr := New(Options{}, start)
	list := &tr.lists[ongoingNormal]
	var entries []*Entry
	for range 10 * maxCorrections {
		e := &Entry{}
		list.Add(e, e.last())
		e.counter.occurred(time.Hour)
		entries = append(entries, e)
	}
	require.NotNil(t, tr.lists.longestIdle(ongoingNormal))
	corrected := 0
	for _, e := range entries {
		if list.At(e) == e.last() {
			corrected++
		}
	}
	assert.Equal(t, maxCorrections, corrected)
}

// Behind a closed gate, a Warning displaces all Normals before another Warning, though
// the Warnings have been ready last.
func TestWarningDisplacesNormalsBehindAGate(t *testing.T) {
	const normals, warnings = 20, 30
	tr := New(Options{Capacity: normals + warnings}, start)
	now := start
	emit := func(name string, n int) (types []string) {
		for i := range n {
			k := testKey(name)
			k.Regarding.Name = fmt.Sprint(name, i)
			drops := tr.Observe(k, Occurrence{}, now)
			for _, d := range drops {
				assert.Equal(t, DropDisplaced, d.Reason)
				types = append(types, d.Key.Type)
			}
			require.Empty(t, writeAll(tr, now, func(*Write) Outcome { return Denied }))
		}
		return types
	}
	require.Empty(t, emit("a", normals))
	now = now.Add(normalSlack + time.Second)
	require.Empty(t, emit("B", warnings))
	want := slices.Concat(slices.Repeat([]string{"Normal"}, normals), slices.Repeat([]string{"Warning"}, 5))
	assert.Equal(t, want, emit("C", len(want)))
	checkInvariants(t, tr, 0)
}

// What was never sent, because its gate is closed for others, makes room after those.
func TestSeriesThatFailMakeRoomFirst(t *testing.T) {
	for _, outcome := range []Outcome{Troubled, Denied} {
		for _, each := range []time.Duration{0, time.Second} {
			tr := New(Options{Capacity: 40}, start)
			now := start
			warn := func(namespace string, i int) []Drop {
				k := testKey("W")
				k.Regarding.Namespace, k.Regarding.Name = namespace, fmt.Sprint(namespace, i)
				return tr.Observe(k, Occurrence{}, now)
			}
			for i := range 40 {
				require.Empty(t, warn("ns", i))
			}
			tried := map[string]bool{}
			for range 15 {
				w, _, ok := tr.Next(now)
				if !ok {
					break
				}
				tried[w.Series.Key.Regarding.Name] = true
				tr.Apply(w, Result{Outcome: outcome}, now)
			}
			now = now.Add(each)
			tr.Advance(now)
			for n := len(tried); n > 0; n-- {
				drops := warn("other", n)
				require.Len(t, drops, 1)
				displaced := drops[0].Key.Regarding.Name
				assert.True(t, tried[displaced], "%s was never sent", displaced)
				delete(tried, displaced)
			}
		}
	}
}

// A Normal whose gate is open hides no other one that a gate holds up.
func TestNormalOfAnOpenGateHidesNoOther(t *testing.T) {
	const warnings = 20
	tr := New(Options{Capacity: 2 + warnings}, start)
	open, held := testKey("open"), testKey("held")
	open.Type, held.Type, open.Regarding.Namespace = corev1.EventTypeNormal, corev1.EventTypeNormal, "other"
	respond := func(w *Write) Outcome {
		if w.Series.Namespace == "other" {
			return Written
		}
		return Denied
	}
	now := start
	for _, k := range []*series.Key{open, held} {
		observe(tr, k, now, Occurrence{}, Occurrence{})
		now = now.Add(time.Millisecond)
	}
	writeAll(tr, now, respond)
	now = now.Add(normalSlack + time.Second)
	warn := func(i int) {
		k := testKey("W")
		k.Regarding.Name = fmt.Sprint("w", i)
		require.Empty(t, tr.Observe(k, Occurrence{}, now))
		writeAll(tr, now, respond)
	}
	for i := range warnings {
		warn(i)
	}
	require.NotNil(t, entryOf(tr, held))
	warn(warnings)
	assert.Nil(t, entryOf(tr, held), "it makes room")
	assert.NotNil(t, entryOf(tr, open))
	checkInvariants(t, tr, 0)
}

// A Normal that a closed gate holds up, and that was never sent, makes room for a Warning
// however many Warnings wait beside it.
func TestUntriedNormalMakesRoom(t *testing.T) {
	const failing = 12
	for waiting := range 64 {
		tr := New(Options{Capacity: failing + 1 + waiting}, start)
		warn := func(i int) []Drop {
			k := testKey("W")
			k.Regarding.Name = fmt.Sprint("w", i)
			return tr.Observe(k, Occurrence{}, start)
		}
		for i := range failing {
			require.Empty(t, warn(i))
		}
		require.Empty(t, writeAll(tr, start, func(*Write) Outcome { return Troubled }))
		normal := observe(tr, testKey("a"), start, Occurrence{})
		for i := range waiting {
			require.Empty(t, warn(failing+i))
			_, _, ok := tr.Next(start)
			require.False(t, ok)
		}
		require.False(t, normal.Tried())
		drops := warn(failing + waiting)
		require.Len(t, drops, 1)
		require.Equal(t, normal.Key(), drops[0].Key, "%d wait", waiting)
	}
}

// Two series of one key that begin in the same microsecond have different names.
func TestNamesOfOneMicrosecond(t *testing.T) {
	tr := New(Options{FinishAfter: 1, MaxWindow: 1}, start.Truncate(time.Microsecond))
	names := map[string]bool{}
	for i := range 5 {
		now := start.Truncate(time.Microsecond).Add(time.Duration(i) * 100)
		tr.Observe(testKey("a"), Occurrence{}, now)
	}
	now := start.Add(time.Second)
	passGates(tr)
	for range 5 {
		names[send(t, tr, now, Create).Series.Name] = true
	}
	assert.Len(t, names, 5)
	checkInvariants(t, tr, 5)
}

// restorable returns a series of k that an earlier process has left.
func restorable(k *series.Key, first, last time.Time) *series.Series {
	return &series.Series{
		Key: *k, State: series.Ongoing, Namespace: k.Regarding.Namespace, Name: k.BaseName(), Instance: "controller-0",
		Count: 7, First: first, Last: last,
	}
}

// Whatever the age of a running series, its next heartbeat is after now, at most an
// interval away, and before others would take it for dead. What is listed is in
// testdata/scripts/15-restore.txt.
func TestRestoredHeartbeats(t *testing.T) {
	for age := time.Duration(0); age < 36*time.Minute; age += time.Minute {
		tr := New(Options{}, start)
		earliest, latest := time.Hour, time.Duration(0)
		for i := range 50 {
			k := testKey("a")
			k.Regarding.Name = fmt.Sprint("pod-", i)
			restored, drops := tr.Restore(restorable(k, start.Add(-time.Hour), start.Add(-age)), start)
			require.True(t, restored)
			require.Empty(t, drops)
			due := entryOf(tr, k).status.beatAt - tr.offset(start)
			earliest, latest = min(earliest, due), max(latest, due)
		}
		limit := min(30*time.Minute, 36*time.Minute-age)
		assert.GreaterOrEqual(t, earliest, time.Duration(0))
		assert.LessOrEqual(t, latest, limit)
		assert.Greater(t, latest-earliest, limit/2, "they are spread")
	}
}

// Dead series of any age are closed, and are the first to be dropped if there are
// too many.
func TestRestoreLongDead(t *testing.T) {
	for _, last := range []time.Time{{}, start.AddDate(-1000, 0, 0), start.Add(-66 * time.Minute)} {
		tr := New(Options{}, start)
		restored, drops := tr.Restore(restorable(testKey("a"), last, last), start)
		require.True(t, restored)
		require.Empty(t, drops)
		checkInvariants(t, tr, 0)
		w := send(t, tr, start, Finish)
		assert.Equal(t, series.Finished, w.Series.State)
		assert.Equal(t, last.UnixMicro(), w.Series.Last.UnixMicro())
	}
}

// More attempts have no response than an entry remembers. What others have counted
// in the Event that the first one created is not lost.
func TestManyAttempts(t *testing.T) {
	again := strings.Repeat("see a; begin a/1; failed a/1; ", 2*maxAttempts-1)
	w, _ := prepare(t, "see a; begin a/1; lost a/1; "+again+"meddle a base x6 Ongoing; write a/1; write a/1; begin a/1")
	w.answer("a/1", 0)
	w.check()
	assert.Contains(t, w.server("a"), fmt.Sprintf("base Ongoing x%d", 2*maxAttempts+6))
}

// The Event says the largest count that there is, and e has never attempted to write
// it. It is not taken for e's own.
func TestSaturatedEventIsNotOwn(t *testing.T) {
	tr := New(Options{}, start)
	k := testKey("a")
	tr.Observe(k, Occurrence{Instance: "controller-0"}, start)
	later := start.Add(time.Hour)
	found := restorable(k, start.Truncate(time.Microsecond), later.Truncate(time.Microsecond))
	found.Count = math.MaxInt32
	assert.Equal(t, alive, judgeFor(tr, entryOf(tr, k), found, later))

	// Nothing occurs more than a million times a second.
	found.Last = found.First.Add(9 * time.Second)
	found.Count = 10_000_000
	assert.Equal(t, alive, judgeFor(tr, entryOf(tr, k), found, start))
	found.Count++
	assert.Equal(t, stranger, judgeFor(tr, entryOf(tr, k), found, start))
}

// Who waits behind a missing permission for longer than the server keeps an Event is
// dropped. Other namespaces are not affected.
func TestDeniedForLong(t *testing.T) {
	tr := New(Options{}, start)
	other := testKey("b")
	other.Regarding.Namespace = "other"
	now := start
	dropped := 0
	lose := func(drops []Drop) {
		for _, d := range drops {
			assert.Equal(t, DropDenied, d.Reason)
			dropped += d.Count
		}
	}
	for range 65 {
		lose(tr.Observe(testKey("a"), Occurrence{}, now))
		lose(tr.Observe(other, Occurrence{}, now))
		lose(writeAll(tr, now, func(w *Write) Outcome {
			if w.Series.Namespace == "ns" {
				return Denied
			}
			return Written
		}))
		checkInvariants(t, tr, 1)
		now = now.Add(time.Minute)
		lose(tr.Advance(now))
	}
	assert.Greater(t, dropped, 60)
	assert.Equal(t, refused, entryOf(tr, testKey("a")).phase)
	assert.Equal(t, live, entryOf(tr, other).phase)
}

// A role can permit to create Events and not to change them, or to change them only. So these
// pass two gates.
func TestGatesOfWrites(t *testing.T) {
	tr := New(Options{}, start)
	k := testKey("a")
	e := observe(tr, k, start, Occurrence{}, Occurrence{})
	assert.Equal(t, heartbeat.Gate{Namespace: "ns", Verb: "create"}, e.Gate())
	write(t, tr, start, Create)
	observe(tr, k, start, Occurrence{})
	beat(tr, e, start)
	assert.Equal(t, heartbeat.Gate{Namespace: "ns", Verb: "patch"}, e.Gate())
	tr.Apply(send(t, tr, start, Heartbeat), Result{Outcome: Gone}, start)
	assert.Equal(t, heartbeat.Gate{Namespace: "ns", Verb: "create"}, e.Gate())
	write(t, tr, start, Recreate)
}

// A series that is denied for hours is tried rarely. Failures of other kinds before the first
// denial do not show that.
func TestOftenDenied(t *testing.T) {
	for name, tt := range map[string]struct {
		outcomes []Outcome
		rarely   bool
	}{
		"denied":                  {slices.Repeat([]Outcome{Denied}, 30), true},
		"failed, and then denied": {append(slices.Repeat([]Outcome{Troubled}, 30), Denied), false},
	} {
		t.Run(name, func(t *testing.T) {
			tr, now := New(Options{EventTTL: 48 * time.Hour}, start), start
			e := observe(tr, testKey("a"), now, Occurrence{})
			for _, outcome := range tt.outcomes {
				var w *Write
				w, now = await(t, tr, now)
				require.Empty(t, tr.Apply(w, Result{Outcome: outcome}, now))
			}
			until, cause := e.rare.hold.until, e.hold().why
			assert.Equal(t, denial, cause)
			assert.Equal(t, tt.rarely, until-tr.offset(now) > 10*time.Minute, "for %v", until-tr.offset(now))
		})
	}
}

// A series that fails waits alone. If each of several does, the others wait for a probe.
func TestOneFailureHoldsUpNoOtherSeries(t *testing.T) {
	tr := New(Options{}, start)
	for i := range 100 {
		require.Empty(t, tr.Observe(testKey(fmt.Sprint("x-", i)), Occurrence{}, start))
	}
	sent := 0
	for w, _, ok := tr.Next(start); ok; w, _, ok = tr.Next(start) {
		sent++
		require.False(t, w.entry.Tried())
		tr.Apply(w, Result{Outcome: Troubled}, start)
	}
	assert.Equal(t, 8, sent)
	advance, next := tr.Wake(start)
	assert.Equal(t, []time.Time{start.Add(time.Second), start.Add(time.Second / 2)}, []time.Time{advance, next})
}

// A Warning is due to end, but its end would push out another Warning that waits for its
// first write.
func TestNormalDoesNotEndWarnings(t *testing.T) {
	tr := New(Options{Capacity: 1}, start)
	tr.Observe(testKey("A"), Occurrence{}, start)
	w := send(t, tr, start, Create)
	tr.Apply(w, Result{Outcome: PushedBack, RetryAfter: time.Hour}, start)
	now := start.Add(7 * time.Minute)
	tr.Advance(now)
	require.Empty(t, tr.Observe(testKey("B"), Occurrence{}, now))
	now = now.Add(7 * time.Minute)
	tr.Advance(now)
	drops := tr.Observe(testKey("c"), Occurrence{}, now)
	require.Len(t, drops, 1)
	assert.Equal(t, "Normal", drops[0].Key.Type)
	assert.Equal(t, DropTableFull, drops[0].Reason)
}

func TestRestoreWithoutALimit(t *testing.T) {
	tr := New(Options{Capacity: math.MaxInt}, start)
	found := restorable(testKey("a"), start.Add(-time.Hour).Truncate(time.Microsecond), start.Add(-time.Minute).Truncate(time.Microsecond))
	restored, _ := tr.Restore(found, start)
	assert.True(t, restored)
}

// Readers never take an Ongoing series for stale, however rarely it occurs.
func TestHeartbeatIsAPromise(t *testing.T) {
	for _, finishAfter := range []time.Duration{time.Minute, 6 * time.Minute, 20 * time.Minute, time.Hour} {
		tr := New(Options{FinishAfter: finishAfter}, start)
		observe(tr, testKey("a"), start, Occurrence{}, Occurrence{})
		says := &write(t, tr, start, Create).Series
		for now := start; now.Before(start.Add(5 * time.Hour)); now = now.Add(time.Minute) {
			if now.Sub(start)%max(finishAfter-time.Minute, time.Minute) == 0 {
				observe(tr, testKey("a"), now, Occurrence{})
			}
			tr.Advance(now)
			assert.Equal(t, series.Ongoing, says.StateAt(now), "%s after the last occurrence that is known", now.Sub(says.Last))
			if w, _, ok := tr.Next(now); ok {
				tr.Apply(w, Result{}, now)
				says = &w.Series
			}
			assert.Equal(t, 30*time.Minute, says.Heartbeat)
			assert.Equal(t, max(finishAfter, says.Window), says.Window)
		}
	}
}

// A Warning goes before Normals that have waited for less than normalSlack.
func TestWarningGoesBeforeNormals(t *testing.T) {
	tr := New(Options{}, start)
	normal, warning := testKey("normal"), testKey("warning")
	warning.Type = corev1.EventTypeWarning
	observe(tr, normal, start, Occurrence{})
	now := start.Add(normalSlack - time.Second)
	observe(tr, warning, now, Occurrence{})
	w, _, ok := tr.Next(now)
	require.True(t, ok)
	assert.Equal(t, corev1.EventTypeWarning, w.Series.Key.Type)
}
