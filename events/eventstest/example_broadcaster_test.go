package eventstest_test

import (
	"testing"
	"time"

	"k8s.io/client-go/kubernetes/scheme"

	"github.com/eventseries/eventseries/events/eventstest"
	"github.com/eventseries/eventseries/series"
)

// testLoop tests what users see of a controller that has the same problem every ten
// seconds for an hour.
func testLoop(t *testing.T) {
	broadcaster := eventstest.NewBroadcaster(t)
	controller := &attacher{recorder: broadcaster.NewRecorder(scheme.Scheme, "example.com/attacher")}

	for range 360 {
		controller.reconcile(claim)
		broadcaster.Advance(10 * time.Second)
	}
	if s := broadcaster.Series()[0]; s.State != series.Ongoing {
		t.Errorf("after an hour, the series is %v", s.State)
	}
	broadcaster.Advance(series.FinishAfter)
	if s := broadcaster.Series()[0]; s.State != series.Finished || s.Count != 360 {
		t.Errorf("six quiet minutes later, the series is %v x%d", s.State, s.Count)
	}
	// Create the Event, make it a series, send two heartbeats, and finish the series.
	if requests := broadcaster.Requests(); len(requests) != 5 {
		t.Errorf("%d requests: %v", len(requests), requests)
	}
}

// testSlowLoop tests what users see of a controller that retries every ten minutes. Its
// Event says for how long the series must be quiet to be Finished.
func testSlowLoop(t *testing.T) {
	broadcaster := eventstest.NewBroadcaster(t)
	controller := &attacher{recorder: broadcaster.NewRecorder(scheme.Scheme, "example.com/attacher")}

	for range 12 {
		controller.reconcile(claim)
		broadcaster.Advance(10 * time.Minute)
	}
	all := broadcaster.Series()
	if len(all) != 1 || all[0].State != series.Ongoing {
		t.Errorf("the series after two hours: %v", all)
	}
	broadcaster.Advance(all[0].QuietWindow())
	if s := broadcaster.Series()[0]; s.State != series.Finished || s.Count != 12 {
		t.Errorf("%v later, the series is %v x%d", all[0].QuietWindow(), s.State, s.Count)
	}
}

// A test of an hour needs no server, and takes no time.
func ExampleBroadcaster() {
	var t *testing.T // of the test function
	testLoop(t)
	testSlowLoop(t)
}
