package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/eventseries/eventseries/events"
)

// fakeRecorder records the times of the occurrences of one controller, and the
// resourceVersions of its objects.
type fakeRecorder struct {
	times    []time.Time
	versions map[string]bool
}

func (r *fakeRecorder) Eventf(regarding, _ runtime.Object, _, _, _, _ string, _ ...any) {
	r.times = append(r.times, time.Now())
	object, _ := meta.Accessor(regarding) // never fails for these objects
	r.versions[object.GetResourceVersion()] = true
}

func TestControllersEmitSeriesAndSingletons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorders := make(map[string]*fakeRecorder)
		for _, c := range controllers {
			recorders[c.name] = &fakeRecorder{versions: make(map[string]bool)}
		}
		var counts counter
		ctx, cancel := context.WithTimeout(t.Context(), defaultDuration)
		defer cancel()
		began := time.Now()
		<-start(ctx, inSeconds(defaultDuration).speed, func(name string) events.EventRecorder {
			return counts.recorder(name, recorders[name])
		})
		require.Equal(t, defaultDuration, time.Since(began), "some controllers pause when the context ends")

		series, singletons := 0, 0
		for s, n := range counts.emitted() {
			require.NotEmpty(t, s.regarding.name, s)
			if n == 1 {
				singletons++
				continue
			}
			series++
			times := recorders[s.controller].times
			assert.GreaterOrEqual(t, times[1].Sub(times[0]), firstRetry, "%v starts as a singleton", s)
			for i := range times[1:] {
				require.LessOrEqual(t, times[i+1].Sub(times[i]), finishAfter/2, "%v is one series, even on a slow machine", s)
			}
		}
		assert.Equal(t, 4, series)
		assert.Equal(t, 5, singletons)

		hot := recorders["example.com/backup-controller"]
		assert.Greater(t, len(hot.times), 1000)
		assert.Len(t, hot.versions, len(hot.times), "each occurrence has a new resourceVersion")
	})
}
