package events_test

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/eventseries/eventseries/events"
)

var (
	pod  = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart-7"}}
	node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-2"}}
)

// A controller says what it does (the action), why it emits the event (the reason),
// and which second object is involved.
func Example() {
	clientset := fake.NewClientset() // or kubernetes.NewForConfig
	ctx := context.Background()

	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: clientset.EventsV1()})
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		fmt.Println(err)
		return
	}
	defer broadcaster.Shutdown()

	recorder := broadcaster.NewRecorder(scheme.Scheme, "example.com/scheduler")
	for range 1000 { // a hot loop
		recorder.Eventf(pod, node, corev1.EventTypeWarning, "FailedScheduling", "Scheduling", "%s has no room", node.Name)
	}

	// Programs need no Flush, because Shutdown flushes.
	if err := broadcaster.Flush(ctx); err != nil {
		fmt.Println(err)
		return
	}
	list, err := clientset.EventsV1().Events("shop").List(ctx, metav1.ListOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, event := range list.Items {
		fmt.Printf("%s %s %s/%s %s (x%d): %s\n", event.Type, event.Regarding.Kind, event.Action, event.Reason, event.Related.Name,
			event.Series.Count, event.Note)
	}
	// Output:
	// Warning Pod Scheduling/FailedScheduling worker-2 (x1000): worker-2 has no room
}

// Annotations are for programs that read the event.
func ExampleAnnotatedEventRecorder() {
	broadcaster := events.NewBroadcaster(printer{})
	if err := broadcaster.StartRecordingToSinkWithContext(context.Background()); err != nil {
		fmt.Println(err)
		return
	}
	defer broadcaster.Shutdown()

	recorder := broadcaster.NewRecorder(scheme.Scheme, "example.com/scheduler")
	annotations := map[string]string{"example.com/attempt": "3"}
	recorder.(events.AnnotatedEventRecorder).AnnotatedEventf(pod, nil, annotations,
		corev1.EventTypeNormal, "Scheduled", "Binding", "bound to %s", node.Name)
	// Output:
	// create: bound to worker-2 map[example.com/attempt:3]
}

// printer is a custom sink. Its errors should be those of client-go, which decide
// about retries.
type printer struct{}

func (printer) Create(_ context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	fmt.Println("create:", event.Note, event.Annotations)
	return event, nil
}

func (printer) Patch(_ context.Context, event *eventsv1.Event, _ []byte) (*eventsv1.Event, error) {
	fmt.Println("patch:", event.Note, event.Series.Count)
	return event, nil
}

func (printer) Update(context.Context, *eventsv1.Event) (*eventsv1.Event, error) {
	return nil, errors.New("not used")
}

// A sink can send events anywhere.
func ExampleEventSink() {
	broadcaster := events.NewBroadcaster(printer{})
	recorder := broadcaster.NewRecorder(scheme.Scheme, "example.com/scheduler")
	recorder.Eventf(pod, nil, corev1.EventTypeNormal, "Scheduled", "Binding", "bound")

	if err := broadcaster.StartRecordingToSinkWithContext(context.Background()); err != nil {
		fmt.Println(err)
		return
	}
	broadcaster.Shutdown()
	// Output:
	// create: bound map[]
}

// A watcher in the process gets every occurrence, also those that cost no request.
func ExampleBroadcaster_StartEventWatcher() {
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: fake.NewClientset().EventsV1()})
	_, err := broadcaster.StartEventWatcher(func(object runtime.Object) {
		event := object.(*eventsv1.Event)
		fmt.Println(event.Regarding.Name, event.Reason, event.Note)
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := broadcaster.StartRecordingToSinkWithContext(context.Background()); err != nil {
		fmt.Println(err)
		return
	}

	recorder := broadcaster.NewRecorder(scheme.Scheme, "example.com/scheduler")
	for i := range 3 {
		recorder.Eventf(pod, nil, corev1.EventTypeNormal, "Pulling", "Pulling", "layer %d", i)
	}
	broadcaster.Shutdown() // returns when they have been handled
	// Output:
	// cart-7 Pulling layer 0
	// cart-7 Pulling layer 1
	// cart-7 Pulling layer 2
}
