package events

import (
	"fmt"
	"runtime/debug"

	"k8s.io/klog/v2"

	"github.com/eventseries/eventseries/internal/safelog"
)

// recoverAndLog recovers from a panic in code of the user, which must not stop the
// process or the recorder. Defer it. It limits the log lines, because the same panic
// can occur with every event.
func (b *Broadcaster) recoverAndLog(logger klog.Logger, what string) {
	r := recover()
	if r == nil {
		return
	}
	if suppressed, ok := b.logLimit.allow("panic in "+what, b.clock.Now()); ok {
		logger.Error(nil, "Caught a panic", "in", what, "panic", fmt.Sprint(r), "suppressed", suppressed,
			"stack", safelog.Verbatim(debug.Stack()))
	}
}

// guarded returns a logger that escapes user-supplied values and recovers from panics
// of logger, which is code of the user. Emitters call it.
func guarded(logger klog.Logger) klog.Logger { return safelog.Guard(logger) }
