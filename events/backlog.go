package events

import (
	"container/list"
	"sync"
	"time"

	"github.com/eventseries/eventseries/internal/tracker"
)

// backlog knows which series have something to be written, and since when: in the
// work queue, under way, or waiting for the next attempt. The work queue itself does
// not tell. What has waited longest is in front, since a write that fails keeps its
// place. It may be used concurrently.
type backlog struct {
	mu      sync.Mutex
	order   list.List // of *arrears
	entries map[*tracker.Entry]*list.Element
	largest int // how many there have been since there were none
}

// arrears is one series of a backlog.
type arrears struct {
	entry *tracker.Entry
	since time.Time
	busy  bool // the write is under way
	more  bool // and something has been added since that began
}

// backlogKeep is up to what size the map is kept when the backlog is empty. Maps do
// not shrink, and an outage can make it as large as the table.
const backlogKeep = 1000

// add says that there is something to be written of e.
func (b *backlog) add(e *tracker.Entry, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if known, ok := b.entries[e]; ok {
		known.Value.(*arrears).more = true
		return
	}
	b.insert(e, now)
}

func (b *backlog) insert(e *tracker.Entry, now time.Time) {
	if b.entries == nil {
		b.entries = make(map[*tracker.Entry]*list.Element)
	}
	b.entries[e] = b.order.PushBack(&arrears{entry: e, since: now})
	b.largest = max(b.largest, len(b.entries))
}

// begin says that somebody sees to e.
func (b *backlog) begin(e *tracker.Entry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if known, ok := b.entries[e]; ok {
		a := known.Value.(*arrears)
		a.busy, a.more = true, false
	}
}

// end says what came of it: whether e is to be seen to again, and if so, whether
// that is because nothing has been achieved.
func (b *backlog) end(e *tracker.Entry, again, failed bool, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	known, ok := b.entries[e]
	if ok {
		a := known.Value.(*arrears)
		if again && failed {
			a.busy, a.more = false, false
			return
		}
		again = again || a.busy && a.more
		b.order.Remove(known)
		delete(b.entries, e)
	}
	if again {
		b.insert(e, now)
	}
	if len(b.entries) == 0 && b.largest > backlogKeep {
		b.entries, b.largest = nil, 0
	}
}

// state returns how many series wait, and since when the first of them does.
func (b *backlog) state() (n int, since time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if first := b.order.Front(); first != nil {
		since = first.Value.(*arrears).since
	}
	return len(b.entries), since
}
