package compat

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"sync"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/internal/coreevents"
	"github.com/eventseries/eventseries/internal/legacy"
	"github.com/eventseries/eventseries/internal/safelog"
)

const (
	// DefaultDistinctNotes is how many notes of the same tuple are told apart where
	// Options do not say.
	DefaultDistinctNotes = legacy.DistinctNotes

	// LeaderElection is the reporting controller of events of leader election, whose
	// component is the identity of a process.
	LeaderElection = "leader-election"
)

// Options of a Broadcaster. The zero value is the default.
type Options struct {
	// Context, if set, shuts the broadcaster down when it ends, as that of
	// record.WithContext does, and has the logger to use.
	Context context.Context

	// Action says what the action of an event is, which legacy callers do not give,
	// for the object that it is about and its reason. If nil, or if it returns
	// nothing, the action is the reason. It is called with each occurrence, maybe
	// concurrently. If it panics, the action is the reason.
	Action func(regarding runtime.Object, reason string) string

	// DistinctNotes is how many series that differ in nothing but their messages are
	// told apart; see events.Options. If zero, DefaultDistinctNotes. If negative,
	// messages tell nothing apart.
	DistinctNotes int
}

// Broadcaster is a record.EventBroadcaster whose recorders emit into an
// events.Broadcaster. Make one with NewBroadcaster or NewBroadcasterFor. Its
// methods may be called concurrently, and at any time.
type Broadcaster struct {
	to   *events.Broadcaster
	opts Options

	mu         sync.Mutex
	recordings int                // StartRecordingToSink without a Stop
	stop       context.CancelFunc // of the recording; nil before it starts
}

var _ record.EventBroadcaster = (*Broadcaster)(nil)

// NewBroadcaster returns a Broadcaster with default options that writes to sink,
// such as &events.EventSinkImpl{Interface: clientset.EventsV1()}. It takes the
// place of record.NewBroadcaster().
func NewBroadcaster(sink events.EventSink) *Broadcaster {
	return NewBroadcasterFor(events.NewBroadcaster(sink), Options{})
}

// NewBroadcasterFor returns a Broadcaster whose recorders emit into to, which may
// have recorders of its own and be started and shut down by itself.
func NewBroadcasterFor(to *events.Broadcaster, opts Options) *Broadcaster {
	opts.DistinctNotes = cmp.Or(opts.DistinctNotes, DefaultDistinctNotes)
	b := &Broadcaster{to: to, opts: opts}
	if opts.Context != nil {
		context.AfterFunc(opts.Context, b.Shutdown)
	}
	return b
}

// Events returns the broadcaster that the recorders of b emit into: for code that
// has moved already, for Flush and for Stats.
func (b *Broadcaster) Events() *events.Broadcaster { return b.to }

// NewRecorder returns a recorder for a component, which becomes the reporting
// controller. See events.Broadcaster.NewRecorder. The host of source is not
// written.
//
// Leader election calls itself by the identity of its process,
// "<host name>_<UUID>": no name for a controller, which would be a new one with
// each start. Its events have LeaderElection for one. Their message names the
// process.
func (b *Broadcaster) NewRecorder(scheme *runtime.Scheme, source corev1.EventSource) record.EventRecorderLogger {
	to := b.to.NewRecorderWithOptions(scheme, controllerOf(source.Component), events.RecorderOptions{DistinctNotes: b.opts.DistinctNotes})
	return NewRecorder(to, b.opts.Action)
}

var identity = regexp.MustCompile(`_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

func controllerOf(component string) string {
	if identity.MatchString(component) {
		return LeaderElection
	}
	return component
}

// StartRecordingToSink starts to write events, to the sink of the
// events.Broadcaster and not to the given one, which may be nil: two writers would
// make two Events of everything. Calling it again does no harm, and neither does
// it to have started the events.Broadcaster already. What goes wrong is logged.
//
// The writing ends with Shutdown, or when each result has been stopped: then it
// goes on for events.Options.ShutdownTimeout with what there is. It cannot be
// started a second time.
func (b *Broadcaster) StartRecordingToSink(record.EventSink) watch.Interface {
	if err := b.startRecording(); err != nil && !errors.Is(err, events.ErrStarted) {
		b.logger().Error(err, "Cannot record events")
	}
	return newWatching(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.recordings--; b.recordings == 0 {
			b.stop()
		}
	})
}

// startRecording counts a recording, and starts the writing with the first.
func (b *Broadcaster) startRecording() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.recordings++
	if b.stop != nil {
		return nil
	}
	var ctx context.Context
	ctx, b.stop = context.WithCancel(klog.NewContext(context.Background(), b.logger()))
	return b.to.StartRecordingToSinkWithContext(ctx)
}

// StartEventWatcher calls handler with every event, as core/v1 shows a new one,
// until the result is stopped. See events.Broadcaster.StartEventWatcher.
func (b *Broadcaster) StartEventWatcher(handler func(*corev1.Event)) watch.Interface {
	if handler == nil {
		b.logger().Error(errors.New("compat: event handler is nil"), "Cannot watch events")
		return newWatching(func() {})
	}
	stop, err := b.to.StartEventWatcher(func(object runtime.Object) {
		if event, ok := object.(*eventsv1.Event); ok {
			handler(coreevents.ToCoreWithOldFields(event))
		}
	})
	if err != nil {
		b.logger().Error(err, "Cannot watch events")
		stop = func() {}
	}
	return newWatching(stop)
}

// StartLogging calls logf with every event until the result is stopped.
func (b *Broadcaster) StartLogging(logf func(format string, args ...any)) watch.Interface {
	return b.StartEventWatcher(func(event *corev1.Event) {
		logf("Event(%#v): type: '%v' reason: '%v' %v", event.InvolvedObject, event.Type, event.Reason, event.Message)
	})
}

// StartStructuredLogging logs every event at a verbosity of klog until the result
// is stopped, to the logger of Options.Context if there is one, and under the names
// that core/v1 has.
func (b *Broadcaster) StartStructuredLogging(verbosity klog.Level) watch.Interface {
	logger := b.logger().V(int(verbosity))
	return b.StartEventWatcher(func(event *corev1.Event) {
		object := &event.InvolvedObject
		logger.Info("Event occurred", "object", klog.KRef(object.Namespace, object.Name), "fieldPath", object.FieldPath,
			"kind", object.Kind, "apiVersion", object.APIVersion, "type", event.Type, "reason", event.Reason, "message", event.Message)
	})
}

// Shutdown shuts the events.Broadcaster down, which writes what the server does not
// know yet. It may be called more than once.
func (b *Broadcaster) Shutdown() { b.to.Shutdown() }

func (b *Broadcaster) logger() klog.Logger {
	if b.opts.Context != nil {
		return safelog.Guard(klog.FromContext(b.opts.Context))
	}
	return safelog.Guard(klog.Background())
}

// watching is what the legacy interface calls the end of something that was
// started. No event ever comes through it.
type watching struct {
	stop   func()
	result chan watch.Event
}

func newWatching(stop func()) *watching {
	w := &watching{result: make(chan watch.Event)}
	w.stop = sync.OnceFunc(func() {
		stop()
		close(w.result)
	})
	return w
}

// Stop ends what was started. It may be called more than once.
func (w *watching) Stop() { w.stop() }

// ResultChan returns a channel that is closed by Stop.
func (w *watching) ResultChan() <-chan watch.Event { return w.result }
