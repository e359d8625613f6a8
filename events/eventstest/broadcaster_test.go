package eventstest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/series"
)

const controller = "example.com/kubelet"

// inAndOut runs a test with a broadcaster and a recorder twice: in a bubble, and outside.
func inAndOut(t *testing.T, test func(*testing.T, *Broadcaster, events.Recorder)) {
	t.Helper()
	run := func(t *testing.T) {
		b := NewBroadcaster(t)
		test(t, b, b.NewRecorder(scheme.Scheme, controller))
	}
	t.Run("outside", run)
	t.Run("in a bubble", func(t *testing.T) { synctest.Test(t, run) })
}

func emit(r events.EventRecorder) {
	r.Eventf(pod, nil, corev1.EventTypeWarning, "Unhealthy", "KillContainer", "probe failed")
}

// assertSeries checks the only series on the server.
func assertSeries(t *testing.T, b *Broadcaster, state series.State, count int) {
	t.Helper()
	all := b.Series()
	require.Len(t, all, 1)
	assert.Equal(t, state, all[0].State)
	assert.EqualValues(t, count, all[0].Count)
}

func TestLifeOfASeries(t *testing.T) {
	inAndOut(t, func(t *testing.T, b *Broadcaster, recorder events.Recorder) {
		begin := b.Now()
		assert.Equal(t, time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC), begin.UTC())
		emit(recorder)
		assertSeries(t, b, series.Singleton, 1)
		b.Advance(time.Minute)
		emit(recorder)
		assertSeries(t, b, series.Ongoing, 2)
		b.Advance(6*time.Minute - time.Nanosecond)
		assertSeries(t, b, series.Ongoing, 2)
		b.Advance(time.Nanosecond)
		assertSeries(t, b, series.Finished, 2)
		assert.Equal(t, begin.UTC(), b.Series()[0].First.UTC())
		assert.Equal(t, begin.Add(time.Minute).UTC(), b.Series()[0].Last.UTC())
		assert.Equal(t, begin.Add(7*time.Minute), b.Now())
		assert.Equal(t, 1, b.Stats().Ended)
		for _, r := range b.Stats().Requests {
			assert.EqualValues(t, 1, r.Count)
			assert.Equal(t, "written", r.Outcome)
		}
		requests := b.Requests()
		require.Len(t, requests, 3)
		for i, verb := range []string{"create", "patch", "patch"} {
			assert.Equal(t, verb, requests[i].Verb)
		}

		b.Advance(29*time.Minute + 59*time.Second)
		emit(recorder)
		assertSeries(t, b, series.Ongoing, 3)
		b.Advance(b.Series()[0].QuietWindow())
		assertSeries(t, b, series.Finished, 3)
		b.Advance(time.Hour)
		assert.Empty(t, b.Events(), "it has expired")
		emit(recorder)
		assertSeries(t, b, series.Singleton, 1)
	})
}

func TestRunsAreReproducible(t *testing.T) {
	var first []string
	for i := range 20 {
		b := NewBroadcaster(t)
		recorder := b.NewRecorder(scheme.Scheme, controller)
		for minute := range 60 {
			for n := range 12 { // so many that their heartbeats are spread
				if minute%(n+1) == 0 {
					recorder.Eventf(&corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: fmt.Sprint("cart-", n)}, nil,
						corev1.EventTypeNormal, "Pulled", "Pull", "minute %d", minute)
				}
			}
			b.Advance(time.Minute)
		}
		b.Shutdown()
		var run []string
		for _, r := range b.Requests() {
			run = append(run, fmt.Sprint(r, r.Body))
		}
		slices.Sort(run) // concurrent requests come in any order
		if i == 0 {
			first = run
			require.Greater(t, len(run), 40)
		}
		require.True(t, slices.Equal(first, run))
	}
}

func TestHangingRequests(t *testing.T) {
	inAndOut(t, func(t *testing.T, b *Broadcaster, recorder events.Recorder) {
		b.Answer(func(ctx context.Context, _ Request) error { <-ctx.Done(); return ctx.Err() })
		emit(recorder)
		require.Len(t, b.Requests(), 1)
		require.NoError(t, b.Requests()[0].Err, "it is in flight")
		b.Advance(time.Minute)
		require.ErrorIs(t, b.Requests()[0].Err, context.DeadlineExceeded)
		b.Answer(func(context.Context, Request) error { time.Sleep(time.Second); return nil })
		b.Advance(time.Minute)
		assert.Len(t, b.Events(), 1)
	})
}

func TestShutdownWritesPendingSeries(t *testing.T) {
	inAndOut(t, func(t *testing.T, b *Broadcaster, recorder events.Recorder) {
		for range 10 {
			emit(recorder)
			b.Advance(time.Second)
		}
		assertSeries(t, b, series.Ongoing, 2)
		b.Shutdown()
		assertSeries(t, b, series.Ongoing, 10)
		emit(recorder)
		assert.EqualValues(t, 1, b.Stats().Dropped["Shutdown"])
		b.Shutdown()
	})
}

func TestRecordersOfABroadcaster(t *testing.T) {
	inAndOut(t, func(t *testing.T, b *Broadcaster, _ events.Recorder) {
		r := b.NewRecorderWithOptions(scheme.Scheme, controller, events.RecorderOptions{DistinctNotes: 10})
		r.AnnotatedEventf(pod, nil, map[string]string{"a": "1"}, corev1.EventTypeNormal, "Pulled", "Pull", "one")
		r.WithLogger(klog.Background()).Eventf(pod, nil, corev1.EventTypeNormal, "Pulled", "Pull", "two")
		list := b.Events()
		require.Len(t, list, 2)
		assert.Equal(t, map[string]string{"a": "1"}, list[0].Annotations)
		assert.Equal(t, "two", list[1].Note)
	})
}

func TestConcurrentRecorders(t *testing.T) {
	inAndOut(t, func(t *testing.T, b *Broadcaster, recorder events.Recorder) {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 100 {
					emit(recorder)
				}
			})
		}
		wg.Wait()
		b.Advance(6 * time.Minute)
		assertSeries(t, b, series.Finished, 800)
	})
}

func TestBroadcastersHaveTheirOwnTime(t *testing.T) {
	a, b := NewBroadcaster(t), NewBroadcaster(t)
	a.Advance(time.Hour)
	assert.Equal(t, time.Hour, a.Now().Sub(b.Now()))
}

// A controller may outlive its test.
func TestCallsAfterTheTestDoNothing(t *testing.T) {
	var b *Broadcaster
	var recorder events.Recorder
	t.Run("ends", func(t *testing.T) {
		b = NewBroadcaster(t)
		recorder = b.NewRecorder(scheme.Scheme, controller)
	})
	late := b.NewRecorder(scheme.Scheme, controller)
	for _, r := range []events.EventRecorder{recorder, recorder.WithLogger(klog.Background()), late, late.WithLogger(klog.Background())} {
		emit(r)
	}
	b.Advance(time.Hour)
	assert.Empty(t, b.Events())
	assert.Zero(t, b.Stats().Occurrences)
}

func TestOnDropIsCalledBeforeEventfReturns(t *testing.T) {
	dropped := 0
	b := NewBroadcasterWithOptions(t, events.Options{OnDrop: func(d events.Drop) { dropped += d.Count }})
	b.NewRecorder(scheme.Scheme, controller).Eventf(nil, nil, corev1.EventTypeNormal, "Pulled", "Pull", "")
	assert.Equal(t, 1, dropped)
}
