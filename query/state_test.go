package query

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/util/workqueue"

	"github.com/eventseries/eventseries/series"
)

func legacyLoop(gap func(n int) time.Duration) []time.Duration {
	var at []time.Duration
	for n, now := 0, time.Duration(0); now < 5*time.Hour; n++ {
		at = append(at, now)
		now += gap(n)
	}
	return at
}

// crashes returns the gaps of a container that runs for some time: the back-off doubles from 10
// seconds to a limit.
func crashes(limit, run time.Duration) func(int) time.Duration {
	return func(n int) time.Duration { return min(10*time.Second<<min(n, 20), limit) + run }
}

// TestLoopsOfTheLegacyRecorder requires that a loop is ongoing from its second occurrence on,
// whenever somebody looks, and Quiet afterwards.
func TestLoopsOfTheLegacyRecorder(t *testing.T) {
	limiter := workqueue.DefaultTypedControllerRateLimiter[string]()
	const s, m = time.Second, time.Minute
	const kubelet = "crash loop"
	for name, loop := range map[string]struct {
		gap   func(int) time.Duration
		quiet time.Duration // after the last occurrence, if the loop ends after five hours
	}{
		"default rate limiter of controllers":   {func(int) time.Duration { return max(limiter.When("x"), 1) }, 41 * m},
		"every 2 min":                           {func(int) time.Duration { return 2 * m }, 11 * m},
		"every 5 min":                           {func(int) time.Duration { return 5 * m }, 25 * m},
		"every 10 min":                          {func(int) time.Duration { return 10 * m }, 41 * m},
		"bursts of 5 every 10 min":              {func(n int) time.Duration { return max(s, 10*m*time.Duration(max(n%5-3, 0))) }, 16 * m},
		"crash loop":                            {crashes(5*m, 0), 15*m + 30*s},
		"crash loop, containers run for 2 min":  {crashes(5*m, 2*m), 15*m + 30*s},
		"crash loop, containers run for 10 min": {crashes(5*m, 10*m), 15*m + 30*s},
		"crash loop, containers run for 12 min": {crashes(10*s, 12*m), 15*m + 30*s},
		"the spam filter passes one in 5 min": {func(n int) time.Duration {
			if n < 25 {
				return 10 * s
			}
			return 5 * m
		}, 25 * m},
	} {
		at := legacyLoop(loop.gap)
		item := func(last int, now time.Duration) *Item {
			first := at[0].Truncate(time.Second) // as core/v1 writes it
			e := newEvent(legacy(int32(last+1), first, at[last].Truncate(time.Second)))
			if !strings.HasPrefix(name, kubelet) {
				e.DeprecatedSource.Component = "example-controller"
			}
			return FromEvent(e, t0.Add(now))
		}
		for n := 1; n < len(at)-1; n++ {
			require.Equal(t, series.Ongoing, item(n, at[n+1]).State, "%s: occurrence %d, %s after %s", name, n+1, at[n+1]-at[n], at[n])
		}
		end := len(at) - 1
		over := item(end, at[end]+loop.quiet+s)
		assert.Equal(t, series.Quiet, over.State, "%s: stale at %s after its last occurrence", name, over.StaleAt.Sub(over.Last))
	}
}

func TestWindowOf(t *testing.T) {
	for _, test := range []struct {
		count        int32
		lasted, want time.Duration
	}{
		{1, time.Hour, 6 * time.Minute},
		{2, 0, 6 * time.Minute},
		{2, 10 * time.Minute, 21 * time.Minute},
		{2, time.Hour, 36 * time.Minute},
		{18, 40 * time.Minute, 36 * time.Minute},
		{22, 20 * time.Minute, 21 * time.Minute},
		{240, 40 * time.Minute, 6 * time.Minute},
		{1<<31 - 1, 1<<63 - 1, 6 * time.Minute},
	} {
		assert.Equal(t, test.want, windowOf(test.count, test.lasted), "%d in %s", test.count, test.lasted)
	}
}
