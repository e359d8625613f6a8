package events

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/eventseries/eventseries/internal/tracker"
)

// Flush returns when everything that was emitted before it was called is on the
// server, the counts of running series included, or is lost and counted in
// Stats.Dropped. If ctx ends first, or nothing is being written because the
// broadcaster is not running, the error says how many series were left.
func (b *Broadcaster) Flush(ctx context.Context) error {
	pending := b.table.Flush()
	if len(pending) == 0 {
		return nil
	}
	w := b.writer.Load()
	if w == nil {
		return fmt.Errorf("events: %d series cannot be flushed: the broadcaster has not been started", len(pending))
	}
	f := b.flushes.add(pending)
	defer b.flushes.remove(f)
	now := b.clock.Now()
	for _, p := range pending {
		w.add(p.Entry, now)
	}
	// Some may have been written before the flush was there to notice.
	b.flushes.checkAll(b.table)

	var cause error
	select {
	case <-f.done:
		return nil
	case <-ctx.Done():
		cause = context.Cause(ctx)
	case <-w.ctx.Done():
		cause = errors.New("the broadcaster has stopped writing")
	}
	return fmt.Errorf("events: %d of %d series were not flushed: %w", b.flushes.left(f), len(pending), cause)
}

// flushes are the calls of Flush that wait. They may be used concurrently.
type flushes struct {
	mu      sync.Mutex
	waiting map[*flush]struct{}
}

type flush struct {
	pending map[*tracker.Entry]tracker.Pending
	done    chan struct{} // closed when nothing is pending
}

func (fs *flushes) add(pending []tracker.Pending) *flush {
	f := &flush{pending: make(map[*tracker.Entry]tracker.Pending, len(pending)), done: make(chan struct{})}
	for _, p := range pending {
		f.pending[p.Entry] = p
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.waiting == nil {
		fs.waiting = make(map[*flush]struct{})
	}
	fs.waiting[f] = struct{}{}
	return f
}

func (fs *flushes) remove(f *flush) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	delete(fs.waiting, f)
}

func (fs *flushes) left(f *flush) int {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return len(f.pending)
}

// check looks at entries of which a write has ended, or which were lost.
func (fs *flushes) check(table *tracker.Table, entries ...*tracker.Entry) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for f := range fs.waiting {
		for _, e := range entries {
			if p, ok := f.pending[e]; ok {
				fs.settle(table, f, p)
			}
		}
	}
}

// checkAll looks at all entries that somebody waits for.
func (fs *flushes) checkAll(table *tracker.Table) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for f := range fs.waiting {
		for _, p := range f.pending {
			fs.settle(table, f, p)
		}
	}
}

// settle strikes p off if the server knows it. The lock is held.
func (fs *flushes) settle(table *tracker.Table, f *flush, p tracker.Pending) {
	if !table.Settled(p) {
		return
	}
	delete(f.pending, p.Entry)
	if len(f.pending) == 0 {
		close(f.done)
		delete(fs.waiting, f)
	}
}
