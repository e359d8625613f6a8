package events

import (
	"context"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	clientevents "k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/eventseries/eventseries/internal/apigroup"
	"github.com/eventseries/eventseries/internal/legacyrecorder"
	"github.com/eventseries/eventseries/internal/safelog"
)

// EventBroadcasterAdapter returns new and legacy recorders.
//
// Deprecated: as in client-go. For legacy recorders, use package compat.
type EventBroadcasterAdapter = clientevents.EventBroadcasterAdapter //nolint:staticcheck // part of the API of client-go

type adapter struct{ *Broadcaster }

// NewEventBroadcasterAdapter is [NewEventBroadcasterAdapterWithContext] without a context.
//
// Deprecated: as in client-go. Use [NewBroadcaster].
func NewEventBroadcasterAdapter(client kubernetes.Interface) EventBroadcasterAdapter {
	return NewEventBroadcasterAdapterWithContext(context.Background(), client)
}

// NewEventBroadcasterAdapterWithContext returns an adapter. All its recorders,
// including legacy ones, emit to one broadcaster, which has the default options, but writes through
// core/v1 or events.k8s.io/v1, each 5 minutes, so readers of either are fresh. The adapter shuts down when
// ctx ends.
//
// Deprecated: as in client-go. Use [NewBroadcaster].
func NewEventBroadcasterAdapterWithContext(ctx context.Context, client kubernetes.Interface) EventBroadcasterAdapter {
	a := adapter{Broadcaster: newBroadcaster(&apigroup.Fallback{
		Events: &EventSinkImpl{Interface: client.EventsV1()},
		Core:   &apigroup.CoreSink{Interface: client.CoreV1()},
	}, Options{HeartbeatInterval: 5 * time.Minute})}
	logger := safelog.Guard(klog.FromContext(ctx))
	a.log.Store(&logger)
	context.AfterFunc(ctx, a.Shutdown)
	return a
}

// NewRecorder returns a recorder for the types in client-go's scheme.
func (a adapter) NewRecorder(name string) EventRecorderLogger {
	return a.Broadcaster.NewRecorder(scheme.Scheme, name)
}

// DeprecatedNewLegacyRecorder returns a legacy recorder for the types in client-go's scheme.
func (a adapter) DeprecatedNewLegacyRecorder(name string) record.EventRecorderLogger {
	to := a.NewRecorderWithOptions(scheme.Scheme, name, RecorderOptions{DistinctNotes: legacyrecorder.DistinctNotes})
	return legacyrecorder.New(to, nil)
}
