package heartbeat

import (
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// oracle is a queue that is too simple to be wrong: a slice that is sorted
// after each change.
type oracle []deadline

type deadline struct {
	at   time.Time
	item *item
}

func (o *oracle) set(it *item, at time.Time) {
	o.remove(it)
	*o = append(*o, deadline{at, it})
	slices.SortStableFunc(*o, func(a, b deadline) int { return a.at.Compare(b.at) })
}

func (o *oracle) remove(it *item) {
	*o = slices.DeleteFunc(*o, func(d deadline) bool { return d.item == it })
}

// step is one operation of a history, in three bytes: what to do (and in the
// rest of that byte, how much), to which item, and when.
const step = 3

// replay makes a queue and the oracle live through the history, and compares
// them after each step.
func replay(t *testing.T, history []byte) {
	var q Queue[*item]
	var o oracle
	items := make([]item, 256)
	buf := make([]*item, 64)
	now := start
	for ; len(history) >= step; history = history[step:] {
		what, much := history[0]%4, int(history[0]/4)
		it := &items[history[1]]
		// In milliseconds, and few of them, so that deadlines coincide.
		when := now.Add(time.Duration(int8(history[2])) * time.Millisecond)
		switch what {
		case 0, 1:
			q.Set(it, when)
			o.set(it, when)
		case 2:
			q.Remove(it)
			o.remove(it)
		case 3:
			// It can be called with an earlier time than before.
			if when.After(now) {
				now = when
			}
			n := q.PopDue(buf[:much], when)
			for _, popped := range buf[:n] {
				// Any item will do that has the earliest deadline.
				i := slices.IndexFunc(o, func(d deadline) bool { return d.item == popped })
				require.GreaterOrEqual(t, i, 0, "popped, but not in the queue")
				require.True(t, o[i].at.Equal(o[0].at), "popped out of order: %v before %v", o[i].at, o[0].at)
				require.False(t, o[i].at.After(when), "popped early: %v at %v", o[i].at, when)
				o.remove(popped)
			}
			if n < much && len(o) > 0 {
				require.True(t, o[0].at.After(when), "left, but due: %v at %v", o[0].at, when)
			}
		}
		require.Equal(t, len(o), q.Len())
		next, ok := q.Next()
		require.Equal(t, len(o) > 0, ok)
		if ok {
			require.True(t, o[0].at.Equal(next), "next is %v and not %v", next, o[0].at)
		}
		queued := 0
		for i := range items {
			if items[i].slot != 0 {
				queued++
			}
		}
		require.Equal(t, len(o), queued, "items that take themselves for queued")
		requireInvariants(t, &q)
	}
}

// requireInvariants requires that no node is earlier than its parent, that each
// item knows its index, and that nothing else is kept alive.
func requireInvariants[T Item](t *testing.T, q *Queue[T]) {
	t.Helper()
	h := &q.heap
	for i := root; i < h.nodes.size; i++ {
		n := h.nodes.at(i)
		if slot := *n.item.Slot(); int(slot) != i {
			require.Fail(t, "wrong slot", "%d at %d", slot, i)
		}
		if i == root {
			continue
		}
		if p := parent(i); h.nodes.at(p).at > n.at {
			require.Fail(t, "earlier than its parent", "%d, whose parent is %d", i, p)
		}
	}
	requireClean(t, h.nodes)
}

func TestQueueAgainstOracle(t *testing.T) {
	rng := newRand(t)
	for range 20 {
		history := make([]byte, 1000*step)
		for i := range len(history) / 8 {
			binary.LittleEndian.PutUint64(history[8*i:], rng.Uint64())
		}
		// Half of the histories fill the queue before they go to and fro.
		if rng.IntN(2) == 0 {
			for i := 0; i < len(history)/2; i += step {
				history[i] = 0
			}
		}
		replay(t, history)
	}
}

// FuzzQueue is best run with -fuzzminimizetime 10x: most of the time goes into
// minimizing otherwise.
func FuzzQueue(f *testing.F) {
	f.Add([]byte{0, 1, 5, 0, 2, 3, 255, 0, 4, 255, 0, 9})    // two, popped one by one
	f.Add([]byte{0, 1, 5, 0, 1, 3, 0, 1, 7, 2, 1, 0})        // one, moved and removed
	f.Add([]byte{0, 1, 5, 0, 2, 5, 0, 3, 5, 7, 0, 5})        // equal deadlines
	f.Add([]byte{0, 1, 128, 0, 2, 127, 3, 0, 0, 255, 0, 90}) // the past, and no room
	f.Fuzz(func(t *testing.T, history []byte) {
		// Longer ones find nothing more and take long.
		replay(t, history[:min(len(history), 300*step)])
	})
}
