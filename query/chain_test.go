package query

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"

	"github.com/eventseries/eventseries/series"
)

// written returns the Event that the recorder of this project writes for a key, at a
// time after t0, with a name that depends on the key.
func written(t *testing.T, change func(*series.Key), at time.Duration, unique bool) *eventsv1.Event {
	t.Helper()
	read, err := series.FromEvent(newEvent())
	require.NoError(t, err)
	read.First, read.Last = t0.Add(at), t0.Add(at+time.Minute)
	read.Count, read.State = 3, series.Finished
	key := read.Key
	if change != nil {
		change(&key)
	}
	read.Key, read.Instance = key, "c-1"
	if key.Note != "" && key.Note != series.CombinedPrefix {
		read.Note = key.Note
	}
	read.Name = key.Name(0)
	if unique {
		read.Name = key.UniqueName(read.First)
	}
	return read.Event()
}

func TestChain(t *testing.T) {
	s := &apiServer{}
	reader := NewReader(s.start(t), Options{Clock: atTen})
	shared := func(k *series.Key) { k.ReportingInstance = "" }
	noted := func(k *series.Key) { k.Note = "another note" }
	combined := func(k *series.Key) { k.Note = series.CombinedPrefix }
	other := func(e *eventsv1.Event) { e.Action = "Other" }
	base := written(t, shared, 0, false)
	third := written(t, shared, 5*time.Minute, true)
	second := written(t, shared, 3*time.Minute, true)
	second.ReportingInstance = "c-2" // a later process
	for _, event := range []*eventsv1.Event{third, base, second,
		written(t, nil, time.Minute, false), written(t, noted, time.Minute, false), written(t, combined, time.Minute, false), written(t, combined, 2*time.Minute, true),
		newEvent(named("shop", "checkout-0.18a1b2c3d4e5f602"), other), newEvent(named("shop", "checkout-0.18a1b2c3d4e5f603"), recurred(2, time.Minute), other),
		newEvent(named("shop", "legacy1"), legacy(1, 0, 0)), newEvent(named("shop", "legacy2"), legacy(1, time.Minute, time.Minute)),
		newEvent(named("shop", "legacy3"), legacy(1, 0, 0), func(e *eventsv1.Event) { e.Note = "another note" }),
		newEvent(named("shop", "tied1"), legacy(1, 0, 0), other), newEvent(named("shop", "tied2"), legacy(1, 0, 0), other),
	} {
		s.Put(event)
	}
	chainOf := func(name string) (predecessors, successors []string) {
		item, err := reader.Get(t.Context(), "shop", name)
		require.NoError(t, err)
		chain, err := reader.Chain(t.Context(), item)
		require.NoError(t, err)
		assert.Same(t, item, chain.Item)
		for _, i := range chain.Predecessors {
			predecessors = append(predecessors, i.Name)
		}
		for _, i := range chain.Successors {
			successors = append(successors, i.Name)
		}
		return predecessors, successors
	}
	for name, want := range map[string][2][]string{
		base.Name:                                {nil, {second.Name, third.Name}},
		second.Name:                              {{base.Name}, {third.Name}},
		third.Name:                               {{base.Name, second.Name}, nil},
		written(t, nil, time.Minute, false).Name: {},
		written(t, noted, time.Minute, false).Name:    {},
		written(t, combined, time.Minute, false).Name: {nil, {written(t, combined, 2*time.Minute, true).Name}},
		"checkout-0.18a1b2c3d4e5f602":                 {nil, {"checkout-0.18a1b2c3d4e5f603"}},
		"legacy2":                                     {{"legacy1"}, nil},
		"legacy3":                                     {},
		"tied1":                                       {nil, {"tied2"}},
		"tied2":                                       {{"tied1"}, nil},
	} {
		predecessors, successors := chainOf(name)
		assert.Equal(t, want, [2][]string{predecessors, successors}, name)
	}

	item, err := reader.Get(t.Context(), "shop", base.Name)
	require.NoError(t, err)
	s.answer = deny("list")
	_, err = reader.Chain(t.Context(), item)
	require.ErrorAs(t, err, new(*PermissionError))
}
