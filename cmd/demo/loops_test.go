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

// witness is a recorder that remembers the occurrences of one controller.
type witness struct {
	at       []time.Time
	versions map[string]bool // resourceVersions of the regarding object
}

func (w *witness) Eventf(regarding, _ runtime.Object, _, _, _, _ string, _ ...any) {
	w.at = append(w.at, time.Now())
	object, err := meta.Accessor(regarding)
	if err != nil {
		panic(err)
	}
	w.versions[object.GetResourceVersion()] = true
}

// emit runs loops for some time.
func emit(t *testing.T, loops []loop, duration time.Duration) (map[string]*witness, map[subject]int) {
	t.Helper()
	witnesses := make(map[string]*witness)
	for _, l := range loops {
		witnesses[l.controller] = &witness{versions: make(map[string]bool)}
	}
	var counts tally
	ctx, cancel := context.WithTimeout(t.Context(), duration)
	defer cancel()
	<-start(ctx, loops, func(controller string) events.EventRecorder {
		return counts.recorder(controller, witnesses[controller])
	})
	require.Error(t, ctx.Err(), "some go on until they are told to end")
	return witnesses, counts.emitted()
}

// split separates the hot loop, which takes a while to test, from the others.
func split(loops []loop) (hot, others []loop) {
	for _, l := range loops {
		if l.controller == "example.com/backup-controller" {
			hot = append(hot, l)
		} else {
			others = append(others, l)
		}
	}
	return hot, others
}

func TestControllersEmitSeriesAndSingletons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, loops := split(controllers())
		witnesses, emitted := emit(t, loops, defaultDuration)
		series, singletons := 0, 0
		for s, n := range emitted {
			require.NotEmpty(t, s.regarding.name, s)
			if n == 1 {
				singletons++
				continue
			}
			series++
			at := witnesses[s.controller].at
			assert.GreaterOrEqual(t, at[1].Sub(at[0]), firstRetry, "%v has to be a singleton for a while", s)
			for i := range at[1:] {
				assert.LessOrEqual(t, at[i+1].Sub(at[i]), finishAfter/2, "%v has to stay one series on a slow machine too", s)
			}
		}
		assert.Equal(t, 3, series)
		assert.Equal(t, 4, singletons)
	})
}

func TestHotLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loops, _ := split(controllers())
		require.Len(t, loops, 1)
		witnesses, emitted := emit(t, loops, firstRetry+time.Second)
		hot := witnesses[loops[0].controller]
		assert.Len(t, emitted, 1)
		assert.GreaterOrEqual(t, hot.at[1].Sub(hot.at[0]), firstRetry)
		assert.Greater(t, len(hot.at), 1000)
		assert.Len(t, hot.versions, len(hot.at), "each occurrence has a resourceVersion of its own")
	})
}

func TestPauseEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		assert.True(t, pause(ctx, time.Second/2))
		assert.False(t, pause(ctx, time.Hour))
		assert.Equal(t, time.Second, time.Since(began))
	})
}
