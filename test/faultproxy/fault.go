package faultproxy

import (
	"fmt"
	"strings"
	"time"
)

// Fault is a set of network faults. The zero value is a network without faults.
type Fault struct {
	// Refuse resets new connections at once. It does not affect existing ones; see
	// [Proxy.Reset].
	Refuse bool
	// HoldRequests holds what clients send until the fault ends.
	HoldRequests bool
	// HoldAnswers holds what the server sends until the fault ends.
	HoldAnswers bool
	// ResetAfter resets each connection, new or existing, after this number of bytes
	// from the server since the fault began. If zero, there is no limit.
	ResetAfter int
	// Delay delays each chunk in both directions. A chunk has at most 32 KiB.
	Delay time.Duration
}

// String returns the names of the faults, or "none".
func (f Fault) String() string {
	var names []string
	add := func(set bool, name string) {
		if set {
			names = append(names, name)
		}
	}
	add(f.Refuse, "refuse")
	add(f.HoldRequests, "hold-requests")
	add(f.HoldAnswers, "hold-answers")
	add(f.ResetAfter > 0, fmt.Sprintf("reset-after=%d", f.ResetAfter))
	add(f.Delay > 0, fmt.Sprintf("delay=%v", f.Delay))
	add(len(names) == 0, "none")
	return strings.Join(names, " ")
}
