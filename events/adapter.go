package events

import (
	"context"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	clientevents "k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/eventseries/eventseries/internal/coreevents"
	"github.com/eventseries/eventseries/internal/legacy"
)

// EventBroadcasterAdapter hands out recorders of both kinds.
//
// Deprecated: as in client-go. Package compat has more for legacy recorders.
type EventBroadcasterAdapter = clientevents.EventBroadcasterAdapter //nolint:staticcheck // for those who have it

// adapter is a broadcaster for client-go's types.
type adapter struct {
	broadcaster *Broadcaster
	logger      klog.Logger
}

// NewEventBroadcasterAdapter is NewEventBroadcasterAdapterWithContext without a
// context.
//
// Deprecated: as in client-go. Use NewBroadcaster.
func NewEventBroadcasterAdapter(client kubernetes.Interface) EventBroadcasterAdapter {
	return NewEventBroadcasterAdapterWithContext(context.Background(), client)
}

// NewEventBroadcasterAdapterWithContext returns an adapter whose recorders, legacy
// ones included, emit into one broadcaster. That writes through events.k8s.io/v1
// where the server of client has it, and otherwise through core/v1, as
// compat.CoreSink does. The server is asked here; if it does not say that it has no
// events.k8s.io/v1, that is taken. The end of ctx shuts the adapter down.
//
// Deprecated: as in client-go. Use NewBroadcaster.
func NewEventBroadcasterAdapterWithContext(ctx context.Context, client kubernetes.Interface) EventBroadcasterAdapter {
	var sink EventSink = &EventSinkImpl{Interface: client.EventsV1()}
	_, err := client.Discovery().ServerResourcesForGroupVersion(eventsv1.SchemeGroupVersion.String())
	if apierrors.IsNotFound(err) {
		sink = &coreevents.Sink{Interface: client.CoreV1()}
	}
	a := &adapter{broadcaster: NewBroadcaster(sink), logger: guarded(klog.FromContext(ctx))}
	context.AfterFunc(ctx, a.Shutdown)
	return a
}

// StartRecordingToSink starts to write events until stopCh is closed. What goes
// wrong is logged.
func (a *adapter) StartRecordingToSink(stopCh <-chan struct{}) {
	ctx := klog.NewContext(wait.ContextForChannel(stopCh), a.logger)
	if err := a.broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		a.logger.Error(err, "Cannot record events")
	}
}

// NewRecorder returns a recorder for client-go's types.
func (a *adapter) NewRecorder(name string) EventRecorderLogger {
	return a.broadcaster.NewRecorder(scheme.Scheme, name)
}

// DeprecatedNewLegacyRecorder returns a legacy recorder for client-go's types.
func (a *adapter) DeprecatedNewLegacyRecorder(name string) record.EventRecorderLogger {
	to := a.broadcaster.NewRecorderWithOptions(scheme.Scheme, name, RecorderOptions{DistinctNotes: legacy.DistinctNotes})
	return legacy.NewRecorder(to, nil)
}

// Shutdown writes what is left and ends the writing.
func (a *adapter) Shutdown() { a.broadcaster.Shutdown() }

var (
	_ EventSink   = (*coreevents.Sink)(nil)
	_ EventLister = (*coreevents.Sink)(nil)
)
