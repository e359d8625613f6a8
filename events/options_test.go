package events

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOptionsValidate(t *testing.T) {
	require.NoError(t, Options{}.Validate())
	require.NoError(t, Options{QPS: -1}.Validate())
	require.NoError(t, Options{FirstHeartbeat: time.Minute, ClusterNamespace: "default"}.Validate())

	// Every option that cannot be used is named, as it is called here.
	err := Options{
		HeartbeatInterval: -1 * time.Second,
		FirstHeartbeat:    -2 * time.Second,
		FinishAfter:       -3 * time.Second,
		NoteInterval:      -4 * time.Second,
		DistinctNotes:     -12,
		Capacity:          -5,
		EventTTL:          -6 * time.Second,
		ClusterNamespace:  "here",
		QPS:               float32(math.NaN()),
		Burst:             -7,
		Workers:           -8,
		RequestTimeout:    -9 * time.Second,
		ShutdownTimeout:   -10 * time.Second,
		WatcherQueue:      -11,
	}.Validate()
	require.EqualError(t, err, `events: Options.HeartbeatInterval is negative: -1s
events: Options.FirstHeartbeat is negative: -2s
events: Options.FinishAfter is negative: -3s
events: Options.NoteInterval is negative: -4s
events: Options.EventTTL is negative: -6s
events: Options.RequestTimeout is negative: -9s
events: Options.ShutdownTimeout is negative: -10s
events: Options.DistinctNotes is negative: -12
events: Options.Capacity is negative: -5
events: Options.Burst is negative: -7
events: Options.Workers is negative: -8
events: Options.WatcherQueue is negative: -11
events: Options.QPS is NaN
events: Options.ClusterNamespace is "here"; the API server takes "kube-system" and "default"`)

	assert.EqualError(t, Options{FirstHeartbeat: time.Hour}.Validate(), "events: Options.FirstHeartbeat is longer than HeartbeatInterval: 1h0m0s > 30m0s")
}

// What the packages below refuse is refused here.
func TestOptionsValidateIsStrictEnough(t *testing.T) {
	for _, o := range []Options{
		{HeartbeatInterval: -1}, {FirstHeartbeat: -1}, {FinishAfter: -1}, {FirstHeartbeat: 2, HeartbeatInterval: 1},
		{NoteInterval: -1}, {Capacity: -1}, {EventTTL: -1}, {ClusterNamespace: "here"},
	} {
		require.True(t, o.intervals().Validate() != nil || o.table().Validate() != nil)
		require.Error(t, o.Validate())
	}
}

func TestOptionsDefaults(t *testing.T) {
	o := Options{}.withDefaults()
	assert.EqualValues(t, 50, o.QPS)
	assert.Equal(t, 100, o.Burst)
	assert.Equal(t, 4, o.Workers)
	assert.Equal(t, 30*time.Second, o.RequestTimeout)
	assert.Equal(t, 10*time.Second, o.ShutdownTimeout)
	assert.Equal(t, 1000, o.WatcherQueue)
	assert.NotNil(t, o.Clock)
}
