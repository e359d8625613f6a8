package tracker

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/eventseries/eventseries/internal/workload"
	"github.com/eventseries/eventseries/series"
)

// checkIndex looks at an index from inside. hashOf returns the hash of an entry.
func checkIndex(t *testing.T, x *index, hashOf func(*Entry) uint64) {
	t.Helper()
	n := 0
	s := x.table()
	for i := range s {
		e := s[i].entry.Load()
		if e == nil {
			continue
		}
		n++
		hash := s[i].hash.Load()
		if hash != hashOf(e) {
			t.Errorf("%v is under another hash", e.Key())
		}
		for at := s.home(hash); at != i; at = s.next(at) {
			if s[at].entry.Load() == nil {
				t.Errorf("%v is behind a gap", e.Key())
			}
		}
	}
	assert.Equal(t, n, x.n)
	switch slots := len(s); {
	case n == 0:
		assert.Zero(t, slots)
	case slots&(slots-1) != 0, 5*n > 4*slots, slots > minSlots && 8*n < slots:
		t.Errorf("%d slots for %d entries", slots, n)
	}
}

// An index behaves as a map does, whatever the hashes are: many of them are the same
// here, or have the same home, also at the end of the slots.
func TestIndex(t *testing.T) {
	for seed := range workload.Seeds(24) {
		rng := rand.New(rand.NewPCG(seed, 0))
		var x index
		words := newVocabulary()
		want := map[string]*Entry{}
		hashOf := func(name string) uint64 {
			hash := uint64(name[0]) * shardCount * (seed % 3) // 26 hashes, or one
			if seed%4 == 3 {
				hash = -hash
			}
			return hash
		}
		for step := range 2000 {
			name := string(rune('a'+rng.IntN(26))) + string(rune('a'+rng.IntN(1+int(seed))))
			k := testKey(name)
			hash := hashOf(name)
			e := want[name]
			if got := x.find(hash, k); got != e {
				require.Same(t, e, got, "seed %d, step %d", seed, step)
			}
			// It grows in the first half and shrinks in the second.
			switch grows := rng.IntN(2000) > step; {
			case e == nil && grows:
				e = &Entry{key: words.intern(k, "")}
				x.insert(hash, e)
				want[name] = e
			case e != nil && !grows:
				x.remove(hash, e)
				delete(want, name)
			}
			if step%50 == 0 {
				checkIndex(t, &x, func(e *Entry) uint64 { return hashOf(strings.TrimPrefix(e.key.name, "pod-")) })
				assert.Len(t, x.all(), len(want))
				var same []*Entry
				for name, e := range want {
					if hashOf(name) == hash {
						same = append(same, e)
					}
				}
				assert.ElementsMatch(t, same, slices.Collect(x.with(hash)))
			}
		}
		for name, e := range want {
			x.remove(hashOf(name), e)
			assert.Nil(t, x.find(hashOf(name), testKey(name)))
		}
		assert.Zero(t, x.n)
		assert.Nil(t, x.slots.Load())
	}
}

// Two keys whose hashes are equal are counted separately.
func TestEqualHashes(t *testing.T) {
	tr := New(Options{}, start)
	a, b := testKey("a"), testKey("b")
	hash := fastHash(tr.seed, a)
	index := &tr.shard(hash).entries
	other := &Entry{key: tr.words.intern(b, ""), spec: spec{progress: progress{state: series.Ongoing, count: 7}}}
	other.counter.open()
	index.insert(hash, other) // as if the hash of b were the same
	tr.Observe(a, Occurrence{}, start)
	tr.Observe(a, Occurrence{}, start)
	e, counted, _ := tr.Count(a, tr.offset(start))
	require.True(t, counted)
	assert.Equal(t, 3, e.counted())
	assert.Equal(t, 7, other.counted())
	assert.Same(t, other, index.find(hash, b))

	send(t, tr, start.Add(tr.opts.MaxWindow), Create) // which ends it
	assert.Nil(t, index.find(hash, a))
	assert.Same(t, other, index.find(hash, b))
}

// A search while the index changes can miss an entry that moves. It finds no other
// entry, and ends.
func TestIndexIsSearchedWhileItChanges(t *testing.T) {
	var x index
	words := newVocabulary()
	const stays, others = 8, 64
	keys := manyKeys(stays + others)
	entries, hashes := make([]*Entry, len(keys)), make([]uint64, len(keys))
	for i := range entries {
		entries[i], hashes[i] = &Entry{key: words.intern(&keys[i], "")}, uint64(i%5)*shardCount // of which many clash
		if i < stays {
			x.insert(hashes[i], entries[i])
		}
	}
	var stop atomic.Bool
	var wg sync.WaitGroup
	for seed := range uint64(3) {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, 0))
			for !stop.Load() {
				i := rng.IntN(len(entries))
				if e := x.find(hashes[i], &keys[i]); e != nil && e != entries[i] {
					t.Errorf("found %v, not %v", e.Key(), keys[i])
				}
			}
		})
	}
	rng := rand.New(rand.NewPCG(1, 1))
	in := make([]bool, len(entries))
	for step := range 20000 {
		i := stays + rng.IntN(1+min(others-1, step%1000)) // so that it grows and shrinks
		if in[i] {
			x.remove(hashes[i], entries[i])
		} else {
			x.insert(hashes[i], entries[i])
		}
		in[i] = !in[i]
	}
	stop.Store(true)
	wg.Wait()
	checkIndex(t, &x, func(e *Entry) uint64 { return hashes[slices.Index(entries, e)] })
	for i := range entries {
		if i < stays || in[i] {
			assert.Same(t, entries[i], x.find(hashes[i], &keys[i]))
		}
	}
}
