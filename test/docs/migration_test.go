package docs

import (
	"k8s.io/client-go/kubernetes"

	"github.com/eventseries/eventseries/compat"
	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/test/docs/after"
	"github.com/eventseries/eventseries/test/docs/before"
)

// The tests of packages compat and compat/record run such programs.
var _ = []any{before.Run, before.NewController, after.Run, after.RunStructured, after.NewController, bothKinds}

func bothKinds(clientset kubernetes.Interface) (*events.Broadcaster, *compat.Broadcaster) {
	broadcaster := events.NewBroadcaster(compat.NewSink(clientset))
	legacy := compat.NewBroadcasterFor(broadcaster, compat.Options{})
	return broadcaster, legacy
}
