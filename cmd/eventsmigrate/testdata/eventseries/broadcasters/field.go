package broadcasters

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
)

type controller struct {
	client      kubernetes.Interface
	broadcaster record.EventBroadcaster
	recorder    record.EventRecorder
}

func newController(ctx context.Context, kubeClient kubernetes.Interface) *controller {
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	return &controller{
		client:      kubeClient,
		broadcaster: broadcaster,
		recorder:    broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "field"}),
	}
}

func (c *controller) run(ctx context.Context) {
	c.broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: c.client.CoreV1().Events("")})
	defer c.broadcaster.Shutdown()
	c.recorder.Event(&corev1.Pod{}, "Normal", "Created", "a")
	<-ctx.Done()
}
