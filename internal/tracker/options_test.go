package tracker

import (
	"testing"
	"time"

	"github.com/eventseries/eventseries/series"
	"github.com/stretchr/testify/assert"
)

func TestOptions(t *testing.T) {
	for _, tt := range []struct {
		opts Options
		err  string
	}{
		{Options{}, ""},
		{Options{Window: time.Second, Capacity: 1, NoteInterval: 1, EventTTL: 1, ClusterNamespace: "default"}, ""},
		{Options{ClusterNamespace: "kube-system"}, ""},
		{Options{Window: -1}, "series: Window -1ns is negative"},
		{Options{Capacity: -1}, "series: Capacity -1 is negative"},
		{Options{NoteInterval: -time.Second}, "series: NoteInterval -1s is negative"},
		{Options{Heartbeat: -time.Minute}, "series: Heartbeat -1m0s is negative"},
		{Options{EventTTL: -time.Hour}, "series: EventTTL -1h0m0s is negative"},
		{Options{ClusterNamespace: "x"}, `series: ClusterNamespace is "x"; the API server takes "kube-system" and "default"`},
	} {
		if err := tt.opts.Validate(); tt.err == "" {
			assert.NoError(t, err)
		} else {
			assert.EqualError(t, err, tt.err)
		}
	}
	assert.Equal(t, Options{
		Window: 6 * time.Minute, Capacity: 65536, NoteInterval: 10 * time.Second, EventTTL: time.Hour,
		Heartbeat: 30 * time.Minute, ClusterNamespace: "kube-system",
	}, Options{}.withDefaults())
}

// The Event of an object without a namespace has to be somewhere.
func TestClusterNamespace(t *testing.T) {
	node := &series.Key{Regarding: series.Reference{Kind: "Node", Name: "n1"}, Type: "Normal", Reason: "R", Action: "A"}
	for option, want := range map[string]string{"": "kube-system", "default": "default"} {
		table := NewTable(Options{ClusterNamespace: option}, start)
		eff := table.Observe(node, Occurrence{}, start)
		w, _, ok := table.Begin(eff.Dirty[0], start)
		assert.True(t, ok)
		assert.Equal(t, want, w.Series.Namespace)
		single := table.Single(node, Occurrence{}, start)
		assert.Equal(t, want, single.Namespace)
	}
}
