package record_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/eventseries/eventseries/compat/record" // was k8s.io/client-go/tools/record
)

// Only the import has changed.
func Example() {
	clientset := fake.NewClientset()
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: clientset.CoreV1().Events("")})
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "backup-controller"})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db-0"}}
	for range 100 {
		recorder.Eventf(pod, corev1.EventTypeWarning, "BackupFailed", "no space left on %s", "disk-1")
	}
	broadcaster.Shutdown()

	list, err := clientset.CoreV1().Events("default").List(context.Background(), metav1.ListOptions{})
	if err != nil {
		panic(err)
	}
	for _, event := range list.Items {
		fmt.Printf("%s: %s x%d, from %s\n", event.InvolvedObject.Name, event.Message, event.Count, event.Source.Component)
	}
	// Output: db-0: no space left on disk-1 x100, from backup-controller
}
