package heartbeat_test

import (
	"fmt"
	"time"

	"github.com/eventseries/eventseries/heartbeat"
)

// lease is an object that somebody has to renew on a server.
type lease struct {
	namespace, name string
	renewed         bool
	failures        int // in a row
	slot            heartbeat.Slot[*lease]
}

func (l *lease) Slot() *heartbeat.Slot[*lease] { return &l.slot }
func (l *lease) Gate() heartbeat.Gate          { return heartbeat.Gate{Namespace: l.namespace, Verb: "update"} }
func (l *lease) Tried() bool                   { return l.failures > 0 }

// A writer that renews leases every half hour. The server denies requests in one namespace
// until the role arrives.
func Example() {
	var (
		intervals = heartbeat.Intervals{Heartbeat: 30 * time.Minute}
		schedule  = heartbeat.NewSchedule[*lease](nil)
		now       time.Duration // since the start; a real writer reads a clock
	)
	send := func(l *lease) heartbeat.Result {
		if l.namespace == "prod" && now < 3*time.Second {
			return heartbeat.Denied
		}
		return heartbeat.Passed
	}
	for i, l := range []*lease{{namespace: "dev", name: "a"}, {namespace: "prod", name: "b"}, {namespace: "prod", name: "c"}} {
		schedule.Ready(l, time.Duration(i), false, now)
	}
	for now < 40*time.Minute {
		// Handle what is due.
		for l, ok := schedule.Due(now); ok; l, ok = schedule.Due(now) {
			schedule.Ready(l, now, l.renewed && l.failures == 0, now)
		}
		// Make the requests that can be made. A real writer does that concurrently.
		for l, pass, ok := schedule.Next(now); ok; l, pass, ok = schedule.Next(now) {
			result := send(l)
			fmt.Printf("%v: %s/%s %v\n", now, l.namespace, l.name, result == heartbeat.Passed)
			schedule.Done(l, pass, result, 0, now)
			if result == heartbeat.Passed {
				l.renewed, l.failures = true, 0
				schedule.Wait(l, now+intervals.After(1))
			} else {
				l.failures++
				schedule.Retry(l, now+schedule.Backoff(l.failures), now)
			}
		}
		// Sleep until there is something to do.
		due, isDue := schedule.NextDue()
		request, isReady := schedule.NextRequest(now)
		if isReady && (!isDue || request < due) {
			due = request
		}
		now = due
	}
	// Unordered output:
	// 0s: dev/a true
	// 0s: prod/b false
	// 0s: prod/c false
	// 1s: prod/b false
	// 2s: prod/c false
	// 3s: prod/b true
	// 4s: prod/c true
	// 30m0s: dev/a true
	// 30m3s: prod/b true
	// 30m4s: prod/c true
}
