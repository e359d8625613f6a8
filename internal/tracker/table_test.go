package tracker

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/eventseries/eventseries/internal/workload"
	"github.com/eventseries/eventseries/series"
)

// Eviction. Its order is in testdata/scripts/05-evict.txt and 06-closing.txt.

// What fails is evicted first, and what has been idle longest, among a few that are drawn.
func TestVictim(t *testing.T) {
	tr := New(Options{Seed: 1}, start)
	assert.Nil(t, tr.victim(classOver, classNormal, classWarning))
	const n = 100
	var entries []*Entry
	for i := range n {
		entries = append(entries, observe(t, tr, named("a", fmt.Sprint(i)), start.Add(time.Duration(i)*time.Microsecond), Occurrence{}))
	}
	mean := func() (mean time.Duration) {
		for range 1000 {
			mean += tr.victim(classOver, classNormal).last / 1000
		}
		return mean
	}
	assert.InDelta(t, n/(sample+1)*time.Microsecond, mean(), float64(5*time.Microsecond))
	for i, e := range entries {
		e.slot.Handled = uint8(i % 2)
	}
	failed := 0
	for range 1000 {
		failed += tr.victim(classNormal).slot.Failures()
	}
	assert.InDelta(t, 1000*7/8, failed, 50)
	warning := observe(t, tr, named("W", ""), start, Occurrence{})
	assert.Equal(t, warning, tr.victim(classOver, classWarning))
	assert.NotEqual(t, warning, tr.victim(classOver, classNormal, classWarning))
}

// There are more loops than the table has room for. That costs the requests of a part of them, and counts
// stay exact. A hot loop that comes later has its place at once.
func TestMoreLoopsThanRoom(t *testing.T) {
	for loops, most := range map[int]int{100: 20, 101: 40, 110: 300, 200: 800} {
		w := newWorld(t, Options{Capacity: 100, Seed: 1}, newServer(t))
		now, keys, sent := time.Duration(0), []string{}, 0
		for i := range loops {
			keys = append(keys, fmt.Sprint("w", i))
		}
		rounds := 20
		for range rounds {
			before := sent
			for _, key := range keys {
				now += time.Minute / time.Duration(loops)
				w.see(key, "", nil, now)
				for w.begin("", now) != "no write" {
					sent++
					w.answer(w.inFlight[0].key, now)
				}
			}
			if now > 3*time.Minute {
				require.LessOrEqual(t, sent-before, most, loops)
			}
		}
		w.latest = now
		w.check()
		for _, key := range keys {
			sum := 0
			if e := w.find(key); e != nil {
				sum = int(e.count)
			} else {
				for _, ev := range w.remote.all(key) {
					sum += ev.count()
				}
			}
			require.Equal(t, rounds, sum, key)
		}
		sent = 0
		for i := range 200 {
			now += 10 * time.Millisecond
			w.see("hot", "", nil, now)
			for w.begin("", now) != "no write" {
				sent++
				w.answer(w.inFlight[0].key, now)
			}
			if i == 100 {
				require.Equal(t, active, w.find("hot").life)
			}
		}
		assert.LessOrEqual(t, sent, 6)
	}
}

// No Normal evicts a Warning that is not over.
func TestFloodOfNormals(t *testing.T) {
	tr := New(Options{Capacity: 1000, Seed: 1}, start)
	for i := range 1000 {
		observe(t, tr, named("W", fmt.Sprint(i)), start, Occurrence{}, Occurrence{})
	}
	for i := range 5000 {
		tr.Observe(named("n", fmt.Sprint("normal-", i)), Occurrence{}, start.Add(time.Duration(i)*time.Millisecond))
	}
	assert.Len(t, tr.lists[classWarning], 1000)
}

// Tallies.

