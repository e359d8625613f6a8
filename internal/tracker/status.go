package tracker

import (
	"time"

	"github.com/eventseries/eventseries/series"
)

// Status is what the deadlines of a tracked series depend on.
type Status struct {
	// State of the series.
	State series.State
	// Last is the time of the latest occurrence.
	Last time.Time
	// Written is the time of the latest write that the server has accepted.
	// It is zero while nothing of the series is on the server.
	Written time.Time
	// Heartbeats is the number of heartbeats written so far, or refused. Of a
	// series that was restored nobody knows: it is 65535 then, the largest.
	Heartbeats int
	// Lead is how much sooner than the full interval after Written the next heartbeat
	// is due, so that those of many series do not come together.
	Lead time.Duration
	// Waiting says that a write of the series is to be made already, so that
	// a heartbeat would not tell the server anything that this write does not.
	Waiting bool
}
