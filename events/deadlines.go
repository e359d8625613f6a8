package events

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/eventseries/eventseries/heartbeat"
	"github.com/eventseries/eventseries/internal/tracker"
)

// dueBatch is how many deadlines are taken at once, so that the lock is not held
// for as long as a million of them take.
const dueBatch = 256

// deadlines keeps the deadlines of all series. One loop waits for the earliest.
type deadlines struct {
	clock     clock.Clock
	intervals heartbeat.Intervals
	table     *tracker.Table
	// due is called for each deadline that has come, without a lock.
	due func(*tracker.Entry, heartbeat.Due)

	mu    sync.Mutex
	queue heartbeat.Queue[*tracker.Entry]
	wake  chan struct{} // has room for one
}

// schedule puts the next deadline of e into the queue.
func (d *deadlines) schedule(e *tracker.Entry) {
	now := d.clock.Now()
	// Under the lock, so that of two calls at a time the one that read the later
	// status has the last word.
	d.mu.Lock()
	defer d.mu.Unlock()
	status, ok := d.table.Status(e, now)
	if !ok {
		d.queue.Remove(e)
		return
	}
	due, next := d.intervals.Check(status, now)
	if due != heartbeat.None {
		next = now
	}
	if next.IsZero() {
		d.queue.Remove(e)
		return
	}
	first, ok := d.queue.Next()
	d.queue.Set(e, next)
	if !ok || next.Before(first) {
		select {
		case d.wake <- struct{}{}:
		default: // the loop will look anyway
		}
	}
}

// remove takes the deadlines of entries out of the queue.
func (d *deadlines) remove(entries ...*tracker.Entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range entries {
		d.queue.Remove(e)
	}
}

// run calls due for what is due until ctx ends.
func (d *deadlines) run(ctx context.Context) {
	var batch [dueBatch]*tracker.Entry
	for ctx.Err() == nil {
		n, next := d.pop(batch[:])
		for _, e := range batch[:n] {
			d.look(e)
		}
		clear(batch[:n])
		if n > 0 {
			continue
		}
		if next.IsZero() {
			select {
			case <-d.wake:
			case <-ctx.Done():
			}
			continue
		}
		timer := d.clock.NewTimer(next.Sub(d.clock.Now()))
		select {
		case <-timer.C():
		case <-d.wake:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// pop takes what is due into batch, and says when to come back if that is
// nothing. next is zero if there is no deadline at all.
func (d *deadlines) pop(batch []*tracker.Entry) (n int, next time.Time) {
	now := d.clock.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	n = d.queue.PopDue(batch, now)
	next, _ = d.queue.Next()
	return n, next
}

// look sees whether a deadline that has come still holds: occurrences move it
// without telling.
func (d *deadlines) look(e *tracker.Entry) {
	now := d.clock.Now()
	status, ok := d.table.Status(e, now)
	if !ok {
		return
	}
	if due, _ := d.intervals.Check(status, now); due != heartbeat.None {
		d.due(e, due)
	}
	d.schedule(e)
}