func TestTallies(t *testing.T) {
	x := tallies{limit: 2, rows: map[TallyKey]*Tally{}}
	for _, step := range []struct{ of, want TallyKey }{
		{TallyKey{"a", "Normal", Other}, TallyKey{"a", "Normal", Other}}, // a reason of that name
		{TallyKey{"a", "Normal", "A"}, TallyKey{"a", "Normal", "A"}},
		{TallyKey{"a", "Normal", "B"}, TallyKey{Other, "Normal", Other}},
		{TallyKey{"a", "strange", "B"}, TallyKey{Other, Other, Other}},
		{TallyKey{"a", "Warning", "B"}, TallyKey{Other, "Warning", Other}},
		{TallyKey{"a", "Normal", "A"}, TallyKey{"a", "Normal", "A"}},
		{TallyKey{"b", "Normal", "C"}, TallyKey{Other, "Normal", Other}},
	} {
		assert.Equal(t, step.want, x.row(&series.Key{ReportingController: step.of.Controller, Type: step.of.Type, Reason: step.of.Reason}).TallyKey, step.of)
	}
	assert.Equal(t, 2, x.own)
	assert.Less(t, x.own, len(x.rows))
}

// Series that notes tell apart have their own notes, and others the one that is made for them.
func TestNoteOf(t *testing.T) {
	for note, want := range map[string]string{"": "combined", "a": "own", series.CombinedPrefix: "combined"} {
		e := Entry{key: internedKey{rare: &rareWords{note: note}}}
		assert.Equal(t, want, e.noteOf(&Occurrence{Note: "own", Combined: "combined"}))
		assert.Equal(t, "own", e.noteOf(&Occurrence{Note: "own"}))
	}
}

// A million reasons: the rows are bounded in the whole life of the process, none disappears or
// decreases, and the sum is exact.
func TestTalliesOfAMillionReasons(t *testing.T) {
	const limit, reasons = 100, 1_000_000
	tr := New(Options{Capacity: 10}, start)
	tr.tallies.limit = limit
	k := testKey("W")
	before, counted := map[TallyKey]uint64{}, uint64(0)
	for i := range reasons {
		k.Reason = fmt.Sprint("Reason", i)
		if counted++; i%100 == 0 {
			tr.Observe(k, Occurrence{}, start)
		} else {
			tr.Reject(k, Occurrence{}, DropInvalidType)
		}
		if i%10_000 != 0 {
			continue
		}
		sum := uint64(0)
		rows, limited := tr.Tallies()
		require.Equal(t, i >= limit, limited)
		for _, r := range rows {
			require.GreaterOrEqual(t, r.Occurrences, before[r.TallyKey], r.TallyKey)
			before[r.TallyKey] = r.Occurrences
			sum += r.Occurrences
		}
		require.Equal(t, counted, sum)
		require.LessOrEqual(t, len(rows), limit+1)
		require.Len(t, rows, len(before))
	}
	assert.EqualValues(t, 1, before[TallyKey{k.ReportingController, "Warning", "Reason0"}])
}

// Memory.

// A hot loop allocates nothing.
func TestCountAllocatesNothing(t *testing.T) {
	tr, k := New(Options{}, start), testKey("a")
	e := observe(t, tr, k, start, Occurrence{}, Occurrence{})
	now := start
	for name, do := range map[string]func(){
		"count":                 func() { now = now.Add(time.Millisecond); tr.Count(k, tr.offset(now)) },
		"describe with no news": func() { tr.Describe(e, Occurrence{Note: "later"}, now) },
		"a key on the stack":    func() { own := *k; tr.Count(&own, tr.offset(now)) },
	} {
		assert.Zero(t, testing.AllocsPerRun(1000, do), name)
	}
	assert.EqualValues(t, 2+2*1001, e.count)
}

// A note that is formatted each time and stays the same is stored once.
func TestNoteIsStoredOnce(t *testing.T) {
	tr := New(Options{}, start)
	note := func() Occurrence { return Occurrence{Note: strings.Clone("back-off restarting")} }
	e := observe(t, tr, testKey("a"), start, note(), note())
	assert.Empty(t, e.lastNote)
	tr.Describe(e, Occurrence{Note: "another"}, start)
	assert.Equal(t, "another", e.lastNote)
	tr.Describe(e, note(), start)
	assert.Equal(t, "back-off restarting", e.lastNote)
	assert.Same(t, unsafe.StringData(e.note), unsafe.StringData(e.lastNote))
}

