package eventstest_test

import (
	"testing"
	"testing/synctest"
)

// TestExamples runs the examples that need a *testing.T.
func TestExamples(t *testing.T) {
	t.Run("Broadcaster", testLoop)
	t.Run("Broadcaster in a bubble", func(t *testing.T) { synctest.Test(t, testLoop) })
	t.Run("TestSink", testServer)
}
