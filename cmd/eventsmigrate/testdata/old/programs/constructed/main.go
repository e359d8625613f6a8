// Command constructed has recorders of this project in the contexts of knative.
package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/reconciler/pod"

	"github.com/eventseries/eventseries/compat/knative"
	"github.com/eventseries/eventseries/compat/record"
)

func client(context.Context) kubernetes.Interface { return nil }

func main() {
	broadcaster := record.NewBroadcaster()
	defer broadcaster.Shutdown()
	_ = knative.NewRecorders(broadcaster, client, controller.WithEventRecorder)
	pod.NewImpl(context.Background(), nil)
}

func reconcile(ctx context.Context, pod *corev1.Pod) {
	controller.GetEventRecorder(ctx).Event(pod, "Normal", "Created", "a")
}
