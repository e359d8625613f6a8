package controllerruntime

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/eventseries/eventseries/compat"
	"github.com/eventseries/eventseries/events"
)

// Manager is a manager whose recorders emit into a broadcaster.
type Manager struct {
	manager.Manager
	broadcaster *events.Broadcaster
	legacy      *compat.Broadcaster
}

// NewManager takes the place of ctrl.NewManager. Events of leader election go to
// the broadcaster as well.
func NewManager(config *rest.Config, options ctrl.Options, broadcaster *events.Broadcaster) (*Manager, error) {
	legacy := compat.NewBroadcasterFor(broadcaster, compat.Options{})
	options.EventBroadcaster = legacy //nolint:staticcheck // leader election knows no other
	if options.BaseContext == nil {
		// It is what mgr.Add starts the broadcaster with. Without a logger in it, the
		// broadcaster would log to klog's.
		options.BaseContext = func() context.Context { return ctrl.LoggerInto(context.Background(), ctrl.Log) }
	}
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		return nil, err
	}
	if err := mgr.Add(broadcaster); err != nil {
		return nil, fmt.Errorf("add the broadcaster to the manager: %w", err)
	}
	return &Manager{Manager: mgr, broadcaster: broadcaster, legacy: legacy}, nil
}

// GetEventRecorderFor returns a recorder for callers of the legacy one.
func (m *Manager) GetEventRecorderFor(name string) record.EventRecorder {
	return m.legacy.NewRecorder(m.GetScheme(), corev1.EventSource{Component: name})
}

// Start runs the manager. What was emitted has been written when it returns, unless
// the server takes longer for it than events.Options.ShutdownTimeout.
func (m *Manager) Start(ctx context.Context) error {
	defer m.broadcaster.Shutdown()
	return m.Manager.Start(ctx)
}
