// Command first is the program in README.md: it emits a first event.
package main

import (
	"context"
	"log"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/eventseries/eventseries/compat"
	"github.com/eventseries/eventseries/events"
)

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		log.Fatal(err)
	}
	broadcaster := events.NewBroadcaster(compat.NewSink(kubernetes.NewForConfigOrDie(config)))
	if err := broadcaster.StartRecordingToSinkWithContext(context.Background()); err != nil {
		log.Fatal(err)
	}
	defer broadcaster.Shutdown() // writes the remaining counts

	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-0"}}
	recorder := broadcaster.NewRecorder(scheme.Scheme, "example.com/backup-controller")
	recorder.Eventf(pod, nil, corev1.EventTypeWarning, "SnapshotFailed", "Snapshotting", "snapshot of %s failed", pod.Name)
}
