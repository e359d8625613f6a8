package eventstest_test

import (
	"testing"
	"time"

	"k8s.io/client-go/kubernetes/scheme"

	"github.com/eventseries/eventseries/events/eventstest"
	"github.com/eventseries/eventseries/series"
)

// testLoop tests what becomes of a controller that runs into the same thing every
// ten seconds, for an hour.
func testLoop(t *testing.T) {
	broadcaster := eventstest.NewBroadcaster(t)
	controller := &attacher{recorder: broadcaster.NewRecorder(scheme.Scheme, "example.com/attacher")}

	for range 360 {
		controller.reconcile(claim)
		broadcaster.Advance(10 * time.Second)
	}
	if s := broadcaster.Series()[0]; s.State != series.Ongoing {
		t.Errorf("after an hour it is %v", s.State)
	}
	broadcaster.Advance(6 * time.Minute)
	if s := broadcaster.Series()[0]; s.State != series.Finished || s.Count != 360 {
		t.Errorf("six quiet minutes later it is %v x%d", s.State, s.Count)
	}
	// One that creates the Event, one that makes it a series, two heartbeats, and one
	// that closes it.
	if requests := broadcaster.Requests(); len(requests) != 5 {
		t.Errorf("%d requests: %v", len(requests), requests)
	}
}

// What becomes of a loop can be tested without a server, and without waiting.
func ExampleBroadcaster() {
	var t *testing.T // what a test function is given
	testLoop(t)
}
