package events

import (
	"reflect"
	"runtime"

	"github.com/eventseries/eventseries/internal/tracker"
	"k8s.io/klog/v2"
)

// DropReason says why occurrences were lost; see the constants.
type DropReason = tracker.DropReason

// Drop is a loss that is offered to Options.OnDrop.
type Drop = tracker.Drop

// The reasons for which occurrences are lost.
const (
	// DropTableFull: there was no room for a new series.
	DropTableFull = tracker.DropTableFull
	// DropDisplaced: a Normal that had not been written yet gave way to a Warning.
	DropDisplaced = tracker.DropDisplaced
	// DropClosingFull: too many ended series were waiting for their last write.
	DropClosingFull = tracker.DropClosingFull
	// DropInvalidObject: the regarding object is nil, or its kind is not known.
	DropInvalidObject DropReason = "InvalidObject"
	// DropInvalidType: the type is neither Normal nor Warning.
	DropInvalidType DropReason = "InvalidType"
	// DropRejected: the API server found the Event malformed.
	DropRejected DropReason = "Rejected"
	// DropNamespaceNotFound: the namespace of the Event does not exist.
	DropNamespaceNotFound DropReason = "NamespaceNotFound"
	// DropNamespaceTerminating: the namespace of the Event is being deleted.
	DropNamespaceTerminating DropReason = "NamespaceTerminating"
	// DropShutdown: it was emitted after Shutdown was called, or could not be
	// written before its time was over.
	DropShutdown DropReason = "Shutdown"
)

// dropped counts losses, offers them to the user and logs them. err is what the
// server said, if it said anything. No lock may be held.
func (b *Broadcaster) dropped(logger klog.Logger, err error, drops ...Drop) {
	if len(drops) == 0 {
		return
	}
	for _, drop := range drops {
		b.counters.dropped(drop)
		if b.opts.OnDrop != nil {
			b.offer(logger, drop)
		}
	}
	for _, l := range b.dropLog.add(b.clock.Now(), err, drops) {
		l.write(logger)
	}
}

// offer calls OnDrop, unless it is OnDrop that has lost something: if it emits
// events, what becomes of them could go on for ever.
func (b *Broadcaster) offer(logger klog.Logger, drop Drop) {
	defer b.offering.Add(-1)
	if b.offering.Add(1) > 1 && insideOffer() {
		return
	}
	defer b.recoverAndLog(logger, "OnDrop")
	b.opts.OnDrop(drop)
}

// insideOffer reports whether offer, by which it must be called, is further up
// the stack as well.
func insideOffer() bool {
	const skip = 3 // runtime.Callers, insideOffer and offer
	offer := runtime.FuncForPC(reflect.ValueOf((*Broadcaster).offer).Pointer()).Name()
	pcs := make([]uintptr, 64)
	n := runtime.Callers(skip, pcs)
	for n == len(pcs) {
		pcs = make([]uintptr, 2*len(pcs))
		n = runtime.Callers(skip, pcs)
	}
	frames := runtime.CallersFrames(pcs[:n])
	for {
		frame, more := frames.Next()
		if frame.Function == offer {
			return true
		}
		if !more {
			return false
		}
	}
}
