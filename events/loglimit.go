package events

import (
	"sync"
	"time"
)

// logLimit lets one of the log lines of a kind through in an interval, and
// counts the rest. The kinds must be few. It may be used concurrently.
type logLimit struct {
	interval time.Duration

	mu    sync.Mutex
	kinds map[string]*loggedKind
}

type loggedKind struct {
	last    time.Time
	skipped int
}

// allow reports whether a line of this kind may be written now, and how many
// were not since the last one.
func (l *logLimit) allow(kind string, now time.Time) (skipped int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k, known := l.kinds[kind]
	if !known {
		if l.kinds == nil {
			l.kinds = make(map[string]*loggedKind)
		}
		k = &loggedKind{}
		l.kinds[kind] = k
	}
	if known && now.Sub(k.last) < l.interval {
		k.skipped++
		return 0, false
	}
	skipped, k.skipped, k.last = k.skipped, 0, now
	return skipped, true
}
