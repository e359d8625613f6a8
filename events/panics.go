package events

import (
	"fmt"
	"runtime/debug"

	"k8s.io/klog/v2"

	"github.com/eventseries/eventseries/internal/safelog"
)

// recoverAndLog is to be deferred around code that is not ours: a panic in it
// must end neither the process nor the recorder. It may come with every event,
// so it is not logged each time.
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

// guarded returns a logger that can be given what users wrote, and does not panic
// when logger does: it is code of the user, and called by who emits.
func guarded(logger klog.Logger) klog.Logger { return safelog.Guard(logger) }
