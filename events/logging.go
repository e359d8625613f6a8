package events

import (
	"errors"

	"github.com/eventseries/eventseries/internal/tracker"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
)

// StartEventWatcher calls handler with every event that is emitted from now on,
// as an *eventsv1.Event of its own, one after the other. It does not need the
// broadcaster to be started. A panic in handler is caught and logged.
//
// Up to Options.WatcherQueue events wait for a slow handler; what is more is
// dropped and counted in Stats.WatcherDropped. stop ends the watching; what waits
// is handed over still. After Shutdown the error is ErrShutDown.
func (b *Broadcaster) StartEventWatcher(handler func(event runtime.Object)) (stop func(), err error) {
	return b.watch(b.logger, handler)
}

// watch calls handle with every event, and logs its panics.
func (b *Broadcaster) watch(logger func() klog.Logger, handle func(runtime.Object)) (stop func(), err error) {
	if handle == nil {
		return nil, errors.New("events: event handler is nil")
	}
	return b.watchers.add(func(object runtime.Object) {
		defer b.recoverAndLog(logger(), "event handler")
		handle(object)
	})
}

// StartLogging writes every event that is emitted from now on to logger. Use
// logger.V(n) to set the verbosity.
func (b *Broadcaster) StartLogging(logger klog.Logger) (stop func(), err error) {
	logger = guarded(logger)
	return b.watch(func() klog.Logger { return logger }, func(object runtime.Object) {
		event, ok := object.(*eventsv1.Event)
		if !ok {
			return
		}
		logger.Info("Event occurred",
			"object", klog.KRef(event.Regarding.Namespace, event.Regarding.Name),
			"kind", event.Regarding.Kind, "apiVersion", event.Regarding.APIVersion,
			"type", event.Type, "reason", event.Reason, "action", event.Action, "note", event.Note)
	})
}

// StartStructuredLogging writes every event that is emitted from now on to
// klog's global logger at the given verbosity. After Shutdown it does nothing.
//
// Deprecated: use StartLogging, as with client-go.
func (b *Broadcaster) StartStructuredLogging(verbosity klog.Level) func() {
	stop, err := b.StartLogging(klog.Background().V(int(verbosity)))
	if err != nil {
		b.logger().Error(err, "Cannot log events")
		return func() {}
	}
	return stop
}

// logRequest writes a line for a request, where somebody wants to see each.
func (b *Broadcaster) logRequest(w *tracker.Write, v verdict, err error) {
	logger := b.logger().V(4)
	if !logger.Enabled() {
		return
	}
	about := []any{"kind", w.Kind.String(), "outcome", v.outcome.String(), "event", klog.KRef(w.Series.Namespace, w.Series.Name),
		"count", w.Series.Count}
	if err != nil {
		about = append(about, "err", err)
	}
	logger.Info("Sent an event", about...)
}
