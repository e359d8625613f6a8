package events

import (
	"slices"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/eventseries/eventseries/internal/tracker"
	"github.com/eventseries/eventseries/series"
)

// DropReason says why occurrences were lost; see the constants.
type DropReason string

// Drop describes a loss. It is passed to [Options.OnDrop].
type Drop struct {
	// Reason says why.
	Reason DropReason
	// Key of the series.
	Key series.Key
	// Note of the lost occurrence, or of the first one if there are several.
	Note string
	// Count is the number of lost occurrences.
	Count int
}

// The reasons for which occurrences are lost.
const (
	// DropTableFull: there was no room for a new series, and no series to evict.
	DropTableFull = DropReason(tracker.DropTableFull)
	// DropDisplaced: a series that had not been written was evicted, a Normal for a
	// Warning, or one that a missing permission held up.
	DropDisplaced = DropReason(tracker.DropDisplaced)
	// DropClosingFull: too many series that had ended waited for their last write.
	DropClosingFull = DropReason(tracker.DropClosingFull)
	// DropDenied: the permission to write events in the namespace did not arrive
	// within [Options.EventTTL].
	DropDenied = DropReason(tracker.DropDenied)
	// DropUnavailable: for [Options.EventTTL] the server could not handle events of
	// the namespace, while it handled others. A webhook that fails does that.
	DropUnavailable = DropReason(tracker.DropUnavailable)
	// DropInvalidObject: the regarding object is nil, or its kind is unknown.
	DropInvalidObject DropReason = "InvalidObject"
	// DropInvalidType: the type is neither Normal nor Warning.
	DropInvalidType DropReason = "InvalidType"
	// DropRejected: the API server found the Event malformed.
	DropRejected DropReason = "Rejected"
	// DropNamespaceNotFound: the namespace of the Event does not exist.
	DropNamespaceNotFound DropReason = "NamespaceNotFound"
	// DropNamespaceTerminating: the namespace of the Event is being deleted.
	DropNamespaceTerminating DropReason = "NamespaceTerminating"
	// DropShutdown: the event was emitted after Shutdown was called, or could not be
	// written in time.
	DropShutdown DropReason = "Shutdown"
)

// track calls a method of the tracker and counts the losses that it returns. Flush
// does not return between the two.
func (b *Broadcaster) track(call func() []tracker.Drop) []tracker.Drop {
	b.tracking.RLock()
	defer b.tracking.RUnlock()
	drops := call()
	for _, d := range drops {
		b.counters.dropped(DropReason(d.Reason), d.Count)
	}
	return drops
}

// drop passes losses to OnDrop and logs them. [Broadcaster.track] has counted them.
// err is the response of the server, if that is why. The caller holds no lock.
func (b *Broadcaster) drop(logger klog.Logger, err error, drops []tracker.Drop) {
	if len(drops) == 0 {
		return
	}
	if b.opts.OnDrop != nil {
		for _, d := range drops {
			b.callOnDrop(logger, Drop{DropReason(d.Reason), d.Key, d.Note, d.Count})
		}
	}
	for _, l := range b.dropLog.add(b.clock.Now(), err, drops) {
		l.write(logger)
	}
}

func (b *Broadcaster) callOnDrop(logger klog.Logger, drop Drop) {
	defer b.recoverAndLog(logger, "OnDrop")
	b.opts.OnDrop(drop)
}

// dropLog logs losses: for each reason at once, and then once in each logInterval
// with the sum since. There are few reasons. It can be used concurrently.
type dropLog struct {
	limit logLimit
	// held has something when losses wait to be logged.
	held chan struct{}

	mu      sync.Mutex
	waiting map[tracker.DropReason]*losses
}

// losses are what one line is about.
type losses struct {
	since       time.Time // the first loss
	occurrences int
	example     tracker.Drop // the latest loss
	err         error        // the response of the server, if that is why
}

// add adds losses and returns those to log now.
func (l *dropLog) add(now time.Time, err error, drops []tracker.Drop) []losses {
	l.mu.Lock()
	for _, drop := range drops {
		sum := l.waiting[drop.Reason]
		if sum == nil {
			sum = &losses{since: now}
			l.waiting[drop.Reason] = sum
		}
		sum.occurrences += drop.Count
		sum.example, sum.err = drop, err
	}
	l.mu.Unlock()
	return l.take(now, false)
}

// take returns the losses whose interval is over, or all.
func (l *dropLog) take(now time.Time, all bool) []losses {
	l.mu.Lock()
	defer l.mu.Unlock()
	var taken []losses
	for reason, sum := range l.waiting {
		if _, ok := l.limit.allow(string(reason), now); ok || all {
			taken = append(taken, *sum)
			delete(l.waiting, reason)
		}
	}
	if len(l.waiting) > 0 {
		select {
		case l.held <- struct{}{}:
		default:
		}
	}
	slices.SortFunc(taken, func(a, b losses) int { return a.since.Compare(b.since) })
	return taken
}

// write logs the losses.
func (l losses) write(logger klog.Logger) {
	key := &l.example.Key
	logger.Error(l.err, "Dropped events", "reason", l.example.Reason, "count", l.occurrences, "since", l.since,
		"regarding", klog.KRef(key.Regarding.Namespace, key.Regarding.Name), "kind", key.Regarding.Kind,
		"type", key.Type, "eventReason", key.Reason, "action", key.Action, "note", l.example.Note)
}

// logDrops logs losses that had to wait, until the dispatcher is stopped.
func (d *dispatcher) logDrops() {
	l := &d.b.dropLog
	for {
		select {
		case <-l.held:
		case <-d.ctx.Done():
			return
		}
		if !d.sleep(logInterval) {
			return
		}
		for _, losses := range l.take(d.b.clock.Now(), false) {
			losses.write(d.b.logger())
		}
	}
}
