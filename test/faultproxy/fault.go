package faultproxy

import (
	"fmt"
	"strings"
	"time"
)

// Fault is what is wrong with the network. The zero value is that nothing is.
// Faults can be had together.
type Fault struct {
	// Refuse resets every new connection at once. Those that run are left alone;
	// Proxy.Reset is for them.
	Refuse bool
	// HoldRequests keeps what clients send from the server.
	HoldRequests bool
	// HoldAnswers keeps what the server sends from the clients. Without
	// HoldRequests, the server does what it is asked and nobody learns of it.
	HoldAnswers bool
	// ResetAfter resets each connection, new or old, when the server has answered
	// so many bytes on it since the fault began, in the middle of whatever it is
	// saying. If zero, none is.
	ResetAfter int
	// Delay is how long each piece of data takes, one after the other, in both
	// directions. A piece is what has come in the meantime, 32 KiB at most.
	Delay time.Duration
}

// String names what is wrong, "none" if nothing is.
func (f Fault) String() string {
	var what []string
	if f.Refuse {
		what = append(what, "refuse")
	}
	if f.HoldRequests {
		what = append(what, "hold-requests")
	}
	if f.HoldAnswers {
		what = append(what, "hold-answers")
	}
	if f.ResetAfter > 0 {
		what = append(what, fmt.Sprintf("reset-after=%d", f.ResetAfter))
	}
	if f.Delay > 0 {
		what = append(what, fmt.Sprintf("delay=%v", f.Delay))
	}
	if len(what) == 0 {
		return "none"
	}
	return strings.Join(what, " ")
}

// direction is that of a stream of bytes.
type direction uint8

const (
	requests direction = iota
	answers
)

// holds reports whether what goes in that direction is kept.
func (f Fault) holds(d direction) bool {
	if d == requests {
		return f.HoldRequests
	}
	return f.HoldAnswers
}
