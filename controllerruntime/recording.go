package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	legacyrecord "k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"github.com/eventseries/eventseries/compat"
	"github.com/eventseries/eventseries/compat/record"
	"github.com/eventseries/eventseries/events"
)

// failureGrace is how long the end of a manager waits for the last writes if the manager
// has failed, or if its GracefulShutdownTimeout is shorter. With the defaults of
// controller-runtime, another replica can become leader 5 seconds after this one has lost
// its lease.
const failureGrace = time.Second

// recording starts and shuts down the broadcasters of a manager or a cluster. Create one with
// newRecording.
type recording struct {
	// broadcasters are those to shut down. The first is that of the recorders.
	broadcasters []*events.Broadcaster
	// legacy makes legacy recorders that emit to the first broadcaster.
	legacy legacyrecord.EventBroadcaster
	// attach gives the first broadcaster its sink, and starts it. It is nil if the
	// broadcaster has a sink.
	attach func()
	// logger receives the events, and the messages of the broadcasters.
	logger logr.Logger
	// limit is how long the end waits for the last writes. If negative, only
	// events.Options.ShutdownTimeout limits that.
	limit time.Duration

	started atomic.Bool
}

// newRecording returns a recording to the given broadcaster. legacy is the option
// EventBroadcaster. If both are nil, a new broadcaster writes to the API server of config.
// client sends its requests; nil selects the default of config.
func newRecording(config *rest.Config, client *http.Client, broadcaster *events.Broadcaster, legacy legacyrecord.EventBroadcaster) (*recording, error) {
	r := &recording{legacy: legacy, limit: -1}
	if legacy == nil {
		if broadcaster == nil {
			clientset, err := newClientset(config, client)
			if err != nil {
				return nil, err
			}
			if broadcaster, err = events.New(compat.NewSink(clientset), withDefaults(events.Options{})); err != nil {
				return nil, err
			}
		}
		r.broadcasters = []*events.Broadcaster{broadcaster}
		r.legacy = compat.NewBroadcasterFor(broadcaster, compat.Options{})
		return r, nil
	}

	const want = "want nil, or a *compat.Broadcaster or *compat/record.Broadcaster whose Events() is the broadcaster of the manager"
	if v := reflect.ValueOf(legacy); v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, fmt.Errorf("controllerruntime: Options.EventBroadcaster is a nil %T: %s", legacy, want)
	}
	var target *events.Broadcaster
	switch legacy := legacy.(type) {
	case *compat.Broadcaster:
		target = legacy.Events()
	case *record.Broadcaster:
		target = legacy.Events()
		clientset, err := newClientset(config, client)
		if err != nil {
			return nil, err
		}
		sink := &typedcorev1.EventSinkImpl{Interface: clientset.CoreV1().Events("")}
		r.attach = func() { legacy.StartRecordingToSink(sink) }
	}
	if target == nil || broadcaster != nil && target != broadcaster {
		return nil, fmt.Errorf("controllerruntime: Options.EventBroadcaster is a %T: %s", legacy, want)
	}
	r.broadcasters = []*events.Broadcaster{target}
	return r, nil
}

// withDefaults returns the options of the broadcaster of a manager. They are those of
// [compat.WithDefaults], except that a manager lists: its role is its own, and can grant that.
func withDefaults(opts events.Options) events.Options {
	list := opts.List
	opts = compat.WithDefaults(opts)
	opts.List = list
	return opts
}

// newClientset returns clients for the API server of config. client can be nil.
func newClientset(config *rest.Config, client *http.Client) (clientset *kubernetes.Clientset, err error) {
	if client == nil {
		clientset, err = kubernetes.NewForConfig(config)
	} else {
		clientset, err = kubernetes.NewForConfigAndClient(config, client)
	}
	if err != nil {
		return nil, fmt.Errorf("controllerruntime: create a client for events: %w", err)
	}
	return clientset, nil
}

// provider returns the recorders of a manager or a cluster with the given scheme.
func (r *recording) provider(scheme *runtime.Scheme) (recorder.Provider, error) {
	return newProvider(recorders{r.broadcasters[0], r.legacy, scheme}, recorder.Provider.GetEventRecorder)
}

// recorders makes the recorders of a manager, a cluster, or leader election.
type recorders struct {
	broadcaster *events.Broadcaster
	legacy      legacyrecord.EventBroadcaster
	scheme      *runtime.Scheme
}

// GetEventRecorderFor returns a legacy recorder that emits to the broadcaster.
func (r *recorders) GetEventRecorderFor(name string) legacyrecord.EventRecorder {
	return r.legacy.NewRecorder(r.scheme, corev1.EventSource{Component: name})
}

// providing is a [recorder.Provider]. Its GetEventRecorder returns the type that the
// installed version of controller-runtime requires: client-go's EventRecorder before v0.25,
// and an interface with AnnotatedEventf since then.
type providing[R any] struct{ *recorders }

// GetEventRecorder returns a recorder that emits to the broadcaster.
func (p providing[R]) GetEventRecorder(name string) R {
	return any(p.broadcaster.NewRecorderWithOptions(p.scheme, name, events.RecorderOptions{})).(R)
}

// newProvider returns a recorder.Provider. It infers R from the method GetEventRecorder of that
// interface, and returns an error if the recorders of package events do not implement R.
func newProvider[R any](r recorders, _ func(_ recorder.Provider, name string) R) (recorder.Provider, error) {
	p, ok := any(providing[R]{&r}).(recorder.Provider)
	if want := reflect.TypeFor[R](); !ok || !reflect.TypeFor[events.Recorder]().Implements(want) {
		return nil, fmt.Errorf("controllerruntime: this version of controller-runtime has unknown recorders: %s", want)
	}
	return p, nil
}

// run starts the broadcasters, calls work, and shuts the broadcasters down.
func (r *recording) run(ctx context.Context, work func(context.Context) error) (err error) {
	if r.started.Swap(true) {
		return work(ctx) // returns an error, and the first call is running
	}
	defer func() { r.shutDown(err != nil) }()
	for _, broadcaster := range r.broadcasters {
		if logger := r.logger.V(1); logger.Enabled() {
			if _, err := broadcaster.StartLogging(logger); err != nil {
				return fmt.Errorf("controllerruntime: log events: %w", err)
			}
		}
		if broadcaster.NeedLeaderElection() {
			continue
		}
		if err := r.start(ctx, broadcaster); err != nil {
			return err
		}
	}
	return work(ctx)
}

// start starts a broadcaster, unless the user has. It ignores the end of ctx: reconcilers
// emit events until their manager returns.
func (r *recording) start(ctx context.Context, broadcaster *events.Broadcaster) error {
	if r.attach != nil && broadcaster == r.broadcasters[0] {
		r.attach()
	}
	ctx = logr.NewContext(context.WithoutCancel(ctx), r.logger)
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil && !errors.Is(err, events.ErrStarted) {
		return fmt.Errorf("controllerruntime: start the broadcaster: %w", err)
	}
	return nil
}

// shutDown shuts the broadcasters down. If the manager has failed, reconcilers can still
// run, even though the replica does not lead any more. So shutDown returns early.
func (r *recording) shutDown(failed bool) {
	limit := r.limit
	if failed {
		limit = failureGrace
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		var all sync.WaitGroup
		for _, broadcaster := range r.broadcasters {
			all.Go(broadcaster.Shutdown)
		}
		all.Wait()
	}()
	var expired <-chan time.Time
	if limit >= 0 {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		expired = timer.C
	}
	select {
	case <-done:
	case <-expired:
		r.logger.Info("Exiting before all events are written", "waited", limit, "failed", failed)
	}
}
