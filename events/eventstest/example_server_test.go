package eventstest_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/events/eventstest"
	"github.com/eventseries/eventseries/series"
)

// A server in memory, for a broadcaster of one's own.
func ExampleServer() {
	server := &eventstest.Server{}
	broadcaster := events.NewBroadcaster(server)
	if err := broadcaster.StartRecordingToSinkWithContext(context.Background()); err != nil {
		fmt.Println(err)
		return
	}
	controller := &attacher{recorder: broadcaster.NewRecorder(scheme.Scheme, "example.com/attacher")}
	for range 100 {
		controller.reconcile(claim)
	}
	broadcaster.Shutdown()

	for _, event := range server.Events() {
		fmt.Println(event.Regarding.Name, event.Reason, event.Series.Count, event.Annotations[series.AnnotationState])
	}
	// Output:
	// data-0 InUseElsewhere 100 Ongoing
}

// Without a *testing.T, what is wrong with a sink is an error.
func ExampleCheckSink() {
	err := eventstest.CheckSink(context.Background(), eventstest.SinkUnderTest{Sink: &eventstest.Server{}})
	fmt.Println(err)
	// Output:
	// <nil>
}

// What the API server would say of an Event.
func ExampleValidate() {
	event := &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: "shop", Name: "data-0.1"},
		EventTime:           metav1.NowMicro(),
		ReportingController: "example.com/attacher",
		ReportingInstance:   "attacher-0",
		Action:              "AttachVolume",
		Type:                "Error",
		Regarding:           corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: "shop", Name: "data-0"},
	}
	for _, problem := range eventstest.Validate(event) {
		fmt.Println(problem)
	}
	// Output:
	// reason: "": is required
	// type: "Error": must be Normal or Warning
}
