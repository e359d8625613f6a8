package events

import (
	"bytes"
	"runtime"

	"k8s.io/klog/v2"

	"github.com/eventseries/eventseries/internal/tracker"
	"github.com/eventseries/eventseries/series"
)

// DropReason says why occurrences were lost:
//
//   - TableFull: too many series waited for their last write when another one was evicted. See
//     [Options].Capacity.
//   - Denied: the permission to write events in the namespace did not arrive within
//     [Options].EventTTL.
//   - Unavailable: for EventTTL the server could not handle events of the namespace, while it
//     handled others. A webhook that fails does that.
//   - InvalidObject: the regarding object is nil, its kind is unknown, or its kind, apiVersion,
//     namespace, name, or UID cannot be that of an object.
//   - InvalidType: the type is neither Normal nor Warning.
//   - Rejected: the API server found the Event malformed, or the sink returns an error for it
//     each time that does not come from a server.
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

// drop passes losses to OnDrop, and has the reporter log them. The tracker has counted them. err is
// the response of the server, if that is why. The caller holds no lock.
//
// The dispatcher logs the sums that are due later. When it has stopped, Shutdown logs them, and
// after that, the next loss does.
func (b *Broadcaster) drop(logger klog.Logger, err error, drops []tracker.Drop) {
	if len(drops) == 0 {
		return
	}
	if b.opts.OnDrop != nil {
		b.tell(logger, drops)
	}
	if next := b.report.lost(logger, err, drops, false); !next.IsZero() {
		b.poke()
	}
}

// tell passes losses to OnDrop, unless OnDrop causes them itself: it would call itself without end.
func (b *Broadcaster) tell(logger klog.Logger, drops []tracker.Drop) {
	stack := make([]byte, 64) // which begins with "goroutine 7 "
	id := string(bytes.Fields(stack[:runtime.Stack(stack, false)])[1])
	if _, isNested := b.telling.LoadOrStore(id, true); isNested {
		return
	}
	defer b.telling.Delete(id)
	for _, d := range drops {
		func() {
			defer b.recoverAndLog(logger, "OnDrop")
			b.opts.OnDrop(Drop{DropReason(d.Reason), d.Key, d.Note, d.Count})
		}()
	}
}
