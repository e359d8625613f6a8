package compat

import (
	"context"
	"errors"
	"sync"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/internal/apigroup"
	"github.com/eventseries/eventseries/internal/legacybroadcaster"
	"github.com/eventseries/eventseries/internal/legacyrecorder"
	"github.com/eventseries/eventseries/internal/safelog"
)

const (
	// DefaultDistinctNotes is RecorderOptions.DistinctNotes of package events for the recorders of
	// a [Broadcaster].
	DefaultDistinctNotes = legacyrecorder.DistinctNotes

	// LeaderElection is the reporting controller of leader election events. See
	// [Broadcaster.NewRecorder].
	LeaderElection = legacybroadcaster.LeaderElection
)

// Options configures a [Broadcaster]. The zero value selects the defaults.
type Options struct {
	// Context, if set, shuts the broadcaster down when it is done, like the context
	// of record.WithContext. The broadcaster logs to its logger.
	Context context.Context

	// Action returns the action of an event, which legacy callers do not pass. If
	// Action is nil, returns "" or panics, the reason becomes the action. Action
	// runs for every occurrence, possibly concurrently, so it should be fast.
	Action func(regarding runtime.Object, reason string) string
}

// Broadcaster is a [record.EventBroadcaster] whose recorders emit events to an
// [events.Broadcaster]. Create one with [NewBroadcaster] or [NewBroadcasterFor]. Its
// methods are safe for concurrent use, at any time.
type Broadcaster struct {
	target  *events.Broadcaster
	opts    Options
	release func() bool // lets Options.Context forget the broadcaster

	mu         sync.Mutex
	recordings int                // calls of StartRecordingToSink whose result is not stopped
	stop       context.CancelFunc // stops the recording; nil until it starts
}

var _ record.EventBroadcaster = (*Broadcaster)(nil)

var errStopped = errors.New("compat: the recording was stopped, and does not start again")

// NewBroadcaster returns a Broadcaster that writes to sink, such as
// &events.EventSinkImpl{Interface: clientset.EventsV1()}. It replaces
// record.NewBroadcaster.
//
// Its options are those of [WithDefaults]. For others, use [events.New] and [NewBroadcasterFor].
func NewBroadcaster(sink events.EventSink) *Broadcaster {
	to, err := events.New(sink, WithDefaults(events.Options{}))
	if err != nil {
		to = events.NewBroadcaster(sink) // there is no sink, as the start says
	}
	return NewBroadcasterFor(to, Options{})
}

// NewBroadcasterFor returns a Broadcaster whose recorders emit events to the given
// one. The caller may also use, start and shut down the given broadcaster directly.
func NewBroadcasterFor(to *events.Broadcaster, opts Options) *Broadcaster {
	b := &Broadcaster{target: to, opts: opts, release: func() bool { return true }}
	if opts.Context != nil {
		b.release = context.AfterFunc(opts.Context, b.target.Shutdown)
	}
	return b
}

// Events returns the broadcaster that receives the events of b. Use it in code that
// has migrated, and for [events.Broadcaster.Flush] and [events.Broadcaster.Stats].
func (b *Broadcaster) Events() *events.Broadcaster { return b.target }

// NewRecorder returns a recorder. The component of source becomes the reporting
// controller; see [events.Broadcaster.NewRecorder]. The host becomes the reporting
// instance, as in client-go. Without a host, it is that of the [events.Broadcaster].
//
// Up to [DefaultDistinctNotes] messages of events that differ in nothing else have an Event each. For
// another number, use [NewRecorder].
//
// The component of leader election is the identity of the process,
// "<host name>_<UUID>", which changes with every restart. NewRecorder replaces it
// with [LeaderElection]. The messages of leader election contain the identity.
func (b *Broadcaster) NewRecorder(scheme *runtime.Scheme, source corev1.EventSource) record.EventRecorderLogger {
	return legacybroadcaster.Recorders{Target: b.target, Action: b.opts.Action, DistinctNotes: DefaultDistinctNotes}.New(scheme, source)
}

