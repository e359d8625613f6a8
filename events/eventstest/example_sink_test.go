package eventstest_test

import (
	"context"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/eventseries/eventseries/events/eventstest"
)

// testServer tests a sink. This one is a Server.
func testServer(t *testing.T) {
	eventstest.TestSink(t, func(*testing.T) eventstest.SinkUnderTest {
		return eventstest.SinkUnderTest{Sink: &eventstest.Server{}}
	})
}

// teamSink adds a label to the Events of another sink. It embeds a sink with the method List.
type teamSink struct{ *eventstest.Server }

// Create implements [events.EventSink].
func (s teamSink) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	event = event.DeepCopy() // it belongs to the caller
	metav1.SetMetaDataLabel(&event.ObjectMeta, "example.com/team", "payments")
	return s.Server.Create(ctx, event)
}

// testTeamSink tests a sink that adds a label of its own.
func testTeamSink(t *testing.T) {
	eventstest.TestSink(t, func(*testing.T) eventstest.SinkUnderTest {
		return eventstest.SinkUnderTest{Sink: teamSink{&eventstest.Server{}}, Adds: []string{"example.com/team"}}
	})
}

// A sink that adds labels to Events declares them.
func ExampleSinkUnderTest() {
	var t *testing.T // of the test function
	testTeamSink(t)
}

// The example keeps the rules.
func TestTeamSink(t *testing.T) { testTeamSink(t) }

// TestSink runs a subtest for each rule.
func ExampleTestSink() {
	var t *testing.T // of the test function
	testServer(t)
}
