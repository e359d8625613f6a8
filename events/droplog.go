package events

import (
	"slices"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

// dropLog says what is lost: for each reason at once, and then at most once in an
// interval, with the sum of what was lost since. The reasons must be few. It may be
// used concurrently.
type dropLog struct {
	interval time.Duration
	// held has something when losses wait for their line.
	held chan struct{}

	mu      sync.Mutex
	reasons map[DropReason]*lossesOfReason
}

type lossesOfReason struct {
	last    time.Time // when a line was written
	waiting losses
}

// losses are what one line is about.
type losses struct {
	since       time.Time // the first of them
	occurrences int
	example     Drop // the latest of them
	err         error
}

func newDropLog(interval time.Duration) dropLog {
	return dropLog{interval: interval, held: make(chan struct{}, 1), reasons: make(map[DropReason]*lossesOfReason)}
}

// add takes in losses, and returns those that are to be logged now. err is why, if
// the server said it.
func (l *dropLog) add(now time.Time, err error, drops []Drop) []losses {
	l.mu.Lock()
	for _, drop := range drops {
		r, known := l.reasons[drop.Reason]
		if !known {
			r = &lossesOfReason{last: now.Add(-l.interval)}
			l.reasons[drop.Reason] = r
		}
		if r.waiting.occurrences == 0 {
			r.waiting.since = now
		}
		r.waiting.occurrences += drop.Count
		r.waiting.example, r.waiting.err = drop, err
	}
	l.mu.Unlock()
	return l.take(now, false)
}

// take returns the losses whose interval is over, or all.
func (l *dropLog) take(now time.Time, all bool) []losses {
	l.mu.Lock()
	defer l.mu.Unlock()
	var taken []losses
	left := false
	for _, r := range l.reasons {
		switch {
		case r.waiting.occurrences == 0:
		case all || now.Sub(r.last) >= l.interval:
			taken = append(taken, r.waiting)
			r.waiting, r.last = losses{}, now
		default:
			left = true
		}
	}
	if left {
		select {
		case l.held <- struct{}{}:
		default:
		}
	}
	slices.SortFunc(taken, func(a, b losses) int { return a.since.Compare(b.since) })
	return taken
}

// write writes the line.
func (l losses) write(logger klog.Logger) {
	key := &l.example.Key
	logger.Error(l.err, "Dropped events", "reason", l.example.Reason, "count", l.occurrences, "since", l.since,
		"regarding", klog.KRef(key.Regarding.Namespace, key.Regarding.Name), "kind", key.Regarding.Kind,
		"type", key.Type, "eventReason", key.Reason, "action", key.Action, "note", l.example.Note)
}

// logDrops writes the lines that had to wait, until w is stopped.
func (w *writer) logDrops() {
	l := &w.b.dropLog
	for {
		select {
		case <-l.held:
		case <-w.ctx.Done():
			return
		}
		if !w.sleep(l.interval) {
			return
		}
		for _, losses := range l.take(w.b.clock.Now(), false) {
			losses.write(w.b.logger())
		}
	}
}
