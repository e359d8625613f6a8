package tracker_test

import (
	"fmt"
	"time"

	"github.com/eventseries/eventseries/internal/tracker"
	"github.com/eventseries/eventseries/series"
)

// A container crashes again and again. The writes are a create, a patch when it
// turns out to be a series, and a last patch.
func Example() {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	t := tracker.New(tracker.Options{}, now)
	key := series.Key{
		Regarding:           series.Reference{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "cart-0"},
		Type:                "Warning",
		Action:              "Restarting",
		Reason:              "BackOff",
		ReportingController: "example.com/kubelet",
		ReportingInstance:   "node-1",
	}

	// write does what a worker does.
	write := func() {
		for {
			w, _, ok := t.Next(now)
			if !ok {
				return
			}
			fmt.Printf("%s: %s of %s, %d times\n", now.Format(time.TimeOnly), w.Kind, w.Series.State, w.Series.Count)
			// Send w.Series.Event() or w.Patch() to the API server here.
			t.Apply(w, tracker.Result{Outcome: tracker.Written}, now)
		}
	}

	for range 100 {
		e, counted, wantNote := t.Count(&key, now)
		switch {
		case !counted:
			t.Observe(&key, tracker.Occurrence{Note: "back-off 10s"}, now)
			write()
		case wantNote:
			t.Describe(e, tracker.Occurrence{Note: "back-off 5m"}, now)
		}
		now = now.Add(time.Second)
	}

	now = now.Add(6 * time.Minute)
	t.Advance(now)
	write()
	// Output:
	// 12:00:00: create of Singleton, 1 times
	// 12:00:01: series of Ongoing, 2 times
	// 12:07:40: finish of Finished, 100 times
}
