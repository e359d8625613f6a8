package compat_test

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/eventseries/eventseries/compat"
	"github.com/eventseries/eventseries/events"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// The broadcaster writes through core/v1, so consumers of the deprecated fields can
// read the count.
func ExampleCoreSink() {
	ctx := context.Background()
	clientset := fake.NewClientset()
	broadcaster := events.NewBroadcaster(&compat.CoreSink{Interface: clientset.CoreV1()})
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		panic(err)
	}
	recorder := broadcaster.NewRecorder(nil, "example.com/backup-controller")
	pod := &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "default", Name: "db-0"}
	for range 3 {
		recorder.Eventf(pod, nil, corev1.EventTypeWarning, "BackupFailed", "BackingUp", "no space left")
	}
	broadcaster.Shutdown()

	list := must(clientset.CoreV1().Events("default").List(ctx, metav1.ListOptions{}))
	for _, event := range list.Items {
		fmt.Printf("%s (%s): %s x%d\n", event.InvolvedObject.Name, event.Source.Component, event.Message, event.Count)
	}
	// Output: db-0 (example.com/backup-controller): no space left x3
}

// A controller migrates from the legacy recorder. Only the line that creates the
// broadcaster changes.
func ExampleNewBroadcaster() {
	ctx := context.Background()
	clientset := fake.NewClientset()
	broadcaster := compat.NewBroadcaster(&events.EventSinkImpl{Interface: clientset.EventsV1()}) // was record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: clientset.CoreV1().Events("")})
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "backup-controller"})

	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db-0"}}
	for range 3 {
		recorder.Eventf(pod, corev1.EventTypeWarning, "BackupFailed", "no space left on %s", "disk-1")
	}
	broadcaster.Shutdown()

	list := must(clientset.EventsV1().Events("default").List(ctx, metav1.ListOptions{}))
	for _, event := range list.Items {
		fmt.Printf("%s: %s x%d, reported by %s\n", event.Regarding.Name, event.Note, event.Series.Count, event.ReportingController)
	}
	// Output: db-0: no space left on disk-1 x3, reported by backup-controller
}

// Call sites migrate one by one. Legacy and new recorders share a broadcaster.
func ExampleNewBroadcasterFor() {
	clientset := fake.NewClientset()
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: clientset.EventsV1()})
	legacy := compat.NewBroadcasterFor(broadcaster, compat.Options{
		Action: func(_ runtime.Object, reason string) string { return strings.TrimSuffix(reason, "Failed") },
	})
	legacy.StartRecordingToSink(nil)

	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db-0"}}
	legacy.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "backup-controller"}).
		Event(pod, corev1.EventTypeWarning, "BackupFailed", "no space left")
	broadcaster.NewRecorder(scheme.Scheme, "backup-controller").
		Eventf(pod, nil, corev1.EventTypeWarning, "NoSpace", "Backup", "no space left on %s", "disk-1")
	broadcaster.Shutdown()

	list := must(clientset.EventsV1().Events("default").List(context.Background(), metav1.ListOptions{}))
	for _, event := range list.Items {
		fmt.Println(event.Action, event.Reason)
	}
	// Unordered output:
	// Backup BackupFailed
	// Backup NoSpace
}

// A function for core/v1 receives an Event of events.k8s.io/v1.
func ExampleToCore() {
	show := func(event *corev1.Event) {
		fmt.Println(event.InvolvedObject.Name, event.Message, event.Series.Count)
	}
	show(compat.ToCore(&eventsv1.Event{
		Regarding: corev1.ObjectReference{Kind: "Pod", Name: "db-0"},
		Note:      "no space left",
		Series:    &eventsv1.EventSeries{Count: 57},
	}))
	// Output: db-0 no space left 57
}
