package events

import (
	"sync"
	"time"
)

// logInterval is how often one kind of line is logged at most.
const logInterval = time.Minute

// logLimit lets one log line of a kind through in each logInterval, and counts the
// others. It can be used concurrently.
type logLimit struct {
	mu    sync.Mutex
	kinds map[string]*loggedKind
}

type loggedKind struct {
	last       time.Time
	suppressed int
}

// allow reports whether a line of this kind may be logged now, and how many were
// suppressed since the last one. There must be few kinds, unless the caller uses
// forget.
func (l *logLimit) allow(kind string, now time.Time) (suppressed int, ok bool) {
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
	if known && now.Sub(k.last) < logInterval {
		k.suppressed++
		return 0, false
	}
	suppressed, k.suppressed, k.last = k.suppressed, 0, now
	return suppressed, true
}

// forget forgets a kind.
func (l *logLimit) forget(kind string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.kinds, kind)
}
