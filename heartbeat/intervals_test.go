package heartbeat

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const never time.Duration = math.MaxInt64

func TestValidate(t *testing.T) {
	for _, tt := range []struct {
		iv   Intervals
		want []string // one per line of the error
	}{
		{iv: Intervals{}},
		{iv: Intervals{Heartbeat: 1, First: 1, Finish: 1}},
		{iv: Intervals{Heartbeat: never, First: never, Finish: never}},
		{iv: Intervals{First: DefaultHeartbeat}},
		{iv: Intervals{Heartbeat: time.Second}}, // shorter than Finish: odd, but harmless
		{
			iv:   Intervals{Heartbeat: -1},
			want: []string{"heartbeat: Intervals.Heartbeat is negative: -1ns"},
		},
		{
			iv:   Intervals{First: -time.Second},
			want: []string{"heartbeat: Intervals.First is negative: -1s"},
		},
		{
			iv:   Intervals{Finish: -never - 1},
			want: []string{"heartbeat: Intervals.Finish is negative: -2562047h47m16.854775808s"},
		},
		{
			iv:   Intervals{First: DefaultHeartbeat + 1},
			want: []string{"heartbeat: Intervals.First is longer than Heartbeat: 30m0.000000001s > 30m0s"},
		},
		{
			iv:   Intervals{Heartbeat: time.Minute, First: time.Hour},
			want: []string{"heartbeat: Intervals.First is longer than Heartbeat: 1h0m0s > 1m0s"},
		},
		{
			iv: Intervals{Heartbeat: -time.Second, First: time.Hour, Finish: -time.Minute},
			want: []string{
				"heartbeat: Intervals.Heartbeat is negative: -1s",
				"heartbeat: Intervals.Finish is negative: -1m0s",
				"heartbeat: Intervals.First is longer than Heartbeat: 1h0m0s > 30m0s",
			},
		},
	} {
		t.Run(fmt.Sprintf("%+v", tt.iv), func(t *testing.T) {
			err := tt.iv.Validate()
			if tt.want == nil {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, strings.Join(tt.want, "\n"))
		})
	}
}

func TestWithDefaults(t *testing.T) {
	const s, m = time.Second, time.Minute
	for _, tt := range []struct{ in, want Intervals }{
		{Intervals{}, Intervals{Heartbeat: 30 * m, First: 30 * m, Finish: 6 * m}},
		{Intervals{Heartbeat: 5 * s}, Intervals{Heartbeat: 5 * s, First: 5 * s, Finish: 6 * m}},
		{Intervals{First: m}, Intervals{Heartbeat: 30 * m, First: m, Finish: 6 * m}},
		{Intervals{Finish: 2 * s}, Intervals{Heartbeat: 30 * m, First: 30 * m, Finish: 2 * s}},
		{Intervals{Heartbeat: 3, First: 2, Finish: 1}, Intervals{Heartbeat: 3, First: 2, Finish: 1}},
		{Intervals{First: 31 * m}, Intervals{Heartbeat: 30 * m, First: 30 * m, Finish: 6 * m}},
		{Intervals{Heartbeat: -1, First: -1, Finish: -1}, Intervals{Heartbeat: 30 * m, First: 30 * m, Finish: 6 * m}},
	} {
		t.Run(fmt.Sprintf("%+v", tt.in), func(t *testing.T) {
			got := tt.in.WithDefaults()
			assert.Equal(t, tt.want, got)
			assert.Equal(t, got, got.WithDefaults(), "twice")
			assert.NoError(t, got.Validate())
		})
	}
}

func TestUntilHeartbeat(t *testing.T) {
	const s, m = time.Second, time.Minute
	for _, tt := range []struct {
		iv         Intervals
		heartbeats int
		want       time.Duration
	}{
		{Intervals{}, 0, 30 * m},
		{Intervals{}, 1, 30 * m},
		{Intervals{}, math.MaxInt, 30 * m},
		{Intervals{}, math.MinInt, 30 * m},

		{Intervals{First: m}, -1, m},
		{Intervals{First: m}, 0, m},
		{Intervals{First: m}, 1, 2 * m},
		{Intervals{First: m}, 2, 4 * m},
		{Intervals{First: m}, 3, 8 * m},
		{Intervals{First: m}, 4, 16 * m},
		{Intervals{First: m}, 5, 30 * m},
		{Intervals{First: m}, 6, 30 * m},
		{Intervals{First: m}, 63, 30 * m},
		{Intervals{First: m}, 64, 30 * m},
		{Intervals{First: m}, math.MaxInt, 30 * m},

		// Doubling hits Heartbeat exactly, and misses it by one either way.
		{Intervals{Heartbeat: 8 * s, First: s}, 2, 4 * s},
		{Intervals{Heartbeat: 8 * s, First: s}, 3, 8 * s},
		{Intervals{Heartbeat: 8 * s, First: s}, 4, 8 * s},
		{Intervals{Heartbeat: 8*s + 1, First: s}, 3, 8 * s},
		{Intervals{Heartbeat: 8*s + 1, First: s}, 4, 8*s + 1},
		{Intervals{Heartbeat: 8*s - 1, First: s}, 3, 8*s - 1},

		// The ends of what a Duration holds.
		{Intervals{Heartbeat: never, First: 1}, 62, 1 << 62},
		{Intervals{Heartbeat: never, First: 1}, 63, never},
		{Intervals{Heartbeat: never, First: 1}, math.MaxInt, never},
		{Intervals{Heartbeat: never, First: never}, 1, never},
		{Intervals{Heartbeat: never, First: never/2 + 1}, 1, never},
	} {
		t.Run(fmt.Sprintf("%+v/%d", tt.iv, tt.heartbeats), func(t *testing.T) {
			assert.Equal(t, tt.want, tt.iv.WithDefaults().untilHeartbeat(tt.heartbeats))
		})
	}
}
