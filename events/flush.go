package events

import (
	"context"
	"errors"
	"fmt"
)

// Flush returns when everything that was emitted before the call is on the server,
// including the counts of ongoing series, or is lost and counted in [Stats].Dropped. It
// does not wait for series that the server refuses. If ctx ends first, or the
// broadcaster is not running, it returns an error with the number of series left.
func (b *Broadcaster) Flush(ctx context.Context) error {
	f := b.tracker.Flush(b.clock.Now())
	defer f.Stop()
	pending := f.Left()
	if pending == 0 {
		return b.flushed()
	}
	d := b.dispatcher.Load()
	if d == nil {
		return fmt.Errorf("events: cannot flush %d series: the broadcaster has not been started", pending)
	}
	d.poke()
	var cause error
	select {
	case <-f.Done:
		return b.flushed()
	case <-ctx.Done():
		cause = context.Cause(ctx)
	case <-d.ctx.Done():
		cause = errors.New("the broadcaster has stopped")
	}
	return fmt.Errorf("events: %d of %d series were not flushed: %w", f.Left(), pending, cause)
}

// flushed returns nil when the losses that the tracker has returned are counted.
func (b *Broadcaster) flushed() error {
	b.tracking.Lock()
	defer b.tracking.Unlock()
	return nil
}
