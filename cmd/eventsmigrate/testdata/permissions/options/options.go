// Package options has a broadcaster with options, for both groups.
package options

import (
	"k8s.io/client-go/kubernetes"

	"github.com/eventseries/eventseries/compat"
	"github.com/eventseries/eventseries/events"
)

// +kubebuilder:rbac:groups="",resources=events,verbs=create;update
func newBroadcaster(client kubernetes.Interface) (*events.Broadcaster, error) {
	return events.New(compat.NewSink(client), events.Options{})
}
