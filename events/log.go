package events

import (
	"maps"
	"runtime/debug"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/eventseries/eventseries/internal/eventtext"
	"github.com/eventseries/eventseries/internal/safelog"
)

// logInterval is how often one kind of line is logged at most.
const logInterval = time.Minute

// maxLogKinds is from how many kinds of lines on a logLimit forgets those that have not
// been logged for logInterval.
const maxLogKinds = 1000

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
// suppressed since the last one.
func (l *logLimit) allow(kind string, now time.Time) (suppressed int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k := l.kinds[kind]; k != nil {
		if now.Sub(k.last) < logInterval {
			k.suppressed++
			return 0, false
		}
		suppressed = k.suppressed
	} else if len(l.kinds) >= maxLogKinds {
		maps.DeleteFunc(l.kinds, func(_ string, k *loggedKind) bool { return now.Sub(k.last) >= logInterval })
	}
	if l.kinds == nil {
		l.kinds = make(map[string]*loggedKind)
	}
	l.kinds[kind] = &loggedKind{last: now}
	return suppressed, true
}

// recoverAndLog recovers from a panic in code of the user, which must not stop the
// process or the recorder. Defer it. It limits the log lines, because the same panic
// can occur with every event.
func (b *Broadcaster) recoverAndLog(logger klog.Logger, what string) {
	r := recover()
	if r == nil {
		return
	}
	if suppressed, ok := b.logLimit.allow("panic in "+what, b.clock.Now()); ok {
		logger.Error(nil, "Caught a panic", "in", what, "panic", eventtext.Panic(r), "suppressed", suppressed,
			"stack", safelog.Verbatim(debug.Stack()))
	}
}

// guarded returns a logger that escapes user-supplied values and recovers from panics
// of logger, which is code of the user. Emitters call it.
func guarded(logger klog.Logger) klog.Logger { return safelog.Guard(logger) }
