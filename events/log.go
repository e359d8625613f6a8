package events

import (
	"cmp"
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
// been logged for logInterval. If there are twice as many, it lets no others through.
const maxLogKinds = 1000

// maxRepairs is how many repaired names are logged in an interval: a program can make up
// names for ever.
const maxRepairs = 20

// logLimit lets one log line of a kind through in each logInterval, and counts the
// others. It can be used concurrently.
type logLimit struct {
	many int // as maxLogKinds, which it is if zero

	mu     sync.Mutex
	kinds  map[string]*loggedKind
	pruned time.Time // when it has forgotten some, or has tried to
	others int       // lines of kinds for which there was no room
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
	k := l.kinds[kind]
	switch {
	case k != nil && now.Sub(k.last) < logInterval:
		k.suppressed++
		return 0, false
	case k != nil:
		suppressed = k.suppressed
	case !l.hasRoom(now):
		l.others++
		return 0, false
	}
	if l.kinds == nil {
		l.kinds = make(map[string]*loggedKind)
	}
	l.kinds[kind] = &loggedKind{last: now}
	suppressed, l.others = suppressed+l.others, 0
	return suppressed, true
}

// hasRoom reports whether there is room for one more kind. It looks for some at most once
// in each logInterval, because there can be a new kind for each call.
func (l *logLimit) hasRoom(now time.Time) bool {
	many := cmp.Or(l.many, maxLogKinds)
	if len(l.kinds) >= many && now.Sub(l.pruned) >= logInterval {
		l.pruned = now
		maps.DeleteFunc(l.kinds, func(_ string, k *loggedKind) bool { return now.Sub(k.last) >= logInterval })
	}
	return len(l.kinds) < 2*many
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
