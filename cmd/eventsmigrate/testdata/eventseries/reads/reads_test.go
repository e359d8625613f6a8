package reads

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func TestClient(t *testing.T) {
	client := fake.NewClientset()
	Run(t.Context(), client)
	_, _ = client.CoreV1().Events("").List(t.Context(), metav1.ListOptions{})
	events := client.CoreV1().Events("a")
	_, _ = events.Get(t.Context(), "a", metav1.GetOptions{})
	watch := events.Watch
	_, _ = watch(t.Context(), metav1.ListOptions{})
	_ = informers.NewSharedInformerFactory(client, 0).Core().V1().Events().Informer()
	// These read something else.
	_, _ = client.EventsV1().Events("").List(t.Context(), metav1.ListOptions{})
	_, _ = client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	_, _ = events.Create(t.Context(), &corev1.Event{}, metav1.CreateOptions{})
}

func TestActions(t *testing.T) {
	client := fake.NewClientset()
	client.PrependReactor("create", "events", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return false, action.(clienttesting.CreateAction).GetObject().(*corev1.Event), nil
	})
	Run(t.Context(), client)
	for _, a := range client.Actions() {
		if a.GetResource().Resource == "events" && a.GetResource().Group == "" {
			t.Log("an Event")
		}
		switch a.GetResource() {
		case corev1.SchemeGroupVersion.WithResource("events"):
		case schema.GroupVersionResource{Version: "v1", Resource: "events"}:
		case schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}:
		case corev1.SchemeGroupVersion.WithResource("pods"):
		}
	}
}
