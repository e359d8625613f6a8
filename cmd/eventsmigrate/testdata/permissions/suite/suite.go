// Package suite has tests that start an API server. It is none itself.
package suite

import (
	"k8s.io/client-go/kubernetes"

	"github.com/eventseries/eventseries/compat"
	"github.com/eventseries/eventseries/events"
)

// +kubebuilder:rbac:groups="",resources=events,verbs=create;update
func newBroadcaster(client kubernetes.Interface) (*events.Broadcaster, error) {
	return events.New(compat.NewSink(client), events.Options{})
}
