//go:build !controller_runtime_v0_24

package controllerruntime

import (
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"github.com/eventseries/eventseries/events"
)

// GetEventRecorder returns a recorder of the broadcaster.
func (m *Manager) GetEventRecorder(name string) recorder.EventRecorder {
	return m.broadcaster.NewRecorderWithOptions(m.GetScheme(), name, events.RecorderOptions{})
}
