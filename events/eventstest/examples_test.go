package eventstest_test

import (
	"testing"
	"testing/synctest"
)

// The examples that need a *testing.T are run here.
func TestExamples(t *testing.T) {
	t.Run("Broadcaster", testLoop)
	t.Run("Broadcaster in a bubble", func(t *testing.T) { synctest.Test(t, testLoop) })
	t.Run("TestSink", testServer)
}
