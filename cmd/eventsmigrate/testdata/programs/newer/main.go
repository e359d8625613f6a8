// Command newer has broadcasters of events.k8s.io already, which are those of client-go.
package main

import (
	"context"
	"os"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clientevents "k8s.io/client-go/tools/events"

	"example.com/testdata/programs/newer/emit"
)

func main() {
	client := kubernetes.NewForConfigOrDie(&rest.Config{})
	adapter := clientevents.NewEventBroadcasterAdapter(client)
	defer adapter.Shutdown()
	adapter.StartRecordingToSink(nil)
	emit.Created(adapter.NewRecorder("newer"))

	var broadcaster clientevents.EventBroadcaster = clientevents.NewBroadcaster(&clientevents.EventSinkImpl{Interface: client.EventsV1()})
	defer broadcaster.Shutdown()
	if err := broadcaster.StartRecordingToSinkWithContext(context.Background()); err != nil {
		os.Exit(1)
	}
	emit.Created(broadcaster.NewRecorder(scheme.Scheme, "newer"))
}
