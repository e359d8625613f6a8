package events

import (
	"runtime/debug"

	"k8s.io/klog/v2"
)

// recoverAndLog is to be deferred around code that is not ours: a panic in it
// must end neither the process nor the recorder.
func recoverAndLog(logger klog.Logger, what string) {
	if r := recover(); r != nil {
		logger.Error(nil, "Caught a panic", "in", what, "panic", r, "stack", string(debug.Stack()))
	}
}
