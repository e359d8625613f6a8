package events

import (
	"slices"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/eventseries/eventseries/internal/tracker"
)

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