// StartRecordingToSink starts to write events. It ignores its argument, which may be
// nil, and uses the sink of the [events.Broadcaster]: with two sinks, each event
// would become two Events. Further calls have no effect, even if the caller has
// started the events.Broadcaster directly, or shut it down. StartRecordingToSink logs
// errors.
//
// The broadcaster writes until [Broadcaster.Shutdown], or until the caller has
// stopped all results. In the latter case it writes events for events.Options.ShutdownTimeout, and is then
// shut down: it cannot start again.
func (b *Broadcaster) StartRecordingToSink(record.EventSink) watch.Interface {
	if err := b.startRecording(); err != nil && !errors.Is(err, events.ErrStarted) && !errors.Is(err, events.ErrShutDown) {
		b.logger().Error(err, "Cannot record events")
	}
	return legacybroadcaster.NewWatch(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.recordings--; b.recordings == 0 {
			b.stop()
			b.release() // it is shut down soon
		}
	})
}

// startRecording increments recordings. The first call starts the target.
func (b *Broadcaster) startRecording() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.recordings++
	switch {
	case b.stop == nil:
	case b.recordings == 1:
		return errStopped
	default:
		return nil
	}
	var ctx context.Context
	ctx, b.stop = context.WithCancel(klog.NewContext(context.Background(), b.logger()))
	return b.target.StartRecordingToSinkWithContext(ctx)
}

// StartEventWatcher calls handler with every event until the caller stops the result.
// The Events are in core/v1 and have the deprecated fields. See
// [events.Broadcaster.StartEventWatcher]. If handler is nil, StartEventWatcher logs
// an error.
func (b *Broadcaster) StartEventWatcher(handler func(*corev1.Event)) watch.Interface {
	if handler == nil {
		b.logger().Error(errors.New("compat: event handler is nil"), "Cannot watch events")
		return legacybroadcaster.NewWatch(func() {})
	}
	stop, err := b.target.StartEventWatcher(func(object runtime.Object) {
		if event, ok := object.(*eventsv1.Event); ok {
			handler(apigroup.ToCoreWithDeprecatedFields(event))
		}
	})
	if err != nil {
		// controller-runtime starts to watch when it stops. There are no more events.
		if !errors.Is(err, events.ErrShutDown) {
			b.logger().Error(err, "Cannot watch events")
		}
		stop = func() {}
	}
	return legacybroadcaster.NewWatch(stop)
}

// StartLogging calls logf with every event until the caller stops the result.
func (b *Broadcaster) StartLogging(logf func(format string, args ...any)) watch.Interface {
	return b.StartEventWatcher(func(event *corev1.Event) {
		logf("Event(%#v): type: '%v' reason: '%v' %v", event.InvolvedObject, event.Type, event.Reason, event.Message)
	})
}

// StartStructuredLogging logs every event at the given verbosity until the caller
// stops the result. It uses the logger of [Options].Context, or klog's global logger
// if Context is nil. The keys are the field names of core/v1.
func (b *Broadcaster) StartStructuredLogging(verbosity klog.Level) watch.Interface {
	logger := b.logger().V(int(verbosity))
	return b.StartEventWatcher(func(event *corev1.Event) {
		object := &event.InvolvedObject
		logger.Info("Event occurred", "object", klog.KRef(object.Namespace, object.Name), "fieldPath", object.FieldPath,
			"kind", object.Kind, "apiVersion", object.APIVersion, "type", event.Type, "reason", event.Reason, "message", event.Message)
	})
}

// Shutdown writes pending events and shuts the [events.Broadcaster] down; see
// [events.Broadcaster.Shutdown]. Further calls have no effect.
func (b *Broadcaster) Shutdown() {
	b.release()
	b.target.Shutdown()
}

func (b *Broadcaster) logger() klog.Logger {
	if b.opts.Context != nil {
		return safelog.Guard(klog.FromContext(b.opts.Context))
	}
	return safelog.Guard(klog.Background())
}
