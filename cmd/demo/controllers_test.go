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

func TestControllersOnTheRealServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorders := make(map[string]*fakeRecorder)
		for _, c := range controllers {
			recorders[c.name] = &fakeRecorder{versions: make(map[string]bool)}
		}
		ctx, cancel := context.WithTimeout(t.Context(), defaultDuration)
		defer cancel()
		<-start(ctx, inSeconds(defaultDuration).speed, func(name string) events.EventRecorder { return recorders[name] })

		for _, name := range []string{"kubelet", "default-scheduler", "node-controller", "example.com/backup-controller"} {
			times := recorders[name].times
			assert.GreaterOrEqual(t, times[1].Sub(times[0]), firstRetry, "%s starts with a singleton", name)
			for i := range times[1:] {
				require.LessOrEqual(t, times[i+1].Sub(times[i]), finishAfter/2, "%s has one series, even on a slow machine", name)
			}
		}
		hot := recorders["example.com/backup-controller"]
		assert.Greater(t, len(hot.times), 1000)
		assert.Len(t, hot.versions, len(hot.times), "each occurrence has a new resourceVersion")
	})
}