// Series occur together, always in the same order. Each has its turn.
func TestNotesOfABurstHaveTurns(t *testing.T) {
	for _, size := range []int{1_100, 1_500, 5_000} {
		tr, entries := table{size: size}, make([]Entry, size)
		for at := time.Minute; at < 20*time.Minute; at += 10 * time.Second {
			for i := range entries {
				if e := &entries[i]; !tr.takesNote(e, at) {
					require.Less(t, tenths(at)-e.notedAt, tenths(time.Minute+20*time.Second), "%d of %d", i, size)
				}
			}
		}
	}
}

// Each note is wanted while there are fewer than 1,000 per second. Beyond that, series have their
// turn, and a loop leaves those of slower ones alone.
func TestNotesHaveARate(t *testing.T) {
	const step, whole = time.Second / 10_000, 20 * time.Second
	for name, tt := range map[string]struct {
		every    []int // steps between the occurrences of each series
		wantEach []int // how many notes of each are wanted, at least
	}{
		"a few":               {[]int{10_000, 1000, 20}, []int{20, 200, 10_000}},
		"a hot loop":          {[]int{1}, []int{19_000}},
		"beside a hot loop":   {[]int{10_000, 1000, 1, 1}, []int{20, 200, 400, 400}},
		"more than in a turn": {slices.Repeat([]int{1000}, 200), slices.Repeat([]int{2}, 200)},
	} {
		tr := New(Options{}, start)
		got, total := make([]int, len(tt.every)), 0
		for i := range tt.every {
			observe(t, tr, testKey(strconv.Itoa(i)), start, Occurrence{}, Occurrence{})
		}
		keys := make([]*series.Key, len(tt.every))
		for i := range keys {
			keys[i] = testKey(strconv.Itoa(i))
		}
		for n := range int(whole / step) {
			for i, every := range tt.every {
				if n%every != i%every {
					continue
				}
				if _, _, wantNote := tr.Count(keys[i], time.Second+time.Duration(n)*step); wantNote {
					got[i]++
					total++
				}
			}
		}
		for i, want := range tt.wantEach {
			assert.GreaterOrEqual(t, got[i], want, "%s: %d", name, i)
		}
		assert.LessOrEqual(t, total, 21_100, name)
	}

	// All together want 1,000 per second.
	for size, want := range map[int]time.Duration{1: time.Second, 10_000: 10 * time.Second, 1_000_000: 1000 * time.Second} {
		tr, k := New(Options{}, start), testKey("a")
		observe(t, tr, k, start, Occurrence{}, Occurrence{})
		tr.size = size
		for at := time.Second / 2; at <= want; at += time.Second / 2 {
			tr.noted = at // others have taken all
			_, counted, wantNote := tr.Count(k, at)
			assert.Equal(t, []bool{true, at == want}, []bool{counted, wantNote}, "%d series, after %v", size, at)
		}
	}
}

// heap returns the size of the heap that is in use.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// 100,000 Ongoing series take at most 400 bytes each.
func TestBytesPerSeries(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 || testing.Short() {
		t.Skip("words have another size, or the race detector needs memory of its own")
	}
	const n = 100_000
	keys := manyKeys(n)
	before := heap()
	tr := trackerOf(t, keys)
	per := (heap() - before) / n
	t.Logf("%d bytes a series", per)
	assert.LessOrEqual(t, per, uint64(400))
	runtime.KeepAlive(keys)
	runtime.KeepAlive(tr)
}

