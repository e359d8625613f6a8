package eventstest_test

import (
	"testing"

	"github.com/eventseries/eventseries/events/eventstest"
)

// testServer tests a sink. This one is a Server.
func testServer(t *testing.T) {
	eventstest.TestSink(t, func(*testing.T) eventstest.SinkUnderTest {
		return eventstest.SinkUnderTest{Sink: &eventstest.Server{}}
	})
}

// TestSink runs a subtest for each rule.
func ExampleTestSink() {
	var t *testing.T // of the test function
	testServer(t)
}
