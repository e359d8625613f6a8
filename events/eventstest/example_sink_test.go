package eventstest_test

import (
	"testing"

	"github.com/eventseries/eventseries/events/eventstest"
)

// testServer tests a sink by all that a broadcaster needs of it. This one is a
// Server.
func testServer(t *testing.T) {
	eventstest.TestSink(t, func(*testing.T) eventstest.SinkUnderTest {
		return eventstest.SinkUnderTest{Sink: &eventstest.Server{}}
	})
}

// A sink is tested in a subtest for each rule.
func ExampleTestSink() {
	var t *testing.T // what a test function is given
	testServer(t)
}
