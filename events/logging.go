package events

import (
	"errors"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"github.com/eventseries/eventseries/internal/tracker"
)

// StartEventWatcher calls handler with every event that is emitted from now on, one
// after the other, as an *eventsv1.Event that the handler owns. The broadcaster need
// not be started. A panic in handler is caught and logged.
//
// Up to 1,000 events wait for a slow handler; others are dropped and counted in
// [Stats].WatcherDropped. stop ends the watch; the handler still gets the events that
// wait. After [Broadcaster.Shutdown] the error is [ErrShutDown].
func (b *Broadcaster) StartEventWatcher(handler func(event runtime.Object)) (stop func(), err error) {
	return b.watch(b.logger, handler)
}

// watch is StartEventWatcher with a logger for panics.
func (b *Broadcaster) watch(logger func() klog.Logger, handle func(runtime.Object)) (stop func(), err error) {
	if handle == nil {
		return nil, errors.New("events: event handler is nil")
	}
	return b.watchers.add(func(object runtime.Object) {
		defer b.recoverAndLog(logger(), "event handler")
		handle(object)
	})
}

// StartLogging logs every event that is emitted from now on to logger. Use
// logger.V(n) to set the verbosity. After [Broadcaster.Shutdown] the error is
// [ErrShutDown].
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

// StartStructuredLogging logs every event that is emitted from now on to klog's
// global logger at the given verbosity. After [Broadcaster.Shutdown] it does nothing.
//
// Deprecated: use [Broadcaster.StartLogging], as with client-go.
func (b *Broadcaster) StartStructuredLogging(verbosity klog.Level) func() {
	stop, err := b.StartLogging(klog.Background().V(int(verbosity)))
	if err != nil {
		b.logger().Error(err, "Cannot log events")
		return func() {}
	}
	return stop
}

// logRequest logs a request, for those who want to see each.
func (b *Broadcaster) logRequest(w *tracker.Write, outcome tracker.Outcome, err error) {
	logger := b.logger().V(4)
	if !logger.Enabled() {
		return
	}
	details := []any{"kind", w.Kind.String(), "outcome", outcome.String(), "event", klog.KRef(w.Series.Namespace, w.Series.Name),
		"count", w.Series.Count}
	if err != nil {
		details = append(details, "err", err)
	}
	logger.Info("Sent an event", details...)
}
