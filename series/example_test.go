package series_test

import (
	"fmt"
	"time"

	"github.com/eventseries/eventseries/series"
)

// The name of an Event follows from its key, so a restarted process finds the Event
// of the previous one.
func ExampleKey_Name() {
	key := series.Key{
		Regarding: series.Reference{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "system:discovery"},
		Type:      "Normal",
		Reason:    "Aggregated",
	}
	fmt.Println(key.Name(0))
	fmt.Println(key.Name(1)) // if another key has that name
	// Output:
	// system-discovery.621d308cafd54fb1
	// system-discovery.4c0a7cdcf865320f
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
	// {"metadata":{"labels":{"eventseries.dev/state":"Ongoing"},"annotations":{"eventseries.dev/last-note":"back-off 5m"}},"series":{"count":4242,"lastObservedTime":"2026-01-02T12:01:30.000000Z"}} <nil>
}
