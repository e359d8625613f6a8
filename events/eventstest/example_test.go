package eventstest_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/events/eventstest"
)

var (
	claim = &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data-0"}}
	node  = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-3"}}
)

// attacher is a controller to be tested.
type attacher struct{ recorder events.EventRecorder }

func (a *attacher) reconcile(claim *corev1.PersistentVolumeClaim) {
	a.recorder.Eventf(claim, node, corev1.EventTypeWarning, "InUseElsewhere", "AttachVolume", "still attached to %s", node.Name)
}

// t is what a test function is given.
var t printer

// In a test, t is the *testing.T.
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

// When it fails, it says which event comes nearest, and where it differs.
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

// What the API server would not take fails the test, wherever it is emitted.
func ExampleNewRecorder() {
	recorder := eventstest.NewRecorder(t)
	recorder.Eventf(claim, nil, "Error", "InUseElsewhere", "AttachVolume", "still attached to %s", node.Name)
	// Output:
	// eventstest: event Error InUseElsewhere (AttachVolume) PersistentVolumeClaim shop/data-0: "still attached to node-3": type: "Error": must be Normal or Warning (the event is lost)
}

// A test waits for what a controller does in a goroutine of its own.
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
