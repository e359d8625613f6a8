// Command shutdown never shuts down its broadcaster.
package main

import (
	"context"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
)

func main() {
	config, err := rest.InClusterConfig()
	if err != nil {
		os.Exit(1)
	}
	client := kubernetes.NewForConfigOrDie(config)
	broadcaster := record.NewBroadcaster() // of the program
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	c := newController(context.Background(), client, broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "main"}))
	if err := c.Run(context.Background()); err != nil {
		os.Exit(1)
	}
}

type controller struct {
	client      kubernetes.Interface
	recorder    record.EventRecorder
	broadcaster record.EventBroadcaster
}

// The constructor returns what needs the broadcaster, and Run waits.
func newController(_ context.Context, client kubernetes.Interface, recorder record.EventRecorder) *controller {
	return &controller{client: client, recorder: recorder, broadcaster: record.NewBroadcaster()}
}

// Run runs until ctx ends.
func (c *controller) Run(ctx context.Context) error {
	c.broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: c.client.CoreV1().Events("")})
	<-ctx.Done()
	return nil
}

// Nobody can tell how long the recorder lives.
func newRecorder(client kubernetes.Interface) record.EventRecorder {
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	return broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "main"})
}
