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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/series"
)

const controller = "example.com/kubelet"

// inAndOut runs a test as it is, and in a bubble.
func inAndOut(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	t.Run("outside", test)
	t.Run("in a bubble", func(t *testing.T) { synctest.Test(t, test) })
}

func emit(r events.EventRecorder) {
	r.Eventf(pod, nil, corev1.EventTypeWarning, "Unhealthy", "KillContainer", "probe failed")
}

func TestLifeOfASeries(t *testing.T) {
	inAndOut(t, func(t *testing.T) {
		b := NewBroadcaster(t)
		begin := b.Now()
		assert.Equal(t, time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC), begin.UTC())
		recorder := b.NewRecorder(scheme.Scheme, controller)

		emit(recorder)
		require.Len(t, b.Series(), 1)
		assert.Equal(t, series.Singleton, b.Series()[0].State)
		b.Advance(time.Minute)
		emit(recorder)
		require.Len(t, b.Series(), 1)
		assert.Equal(t, series.Ongoing, b.Series()[0].State)
		assert.EqualValues(t, 2, b.Series()[0].Count)
		b.Advance(6*time.Minute - time.Nanosecond)
		assert.Equal(t, series.Ongoing, b.Series()[0].State)
		b.Advance(time.Nanosecond)
		s := b.Series()[0]
		assert.Equal(t, series.Finished, s.State)
		assert.EqualValues(t, 2, s.Count)
		assert.Equal(t, begin.UTC(), s.First.UTC())
		assert.Equal(t, begin.Add(time.Minute).UTC(), s.Last.UTC())
		assert.Equal(t, begin.Add(7*time.Minute), b.Now())
		assert.Len(t, b.Requests(), 3)
		assert.Zero(t, b.Stats().Tracked)

		emit(recorder)
		assert.Len(t, b.Events(), 2, "it begins anew")
		b.Advance(time.Hour)
		assert.Empty(t, b.Events(), "they expire")
	})
}

// A hot loop costs three requests, and two an hour.
func TestHourOfAHotLoop(t *testing.T) {
	inAndOut(t, func(t *testing.T) {
		b := NewBroadcaster(t)
		recorder := b.NewRecorder(scheme.Scheme, controller)
		for range 3600 {
			emit(recorder)
			b.Advance(time.Second)
		}
		b.Advance(6 * time.Minute)
		assert.Equal(t, []string{"create", "patch", "patch", "patch", "patch"}, verbs(b.Requests()))
		assert.Equal(t, map[events.WriteKey]uint64{
			{Kind: "create", Outcome: "written"}: 1, {Kind: "series", Outcome: "written"}: 1,
			{Kind: "heartbeat", Outcome: "written"}: 2, {Kind: "finish", Outcome: "written"}: 1,
		}, b.Stats().Writes)
		assert.EqualValues(t, 3600, b.Series()[0].Count)
	})
}

func verbs(requests []Request) (verbs []string) {
	for _, r := range requests {
		verbs = append(verbs, r.Verb)
	}
	return verbs
}

