package tracker_test

import (
	"fmt"
	"time"

	"github.com/eventseries/eventseries/internal/tracker"
	"github.com/eventseries/eventseries/series"
)

// A container crashes again and again. What is to be written about it is a
// create, a patch when it turns out to be a series, and a last patch.
func Example() {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	table := tracker.NewTable(tracker.Options{}, now)
	key := series.Key{
		Regarding:           series.Reference{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "cart-0"},
		Type:                "Warning",
		Action:              "Restarting",
		Reason:              "BackOff",
		ReportingController: "example.com/kubelet",
		ReportingInstance:   "node-1",
	}

	// write is what a worker does with entries that are dirty.
	write := func(eff tracker.Effects) {
		for _, entry := range eff.Dirty {
			write, _, ok := table.Begin(entry, now)
			if !ok {
				continue
			}
			s := write.Series
			fmt.Printf("%s: %s of %s, %d times\n", now.Format(time.TimeOnly), write.Kind, s.State, s.Count)
			// Here s.Event() or s.Patch() would go to the API server.
			table.Written(entry, write, now)
		}
	}

	var entry *tracker.Entry
	for range 100 {
		e, counted, wantNote := table.Count(&key, now)
		switch {
		case !counted:
			write(table.Observe(&key, tracker.Occurrence{Note: "back-off 10s"}, now))
		case wantNote:
			table.Describe(e, tracker.Occurrence{Note: "back-off 5m"}, now)
		}
		entry = e
		now = now.Add(time.Second)
	}

	now = now.Add(6 * time.Minute)
	write(table.Expire(entry, now))
	// Output:
	// 12:00:00: create of Singleton, 1 times
	// 12:00:01: series of Ongoing, 2 times
	// 12:07:40: finish of Finished, 100 times
}

// The name of an Event follows from its key, so that a process which is started
// again finds the Event of the one before.
func ExampleKey_BaseName() {
	key := series.Key{
		Regarding: series.Reference{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "system:discovery"},
		Type:      "Normal",
		Reason:    "Aggregated",
	}
	fmt.Println(key.BaseName())
	fmt.Println(key.Named(key.BaseName()), key.Named("system-discovery.17a3f2"))
	// Output:
	// system-discovery.621d308cafd54fb1
	// true false
}

func ExampleSeries_Patch() {
	first := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	s := series.Series{
		State: series.Ongoing,
		First: first, Last: first.Add(90 * time.Second),
		Count: 4242,
		Note:  "back-off 10s", LastNote: "back-off 5m",
	}
	patch, err := s.Patch()
	fmt.Println(string(patch), err)
	// Output:
	// {"metadata":{"annotations":{"eventseries.dev/last-note":"back-off 5m","eventseries.dev/state":"Ongoing"}},"series":{"count":4242,"lastObservedTime":"2026-01-02T12:01:30.000000Z"}} <nil>
}
