package events

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/eventseries/eventseries/series"
)

func TestOptionsValidate(t *testing.T) {
	for _, valid := range []Options{
		{},
		{QPS: -1},
		{FirstHeartbeat: time.Minute, ClusterNamespace: "default"},
		{EventTTL: series.MaxDuration, HeartbeatInterval: series.MaxDuration - 1, FirstHeartbeat: series.MaxDuration - 1, FinishAfter: series.MaxDuration, ShutdownTimeout: series.MaxDuration},
	} {
		require.NoError(t, valid.validate())
	}
	invalid := Options{
		HeartbeatInterval: -1 * time.Second,
		FirstHeartbeat:    -2 * time.Second,
		FinishAfter:       -3 * time.Second,
		Capacity:          -5,
		Burst:             -7,
		EventTTL:          -6 * time.Second,
		ClusterNamespace:  "here",
		QPS:               float32(math.NaN()),
		ShutdownTimeout:   series.MaxDuration + 1,
	}
	require.EqualError(t, invalid.validate(), `events: Options.EventTTL is negative: -6s
events: Options.HeartbeatInterval is negative: -1s
events: Options.FirstHeartbeat is negative: -2s
events: Options.FinishAfter is negative: -3s
events: Options.ShutdownTimeout is longer than 8760h0m0s: 8760h0m0.000000001s
events: Options.Capacity is negative: -5
events: Options.Burst is negative: -7
events: Options.QPS is NaN
events: Options.ClusterNamespace is "here"; the API server accepts "kube-system" and "default"`)
	for want, o := range map[string]Options{
		"events: Options.FirstHeartbeat is longer than HeartbeatInterval: 1h0m0s > 30m0s":  {FirstHeartbeat: time.Hour},
		"events: Options.FirstHeartbeat is longer than HeartbeatInterval: 2ns > 1ns":       {FirstHeartbeat: 2, HeartbeatInterval: 1},
		"events: Options.FirstHeartbeat is longer than HeartbeatInterval: 45m0s > 30m0s":   {FirstHeartbeat: 45 * time.Minute, EventTTL: time.Hour},
		"events: Options.HeartbeatInterval is not shorter than EventTTL: 1h0m0s >= 1h0m0s": {HeartbeatInterval: time.Hour},
		"events: Options.FinishAfter is longer than 8760h0m0s: 8760h0m0.000000001s":        {FinishAfter: series.MaxDuration + 1},
		"events: Options.EventTTL is shorter than a second: 2ns":                           {EventTTL: 2},
		"events: Options.EventTTL is longer than 8760h0m0s: 2562047h47m16.854775807s":      {EventTTL: math.MaxInt64},
		`events: Options.Scope is "SameProcess"`:                                           {Scope: "SameProcess"},
		`events: Options.Namespaces contains "a.b": must not contain dots`:                 {Namespaces: []string{"a", "a.b", ""}},
		"events: Options.ShutdownTimeout is negative: -10s":                                {ShutdownTimeout: -10 * time.Second},
	} {
		assert.EqualError(t, o.validate(), want)
	}
}

func TestOptionsDefaults(t *testing.T) {
	o := Options{}.withDefaults()
	assert.EqualValues(t, 50, o.QPS)
	assert.Equal(t, 65536, o.Capacity)
	for qps, want := range map[float32]int{-1: 32, 0: 10, 1: 1, 76: 16, 400: 32, math.MaxFloat32: 32} {
		assert.Equal(t, want, Options{QPS: qps}.withDefaults().workers, qps)
	}
	assert.Equal(t, 10*time.Second, o.ShutdownTimeout)
	assert.NotNil(t, o.clock)
	for _, tt := range []struct {
		opts Options
		want int
	}{
		{Options{}, 100}, {Options{QPS: 0.1}, 1}, {Options{QPS: 7}, 14}, {Options{QPS: 7, Burst: 3}, 3}, {Options{Burst: 1}, 1},
		{Options{QPS: 1 << 29}, 1 << 30}, {Options{QPS: math.MaxFloat32}, 0}, {Options{QPS: -1}, 0},
	} {
		assert.Equal(t, tt.want, newLimiter(tt.opts.withDefaults()).Burst(), "%+v", tt.opts)
	}
	assert.Equal(t, time.Minute, Options{FirstHeartbeat: time.Minute}.tracker().FirstHeartbeat)
	assert.Equal(t, "default", Options{ClusterNamespace: "default"}.tracker().ClusterNamespace)
	assert.Equal(t, 20*time.Minute, Options{EventTTL: 40 * time.Minute}.tracker().WithDefaults().HeartbeatInterval, "half of EventTTL")
}
