package eventstest_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/events/eventstest"
	"github.com/eventseries/eventseries/series"
)

var (
	claim = &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data-0"}}
	node  = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-3"}}
)

// attacher is the controller under test.
type attacher struct{ recorder events.EventRecorder }

func (a *attacher) reconcile(claim *corev1.PersistentVolumeClaim) {
	a.recorder.Eventf(claim, node, corev1.EventTypeWarning, "InUseElsewhere", "AttachVolume", "still attached to %s", node.Name)
}

// noon is a clock that stands still.
var noon = clocktesting.NewFakePassiveClock(time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC))

// printer is a test that prints its failures, because examples have no test.
type printer struct{ testing.TB }

func (printer) Helper()        {}
func (printer) Cleanup(func()) {}

func (printer) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// t is the *testing.T of a test function.
var t printer

// TestExamples runs the examples that need a *testing.T.
func TestExamples(t *testing.T) {
	t.Run("Broadcaster", testLoop)
	t.Run("Broadcaster in a bubble", func(t *testing.T) { synctest.Test(t, testLoop) })
	t.Run("slow loop", testSlowLoop)
	t.Run("TestSink", testServer)
}

func Example() {
	recorder := eventstest.NewRecorder(t)
	controller := &attacher{recorder: recorder}
	controller.reconcile(claim)

	recorder.Expect(t, eventstest.Want{Regarding: claim, Related: node, Reason: "InUseElsewhere"})
	recorder.ExpectNone(t, eventstest.Want{Reason: "Attached"})

	// With testify: assert.Len(t, recorder.Find(eventstest.Want{Type: "Warning"}), 1)
	for _, event := range recorder.Find(eventstest.Want{Type: corev1.EventTypeWarning}) {
		fmt.Println(event.Regarding.Name, event.Action, event.Reason, event.Note)
	}
	// Output:
	// data-0 AttachVolume InUseElsewhere still attached to node-3
}

// A failure shows the closest event, and where it differs.
func ExampleRecorder_Expect() {
	recorder := eventstest.NewRecorderWithOptions(t, eventstest.Options{Clock: noon})
	recorder.Eventf(claim, node, corev1.EventTypeWarning, "InUseElsewhere", "AttachVolume", "still attached to %s", node.Name)

	recorder.Expect(t, eventstest.Want{Regarding: claim, Reason: "InUseElsewhere", NoteContains: "node-4"})
	// Output:
	// eventstest: no such event
	//   want: reason "InUseElsewhere", regarding PersistentVolumeClaim shop/data-0 (v1), note contains "node-4"
	//   closest is #1, which differs in
	//     note  want: contains "node-4"
	//            got: "still attached to node-3"
	//   recorded (1):
	//     #1 12:00:00 Warning InUseElsewhere (AttachVolume) PersistentVolumeClaim shop/data-0, related Node node-3: "still attached to node-3"
}

// An event that the API server would reject fails the test, wherever the program emits
// it.
func ExampleNewRecorder() {
	recorder := eventstest.NewRecorder(t)
	recorder.Eventf(claim, nil, "Error", "InUseElsewhere", "AttachVolume", "still attached to %s", node.Name)
	// Output:
	// eventstest: event Error InUseElsewhere (AttachVolume) PersistentVolumeClaim shop/data-0: "still attached to node-3": type: "Error": must be Normal or Warning (the event is lost)
}

// Wait is for events from another goroutine.
func ExampleRecorder_Wait() {
	recorder := eventstest.NewRecorder(t)
	controller := &attacher{recorder: recorder}
	go controller.reconcile(claim)

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	event, err := recorder.Wait(ctx, eventstest.Want{Regarding: claim})
	fmt.Println(event.Reason, err)
	// Output:
	// InUseElsewhere <nil>
}

// A Server is the sink of a broadcaster that the test starts itself.
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
		fmt.Println(event.Regarding.Name, event.Reason, event.Series.Count, event.Labels[series.LabelState])
	}
	// Output:
	// data-0 InUseElsewhere 100 Ongoing
}

// CheckSink needs no *testing.T.
func ExampleCheckSink() {
	err := eventstest.CheckSink(context.Background(), eventstest.SinkUnderTest{Sink: &eventstest.Server{}})
	fmt.Println(err)
	// Output:
	// <nil>
}

// Validate says why the API server would reject an Event.
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
