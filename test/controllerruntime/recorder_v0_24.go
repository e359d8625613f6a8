//go:build controller_runtime_v0_24

package controllerruntime

import "github.com/eventseries/eventseries/events"

// GetEventRecorder returns a recorder of the broadcaster.
func (m *Manager) GetEventRecorder(name string) events.EventRecorder {
	return m.broadcaster.NewRecorder(m.GetScheme(), name)
}
