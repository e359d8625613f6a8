// Package wiring has what only the packages and the tests of this project set for a broadcaster.
package wiring

import (
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
)

// Sink is a sink of a broadcaster, with what no sink of a user can have: a broadcaster looks for this
// type, and not for methods. The zero values of all fields but EventSink have no effect.
type Sink struct {
	events.EventSink

	// MaxInFlight is the number of requests in flight that take at most 100 ms, so that a test is always the same.
	MaxInFlight int
	// ListLimit is the number of Events on the server up to which they are listed.
	ListLimit int
	// Clock is the source of time.
	Clock clock.WithTicker
	// Ended is called when the broadcaster has shut down.
	Ended func()
}