// Strings of callers can be parts of long ones: an error with a response, or a file. An entry keeps
// copies, so 100 series take kilobytes and not the 1 MB that each of their strings is a part of.
func TestEntriesKeepCopies(t *testing.T) {
	workload.Large(t)
	const n = 100
	for name, set := range map[string]func(k *series.Key, o *Occurrence, part string){
		"note":         func(_ *series.Key, o *Occurrence, part string) { o.Note = part },
		"name":         func(k *series.Key, _ *Occurrence, part string) { k.Regarding.Name = part },
		"namespace":    func(k *series.Key, _ *Occurrence, part string) { k.Regarding.Namespace = part },
		"UID":          func(k *series.Key, _ *Occurrence, part string) { k.Regarding.UID = types.UID(part) },
		"kind":         func(k *series.Key, _ *Occurrence, part string) { k.Regarding.Kind = part },
		"apiVersion":   func(k *series.Key, _ *Occurrence, part string) { k.Regarding.APIVersion = part },
		"field path":   func(k *series.Key, _ *Occurrence, part string) { k.Regarding.FieldPath = part },
		"related name": func(k *series.Key, _ *Occurrence, part string) { k.Related.Name = part },
		"related UID":  func(k *series.Key, _ *Occurrence, part string) { k.Related.UID = types.UID(part) },
		"related kind": func(k *series.Key, _ *Occurrence, part string) { k.Related.Kind = part },
		"reason":       func(k *series.Key, _ *Occurrence, part string) { k.Reason = part },
		"action":       func(k *series.Key, _ *Occurrence, part string) { k.Action = part },
		"controller":   func(k *series.Key, _ *Occurrence, part string) { k.ReportingController = part },
		"instance":     func(k *series.Key, o *Occurrence, part string) { k.ReportingInstance = ""; o.Instance = part },
		"distinct note": func(k *series.Key, o *Occurrence, part string) {
			k.Note, o.Note, o.DistinctNotes = part, part, n
		},
		"annotation": func(_ *series.Key, o *Occurrence, part string) { o.Annotations = map[string]string{part[:5]: part} },
	} {
		t.Run(name, func(t *testing.T) {
			tr := New(Options{}, start)
			before := heap()
			for i := range n {
				long := strings.Repeat(fmt.Sprintf("%-20d", i), 50_000) // 1 MB
				k, o := named("a", fmt.Sprint("pod-", i)), Occurrence{}
				for range 2 {
					set(k, &o, long[20:40])
					require.Empty(t, tr.Observe(k, o, start))
				}
				e, _, _ := tr.Count(k, tr.offset(start))
				if e == nil {
					e = entryOf(tr, k)
				}
				set(k, &o, long[40:60]) // the same text
				tr.Describe(e, Occurrence{Note: long[39:59]}, start)
				if i%2 == 0 { // the earlier process of the next one was told the same
					s := restorable(named("a", fmt.Sprint("earlier-", i)), start.Add(-time.Minute), start)
					s.Key.Regarding.UID, s.Note, s.LastNote, s.Annotations = types.UID(long[20:40]), long[20:40], long[19:39], map[string]string{long[:5]: long[20:40]}
					s.Name = s.Key.Name(0)
					ok, _ := tr.Restore(s, start)
					require.True(t, ok)
				}
			}
			per := (int64(heap()) - int64(before)) / n
			assert.Less(t, per, int64(2<<10), "bytes a series")
			runtime.KeepAlive(tr)
		})
	}
}

// manyKeys returns keys that differ in the object.
func manyKeys(n int) []series.Key {
	keys := make([]series.Key, n)
	for i := range keys {
		keys[i] = *named("a", fmt.Sprintf("some-deployment-5d4f8c7b9d-%05d", i))
	}
	return keys
}

// trackerOf returns a tracker with an ongoing series for each key, all written.
func trackerOf(t testing.TB, keys []series.Key) *Tracker {
	tr := New(Options{Capacity: len(keys)}, start)
	o := Occurrence{Note: "back-off restarting failed container"}
	for i := range keys {
		tr.Observe(&keys[i], o, start)
		tr.Observe(&keys[i], o, start)
		w, _, ok := next(tr, start)
		require.True(t, ok)
		tr.Apply(w, Response{}, start)
	}
	return tr
}

// ongoingSeries returns a tracker with n ongoing series, all written, and their keys.
func ongoingSeries(t testing.TB, n int) (*Tracker, []series.Key) {
	keys := manyKeys(n)
	return trackerOf(t, keys), keys
}
