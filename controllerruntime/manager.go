package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/eventseries/eventseries/compat"
	"github.com/eventseries/eventseries/events"
)

// failureGrace is how long Start waits for the last writes if the manager has failed.
// With the defaults of controller-runtime, another replica can become leader 5 seconds
// after this one has lost its lease.
const failureGrace = time.Second

// NewManager takes the place of [sigs.k8s.io/controller-runtime.NewManager]. The
// recorders of the manager, including that of leader election, emit to broadcaster. See
// [Wrap] for what else changes.
//
// If broadcaster is nil, NewManager creates one with default options, which writes to
// the API server of config, with whichever role the program has; see [compat.Sink].
//
// options.EventBroadcaster is usually nil. To set options for legacy recorders, set it to
// a broadcaster of [compat.NewBroadcasterFor] that emits to the same broadcaster. For
// any other value, NewManager returns an error.
func NewManager(config *rest.Config, options manager.Options, broadcaster *events.Broadcaster) (manager.Manager, error) {
	if config == nil {
		return nil, errors.New("controllerruntime: config is nil")
	}
	broadcaster, err := orDefault(broadcaster, config)
	if err != nil {
		return nil, err
	}
	legacy := compat.NewBroadcasterFor(broadcaster, compat.Options{})
	if given := options.EventBroadcaster; given != nil { //nolint:staticcheck // see below
		var ok bool
		switch legacy, ok = given.(*compat.Broadcaster); {
		case ok && legacy == nil:
			return nil, errors.New("controllerruntime: Options.EventBroadcaster is a nil *compat.Broadcaster: want nil, or a *compat.Broadcaster for the broadcaster of the manager")
		case !ok || legacy.Events() != broadcaster:
			return nil, fmt.Errorf("controllerruntime: Options.EventBroadcaster is a %T: want nil, or a *compat.Broadcaster for the broadcaster of the manager", given)
		}
	}
	options.EventBroadcaster = quiet{legacy} //nolint:staticcheck // leader election has no other option
	mgr, err := manager.New(config, options)
	if err != nil {
		return nil, err
	}
	return wrap(mgr, broadcaster, legacy)
}

// Wrap returns a manager that does what mgr does, with recorders of broadcaster. Use it
// if other code creates the manager; otherwise use [NewManager]. Use the result in place
// of mgr everywhere.
//
//   - GetEventRecorder and GetEventRecorderFor return recorders of broadcaster.
//   - Start starts broadcaster before the manager, and shuts it down after the manager.
//     In the scope [events.SameController], the broadcaster starts when this replica
//     becomes leader.
//   - Start logs each event once, to the manager's logger with the name "events" at
//     V(1), unless this level is disabled.
//
// A manager has created its leader election before Wrap is called. To receive the events
// of leader election, too, create the manager with [EventBroadcaster].
//
// If broadcaster is nil, Wrap creates one, as NewManager does, with mgr.GetConfig().
func Wrap(mgr manager.Manager, broadcaster *events.Broadcaster) (manager.Manager, error) {
	broadcaster, err := orDefault(broadcaster, mgr.GetConfig())
	if err != nil {
		return nil, err
	}
	return wrap(mgr, broadcaster, compat.NewBroadcasterFor(broadcaster, compat.Options{}))
}

// EventBroadcaster returns the value of Options.EventBroadcaster for a manager that the
// caller passes to [Wrap] with the same broadcaster. Its recorders emit to broadcaster.
// It neither starts broadcaster nor logs events, because the wrapped manager does both.
func EventBroadcaster(broadcaster *events.Broadcaster) record.EventBroadcaster {
	return quiet{compat.NewBroadcasterFor(broadcaster, compat.Options{})}
}

// quiet is a broadcaster that the manager starts and logs. controller-runtime creates
// two or three providers of recorders for a manager. Each would log every event.
type quiet struct{ *compat.Broadcaster }

