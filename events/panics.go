package events

import (
	"fmt"
	"runtime/debug"

	"k8s.io/klog/v2"
)

// recoverAndLog is to be deferred around code that is not ours: a panic in it
// must end neither the process nor the recorder. It may come with every event,
// so it is not logged each time.
func (b *Broadcaster) recoverAndLog(logger klog.Logger, what string) {
	r := recover()
	if r == nil {
		return
	}
	if since, ok := b.logLimit.allow("panic in "+what, b.clock.Now()); ok {
		logger.Error(nil, "Caught a panic", "in", what, "panic", fmt.Sprint(r), "alsoSinceLastLog", since, "stack", string(debug.Stack()))
	}
}

// guarded returns a logger that writes what logger does, and does not panic when
// that does: it is code of the user, and called by who emits.
func guarded(logger klog.Logger) klog.Logger {
	sink := logger.WithCallDepth(1).GetSink()
	if _, ok := sink.(guardedSink); ok || sink == nil {
		return logger
	}
	return logger.WithSink(guardedSink{sink})
}

// guardedSink keeps the panics of a log sink to itself. There is nobody to be
// told of them: the log is where one would say so.
type guardedSink struct{ klog.LogSink }

func (g guardedSink) Enabled(level int) bool {
	defer swallow()
	return g.LogSink.Enabled(level)
}

func (g guardedSink) Info(level int, msg string, keysAndValues ...any) {
	defer swallow()
	g.LogSink.Info(level, msg, keysAndValues...)
}

func (g guardedSink) Error(err error, msg string, keysAndValues ...any) {
	defer swallow()
	g.LogSink.Error(err, msg, keysAndValues...)
}

func (g guardedSink) WithValues(keysAndValues ...any) klog.LogSink {
	return guardedSink{g.LogSink.WithValues(keysAndValues...)}
}

func (g guardedSink) WithName(name string) klog.LogSink {
	return guardedSink{g.LogSink.WithName(name)}
}

func swallow() { _ = recover() }
