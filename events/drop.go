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
	// DropTableFull: too many series waited for their last write when another one was
	// evicted. See [Options].Capacity.
	DropTableFull = DropReason(tracker.DropTableFull)
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
	// DropNamespaceTerminating: the namespace of the Event is being deleted, or was deleted
	// with the Event.
	DropNamespaceTerminating DropReason = "NamespaceTerminating"
	// DropShutdown: the event was emitted after Shutdown was called, or could not be
	// written in time.
	DropShutdown DropReason = "Shutdown"
)

// track calls a method of the tracker, counts the losses that it returns, and returns
// them without what was filtered, which is no loss. Flush does not return between the two.
func (b *Broadcaster) track(call func() []tracker.Drop) []tracker.Drop {
	b.tracking.RLock()
	defer b.tracking.RUnlock()
	drops := call()
	for _, d := range drops {
		if d.Reason == tracker.DropFiltered {
			b.counters.filtered.Add(uint64(d.Count))
			continue
		}
		b.counters.dropped(DropReason(d.Reason), d.Count)
	}
	return slices.DeleteFunc(drops, func(d tracker.Drop) bool { return d.Reason == tracker.DropFiltered })
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
	now := b.clock.Now()
	due, begins := b.dropLog.add(now, err, drops)
	logLosses(logger, due)
	if begins {
		b.logLater()
	}
}

// logLater has the sums logged that are not due. A dispatcher that runs does that, and
// one that is yet to run. After the last one, nobody else comes back.
func (b *Broadcaster) logLater() {
	d := b.dispatcher.Load()
	if d != nil && d.ctx.Err() == nil {
		d.poke()
		return
	}
	b.mu.Lock()
	isLast := d != nil || b.shuttingDown
	b.mu.Unlock()
	if isLast {
		time.AfterFunc(logInterval, func() { b.logDrops(b.logger(), b.clock.Now(), true) })
	}
}

func (b *Broadcaster) callOnDrop(logger klog.Logger, drop Drop) {
	defer b.recoverAndLog(logger, "OnDrop")
	b.opts.OnDrop(drop)
}

// logDrops logs the losses that are due, or all, and returns when others are. The time is
// zero if none wait.
func (b *Broadcaster) logDrops(logger klog.Logger, now time.Time, all bool) (next time.Time) {
	due, next := b.dropLog.take(now, all)
	logLosses(logger, due)
	return next
}

func logLosses(logger klog.Logger, due []losses) {
	for _, l := range due {
		key := &l.example.Key
		details := []any{"reason", l.example.Reason, "count", l.occurrences, "since", l.since,
			"regarding", klog.KRef(key.Regarding.Namespace, key.Regarding.Name), "kind", key.Regarding.Kind,
			"type", key.Type, "eventReason", key.Reason, "action", key.Action, "note", l.example.Note}
		if DropReason(l.example.Reason) == DropNamespaceTerminating {
			// It happens whenever a namespace is deleted, and nobody needs to do anything.
			logger.V(2).Info("Dropped events, because their namespace is being deleted", append(details, "err", l.err)...)
			continue
		}
		logger.Error(l.err, "Dropped events", details...)
	}
}

// dropLog sums up losses by their reasons. The first loss is due at once, and a sum
// logInterval after the previous line. It can be used concurrently.
type dropLog struct {
	mu   sync.Mutex
	sums map[tracker.DropReason]*losses
}

// losses are what one line is about.
type losses struct {
	logged      time.Time // the previous line
	since       time.Time // the first loss
	occurrences int
	example     tracker.Drop // the latest loss
	err         error        // the response of the server, if that is why
}

// add adds losses, and takes those that are due: the caller may have a logger of its own. It
// reports whether a sum begins that is not due.
func (l *dropLog) add(now time.Time, err error, drops []tracker.Drop) (due []losses, begins bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, drop := range drops {
		sum := l.sums[drop.Reason]
		if sum == nil {
			sum = &losses{}
			l.sums[drop.Reason] = sum
		}
		if sum.occurrences == 0 {
			sum.since, begins = now, true
		}
		sum.occurrences += drop.Count
		sum.example, sum.err = drop, err
	}
	due, next := l.takeLocked(now, false)
	return due, begins && !next.IsZero()
}

// take returns the losses that are due, or all, and when others are.
func (l *dropLog) take(now time.Time, all bool) (due []losses, next time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.takeLocked(now, all)
}

func (l *dropLog) takeLocked(now time.Time, all bool) (due []losses, next time.Time) {
	for _, sum := range l.sums {
		switch at := sum.logged.Add(logInterval); {
		case sum.occurrences == 0:
		case all, !now.Before(at):
			due = append(due, *sum)
			*sum = losses{logged: now}
		default:
			next = earlier(next, at)
		}
	}
	slices.SortFunc(due, func(a, b losses) int { return a.since.Compare(b.since) })
	return due, next
}