// StartRecordingToSink does nothing.
func (quiet) StartRecordingToSink(record.EventSink) watch.Interface { return watch.NewEmptyWatch() }

// StartEventWatcher does nothing.
func (quiet) StartEventWatcher(func(*corev1.Event)) watch.Interface { return watch.NewEmptyWatch() }

func orDefault(broadcaster *events.Broadcaster, config *rest.Config) (*events.Broadcaster, error) {
	if broadcaster != nil {
		return broadcaster, nil
	}
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("controllerruntime: create a client for events: %w", err)
	}
	return events.NewBroadcaster(compat.NewSink(clientset)), nil
}

func wrap(mgr manager.Manager, broadcaster *events.Broadcaster, legacy *compat.Broadcaster) (manager.Manager, error) {
	m := &recording{Manager: mgr, broadcaster: broadcaster, legacy: legacy}
	if broadcaster.NeedLeaderElection() {
		// A runnable that does not say otherwise starts on the leader.
		if err := mgr.Add(manager.RunnableFunc(m.startBroadcaster)); err != nil {
			return nil, fmt.Errorf("controllerruntime: add the broadcaster to the manager: %w", err)
		}
	}
	return withEventRecorder(m, mgr.GetEventRecorder)
}

// recording is a manager without its GetEventRecorder.
type recording struct {
	manager.Manager
	broadcaster *events.Broadcaster
	legacy      *compat.Broadcaster
	started     atomic.Bool
}

// GetEventRecorderFor returns a legacy recorder that emits to the broadcaster.
func (m *recording) GetEventRecorderFor(name string) record.EventRecorder {
	return m.legacy.NewRecorder(m.GetScheme(), corev1.EventSource{Component: name})
}

// Start implements [manager.Manager].
func (m *recording) Start(ctx context.Context) (err error) {
	if m.started.Swap(true) {
		return m.Manager.Start(ctx) // returns an error, and the first call is running
	}
	defer func() { m.shutDown(err != nil) }()
	if logger := m.logger().V(1); logger.Enabled() {
		if _, err := m.broadcaster.StartLogging(logger); err != nil {
			return fmt.Errorf("controllerruntime: log events: %w", err)
		}
	}
	if !m.broadcaster.NeedLeaderElection() {
		if err := m.startBroadcaster(ctx); err != nil {
			return err
		}
	}
	return m.Manager.Start(ctx)
}

func (m *recording) logger() logr.Logger { return m.GetLogger().WithName("events") }

func (m *recording) startBroadcaster(ctx context.Context) error {
	return start(ctx, m.broadcaster, m.logger())
}

// shutDown shuts the broadcaster down. If the manager has failed, reconcilers can still
// run, even though the replica does not lead any more. So shutDown returns early.
func (m *recording) shutDown(failed bool) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.broadcaster.Shutdown()
	}()
	if !failed {
		<-done
		return
	}
	select {
	case <-done:
	case <-time.After(failureGrace):
		m.logger().Info("Exiting before all events were written, because the manager failed")
	}
}

// withRecorder is a manager. Its GetEventRecorder returns the type that the installed
// version of controller-runtime requires: client-go's EventRecorder before v0.25, and
// an interface with AnnotatedEventf since then.
type withRecorder[R any] struct{ *recording }

// GetEventRecorder returns a recorder that emits to the broadcaster.
func (m withRecorder[R]) GetEventRecorder(name string) R {
	recorder := m.broadcaster.NewRecorderWithOptions(m.GetScheme(), name, events.RecorderOptions{})
	return any(recorder).(R)
}

// withEventRecorder completes m. It infers R from a method of the manager.
func withEventRecorder[R any](m *recording, _ func(name string) R) (manager.Manager, error) {
	mgr, ok := any(withRecorder[R]{m}).(manager.Manager)
	if err := implemented[R](ok); err != nil {
		return nil, err
	}
	return mgr, nil
}
