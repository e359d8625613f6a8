package workload

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/client-go/util/workqueue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func gaps(times []time.Duration) (gaps []time.Duration) {
	for i := range times[1:] {
		gaps = append(gaps, times[i+1]-times[i])
	}
	return gaps
}

func TestLoops(t *testing.T) {
	for _, l := range Loops() {
		t.Run(l.Name, func(t *testing.T) {
			t.Parallel()
			once, again := l.Until(24*time.Hour, 1), l.Until(24*time.Hour, 1)
			times := slices.Collect(once)
			assert.Equal(t, times, slices.Collect(again))
			assert.Equal(t, times, slices.Collect(once), "a sequence begins anew")
			require.Zero(t, times[0])
			longest := slices.Max(gaps(times))
			assert.GreaterOrEqual(t, longest, l.Longest*9/10)
			assert.LessOrEqual(t, longest, l.Longest*11/10)
			assert.GreaterOrEqual(t, slices.Min(gaps(times)), time.Millisecond)
			assert.Greater(t, times[len(times)-1], 23*time.Hour-time.Second)
		})
	}
}

func collect(t *testing.T, name string, n int) (first []time.Duration) {
	t.Helper()
	for _, l := range Loops() {
		if l.Name == name {
			for at := range l.Times(1) {
				if first = append(first, at); len(first) == n {
					return first
				}
			}
		}
	}
	require.FailNow(t, "no such loop", name)
	return nil
}

// A queue of one item, as controllers have it by default.
func TestRetriesAreThoseOfTheDefaultRateLimiter(t *testing.T) {
	limiter := workqueue.DefaultTypedControllerRateLimiter[string]()
	for i, gap := range gaps(collect(t, "workqueue", 40)) {
		work := gap - limiter.When("")
		assert.True(t, work >= 50*time.Millisecond && work < 100*time.Millisecond, "%d: %v", i, work)
	}
}

// https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#restart-policy: 10, 20,
// 40 seconds and so on, up to 5 minutes. The first restart has no delay.
func TestCrashesAreThoseOfTheKubelet(t *testing.T) {
	for name, want := range map[string][]int{
		"crash loop of 5 seconds":  {5, 15, 25, 45, 85, 165, 305, 305},
		"crash loop of 2 minutes":  {120, 130, 140, 160, 200, 280, 420, 420},
		"crash loop of 12 minutes": {720, 720, 720, 720, 720, 720, 720, 720},
	} {
		var got []int
		for _, gap := range gaps(collect(t, name, 9)) {
			got = append(got, int(gap/time.Second))
		}
		assert.Equal(t, want, got, name)
	}
}
