package query

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
)

func TestTop(t *testing.T) {
	later := func(e *eventsv1.Event) { e.EventTime = micro(5 * time.Minute) }
	events := []*eventsv1.Event{
		newEvent(named("shop", "a"), reported("c", "", "BackOff"), labeled("Ongoing"), recurred(61, time.Minute)), // 1/s
		newEvent(named("shop", "b"), reported("c", "", "BackOff"), labeled("Finished"), recurred(9, 9*time.Minute)),
		newEvent(named("shop", "c"), reported("c", "", "Pulled"), later),
		newEvent(named("default", "d"), reported("", "d", "Ready"), legacy(1, time.Minute, time.Minute), reported("", "d", "Ready"), about("Node", "", "n1", "")),
		newEvent(named("default", "e"), reported("", "d", "Ready"), legacy(1, 0, 0), reported("", "d", "Ready"), about("Node", "", "n1", "")),
	}
	type row struct {
		values               []string
		events, ongoing      int
		occurrences, inLoops int64
		rate                 float64
	}
	c := row{[]string{"c"}, 3, 1, 71, 70, 70. / 540}
	for name, tt := range map[string]struct {
		by   []Dimension
		want []row
	}{
		"nothing":               {nil, []row{{[]string{}, 5, 1, 73, 70, 72. / 540}}},
		"controller":            {[]Dimension{PerController}, []row{c, {[]string{"d"}, 2, 0, 2, 0, 1. / 60}}},
		"reason and controller": {[]Dimension{PerReason, PerController}, []row{{[]string{"BackOff", "c"}, 2, 1, 70, 70, 69. / 540}, {[]string{"Ready", "d"}, 2, 0, 2, 0, 1. / 60}, {[]string{"Pulled", "c"}, 1, 0, 1, 0, 0}}},
		"namespace":             {[]Dimension{PerNamespace}, []row{{[]string{"shop"}, 3, 1, 71, 70, 70. / 540}, {[]string{"default"}, 2, 0, 2, 0, 1. / 60}}},
		"object":                {[]Dimension{PerObject}, []row{{[]string{"shop/Pod/checkout-0"}, 3, 1, 71, 70, 70. / 540}, {[]string{"Node/n1"}, 2, 0, 2, 0, 1. / 60}}},
		"node":                  {[]Dimension{PerNode}, []row{{[]string{""}, 3, 1, 71, 70, 70. / 540}, {[]string{"n1"}, 2, 0, 2, 0, 1. / 60}}},
		"action and type":       {[]Dimension{PerAction, PerType}, []row{{[]string{"Pull", "Warning"}, 5, 1, 73, 70, 72. / 540}}},
	} {
		t.Run(name, func(t *testing.T) {
			groups, err := Top(itemsOf(nil, events...), tt.by...)
			require.NoError(t, err)
			require.Len(t, groups, len(tt.want))
			for i, want := range tt.want {
				g := groups[i]
				assert.Equal(t, want, row{g.Values, g.Events, g.Ongoing, g.Occurrences, g.InSeries, g.Rate()})
				assert.InDelta(t, float64(want.inLoops)/float64(want.occurrences), g.LoopShare(), 1e-9)
			}
		})
	}
	assert.Len(t, Dimensions(), 7)
	assert.Zero(t, (&Group{}).LoopShare())

	broken := errors.New("broken")
	groups, err := Top(itemsOf(broken, events[:2]...), PerType)
	require.ErrorIs(t, err, broken)
	assert.Equal(t, 2, groups[0].Events)
}

// TestTopOfTheFuture adds up counts, but no times that no clock can show yet.
func TestTopOfTheFuture(t *testing.T) {
	ahead := newEvent(named("shop", "b"), recurred(1000, 24*time.Hour))
	groups, err := Top(itemsOf(nil, ahead, newEvent(named("shop", "a"), recurred(61, time.Minute)), ahead))
	require.NoError(t, err)
	g := groups[0]
	assert.EqualValues(t, 2061, g.Occurrences)
	assert.Equal(t, []time.Time{t0, t0.Add(time.Minute)}, []time.Time{g.First.UTC(), g.Last.UTC()})
	assert.InDelta(t, 1, g.Rate(), 1e-9)
	groups, err = Top(itemsOf(nil, ahead))
	require.NoError(t, err)
	assert.Zero(t, groups[0].Last)
	assert.Zero(t, groups[0].Rate())
}