// The same test makes the same requests at the same times, whatever the scheduler
// does.
func TestRunsAreAlike(t *testing.T) {
	var first []string
	for i := range 20 {
		b := NewBroadcaster(t)
		recorder := b.NewRecorder(scheme.Scheme, controller)
		for minute := range 40 {
			for n := range 10 {
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
		slices.Sort(run) // the table has no order
		if i == 0 {
			first = run
			require.Greater(t, len(run), 40)
		}
		require.True(t, slices.Equal(first, run))
	}
}

func TestTrouble(t *testing.T) {
	inAndOut(t, func(t *testing.T) {
		b := NewBroadcaster(t)
		recorder := b.NewRecorder(scheme.Scheme, controller)
		b.Answer(func(context.Context, Request) error { return apierrors.NewTooManyRequests("slow down", 60) })
		emit(recorder)
		assert.Empty(t, b.Events())
		assert.False(t, b.Stats().PausedUntil.IsZero())
		asked := len(b.Requests())
		b.Advance(59 * time.Second)
		assert.Len(t, b.Requests(), asked, "it pauses")
		for range 10 {
			emit(recorder)
		}
		b.Answer(nil)
		b.Advance(time.Minute)
		require.Len(t, b.Series(), 1)
		assert.EqualValues(t, 11, b.Series()[0].Count, "nothing is lost")
	})
}

// A server that does not answer takes no real time either.
func TestServerThatHangs(t *testing.T) {
	inAndOut(t, func(t *testing.T) {
		b := NewBroadcaster(t)
		recorder := b.NewRecorder(scheme.Scheme, controller)
		b.Answer(func(ctx context.Context, _ Request) error { <-ctx.Done(); return ctx.Err() })
		emit(recorder)
		b.Advance(events.DefaultRequestTimeout - time.Second)
		require.Len(t, b.Requests(), 1)
		require.NoError(t, b.Requests()[0].Err, "it is under way")
		b.Advance(time.Second)
		require.ErrorIs(t, b.Requests()[0].Err, context.DeadlineExceeded)
		b.Answer(func(context.Context, Request) error { time.Sleep(time.Second); return nil })
		b.Advance(time.Minute)
		assert.Len(t, b.Events(), 1)
	})
}

func TestShutdownWritesWhatIsLeft(t *testing.T) {
	inAndOut(t, func(t *testing.T) {
		b := NewBroadcaster(t)
		recorder := b.NewRecorder(scheme.Scheme, controller)
		for range 10 {
			emit(recorder)
			b.Advance(time.Second)
		}
		assert.EqualValues(t, 2, b.Series()[0].Count)
		b.Shutdown()
		assert.EqualValues(t, 10, b.Series()[0].Count)
		assert.Equal(t, series.Ongoing, b.Series()[0].State)
		emit(recorder)
		assert.EqualValues(t, 1, b.Stats().Dropped[events.DropShutdown])
		b.Shutdown()
	})
}

func TestRecordersOfABroadcaster(t *testing.T) {
	inAndOut(t, func(t *testing.T) {
		b := NewBroadcaster(t)
		r := b.NewRecorderWithOptions(scheme.Scheme, controller, events.RecorderOptions{DistinctNotes: 10})
		r.AnnotatedEventf(pod, nil, map[string]string{"a": "1"}, corev1.EventTypeNormal, "Pulled", "Pull", "one")
		r.WithLogger(klog.Background()).Eventf(pod, nil, corev1.EventTypeNormal, "Pulled", "Pull", "two")
		list := b.Events()
		require.Len(t, list, 2)
		assert.Equal(t, map[string]string{"a": "1"}, list[0].Annotations)
		assert.Equal(t, "two", list[1].Note)
	})
}

// Controllers have goroutines of their own.
func TestRecordersMayBeUsedConcurrently(t *testing.T) {
	inAndOut(t, func(t *testing.T) {
		b := NewBroadcaster(t)
		recorder := b.NewRecorder(scheme.Scheme, controller)
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
		require.Len(t, b.Series(), 1)
		assert.EqualValues(t, 800, b.Series()[0].Count)
	})
}

func TestBroadcastersStandBesideEachOther(t *testing.T) {
	a, b := NewBroadcaster(t), NewBroadcaster(t)
	a.Advance(time.Hour)
	assert.Equal(t, time.Hour, a.Now().Sub(b.Now()))
}

// A controller can go on when its test has ended.
func TestNothingHappensAfterTheEndOfTheTest(t *testing.T) {
	var b *Broadcaster
	var recorder events.Recorder
	t.Run("ends", func(t *testing.T) {
		b = NewBroadcaster(t)
		recorder = b.NewRecorder(scheme.Scheme, controller)
	})
	emit(recorder)
	emit(recorder.WithLogger(klog.Background()))
	late := b.NewRecorder(scheme.Scheme, controller)
	emit(late.WithLogger(klog.Background()))
	b.Advance(time.Hour)
	assert.Empty(t, b.Events())
	assert.Zero(t, b.Stats().Occurrences)
}

func TestProblemsAreSeenInDrops(t *testing.T) {
	dropped := 0
	b := NewBroadcasterWithOptions(t, events.Options{OnDrop: func(d events.Drop) { dropped += d.Count }})
	b.NewRecorder(scheme.Scheme, controller).Eventf(nil, nil, corev1.EventTypeNormal, "Pulled", "Pull", "")
	assert.Equal(t, 1, dropped, "it was called before Eventf returned")
}

func TestPrepare(t *testing.T) {
	opts, err := prepare(events.Options{})
	require.NoError(t, err)
	assert.Equal(t, events.Options{Workers: 1, SkipList: true}, opts)
	opts, err = prepare(events.Options{Workers: 3, FinishAfter: time.Minute})
	require.NoError(t, err)
	assert.Equal(t, events.Options{Workers: 3, FinishAfter: time.Minute, SkipList: true}, opts)
	_, err = prepare(events.Options{Clock: clock.RealClock{}})
	require.ErrorContains(t, err, "eventstest: Options.Clock is set")
	_, err = prepare(events.Options{Capacity: -1})
	require.ErrorContains(t, err, "Capacity is negative: -1")
}
