package events

import (
	"context"
	"sync"

	"k8s.io/klog/v2"

	"github.com/eventseries/eventseries/internal/tracker"
	"github.com/eventseries/eventseries/series"
)

// DropReason says why occurrences were lost:
//
//   - TableFull: too many series waited for their last write when another one was evicted. See
//     [Options].Capacity.
//   - Denied: for [Options].EventTTL, the server denied writes. In a shutdown, two denials are enough, as for
//     Rejected.
//   - Unavailable: for EventTTL the server could not handle events of the namespace, while it
//     handled others. A webhook that fails does that.
//   - InvalidObject: the regarding object is nil, its kind is unknown, or its kind, apiVersion,
//     namespace, name, or UID cannot be that of an object.
//   - InvalidType: the type is neither Normal nor Warning.
//   - Rejected: for EventTTL, the API server, a webhook, or a policy rejected the Event, or the sink
//     returned an error that comes from neither a server nor a network.
//   - NamespaceNotFound: the namespace of the Event does not exist.
//   - NamespaceTerminating: the namespace of the Event is being deleted, or was deleted within
//     EventTTL after an Event was written there.
//   - NameTaken: Events that are not of the series, or that somebody has changed beyond
//     recognition, have all of its names.
//   - Shutdown: the event was emitted after [Broadcaster.Shutdown] was called, or could not be
//     written in time.
type DropReason string

// Drop describes a loss. It is passed to [Options].OnDrop.
type Drop struct {
	// Reason says why.
	Reason DropReason
	// Key of the series.
	Key series.Key
	// Note of the lost occurrence, or of the first one if there are several.
	Note string
	// Count is the number of lost occurrences. If the response to a write was lost, the
	// server can store some of them nevertheless.
	Count int
}

// drop has losses passed to OnDrop, and has the reporter log them. The tracker has counted them. err is
// the response of the server, if that is why. The caller holds no lock.
//
// The dispatcher logs the sums that are due later. When it has stopped, Shutdown logs them, and
// after that, the next loss does.
func (b *Broadcaster) drop(logger klog.Logger, err error, drops []tracker.Drop) {
	if len(drops) == 0 {
		return
	}
	if b.opts.OnDrop != nil {
		b.tell(drops)
	}
	if next := b.report.lost(logger, err, drops, false); !next.IsZero() {
		b.poke()
	}
}

// drops are losses on their way to OnDrop. One goroutine at a time calls that. So it is not called
// concurrently, and delays nobody.
type drops struct {
	mu    sync.Mutex
	queue []tracker.Drop
	told  chan struct{} // closed when OnDrop has returned for all; nil if there is no goroutine
}

// tell has losses passed to OnDrop.
func (b *Broadcaster) tell(losses []tracker.Drop) {
	x := &b.drops
	x.mu.Lock()
	defer x.mu.Unlock()
	// At least what a shutdown can lose at once. More wait if OnDrop hangs, or emits events that are lost.
	room := 2*max(b.opts.Capacity, tracker.Options{}.WithDefaults().Capacity) - len(x.queue)
	x.queue = append(x.queue, losses[:min(max(room, 0), len(losses))]...)
	if x.told == nil {
		x.told = make(chan struct{})
		go b.tellNext()
	}
}

// tellNext calls OnDrop with the next loss. Another goroutine has the one after that, because OnDrop can end
// this one, as FailNow of a test does.
func (b *Broadcaster) tellNext() {
	x := &b.drops
	x.mu.Lock()
	if len(x.queue) == 0 {
		close(x.told)
		x.queue, x.told = nil, nil
		x.mu.Unlock()
		return
	}
	d := x.queue[0]
	x.queue = x.queue[1:]
	x.mu.Unlock()
	defer func() { go b.tellNext() }()
	defer b.recoverAndLog("OnDrop")
	b.opts.OnDrop(Drop{DropReason(d.Reason), d.Key, d.Note, d.Count})
}

// wait waits until OnDrop has returned for all losses.
func (x *drops) wait(ctx context.Context) error {
	x.mu.Lock()
	told := x.told
	x.mu.Unlock()
	if told == nil {
		return nil
	}
	return waitFor(ctx, told)
}
