package events

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/eventseries/eventseries/internal/schedule"
)

func TestStats(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		assertFields(t, Stats{
			Running:  true,
			Reasons:  []ReasonStats{},
			Capacity: defaultCapacity,
			Dropped:  map[DropReason]uint64{},
		}, w.broadcaster.Stats())
		for range 3 {
			w.emit(0)
			w.emit(1)
			time.Sleep(time.Second)
		}
		w.recorder.Eventf(nil, nil, "Normal", "Tested", "Testing", "note")
		w.flush(t)
		w.recorder.Eventf(testPod(2), nil, "Normal", "Retested", "Testing", "note")
		w.flush(t)
		synctest.Wait() // the worker has yet to put down what it has written
		stats := w.broadcaster.Stats()
		assert.EqualValues(t, 3, requested(stats, "create", "written"))
		assert.EqualValues(t, 2, requested(stats, "series", "written"))
		assert.EqualValues(t, 2, requested(stats, "flush", "written"))
		assert.EqualValues(t, 7, requested(stats, "", ""))
		stats.Requests = nil
		assert.Len(t, stats.Reasons, 2)
		stats.Reasons = nil
		assertFields(t, Stats{
			Running:     true,
			Occurrences: 8,
			Tracked:     3,
			Singletons:  1,
			Ongoing:     2,
			Capacity:    defaultCapacity,
			Dropped:     map[DropReason]uint64{DropInvalidObject: 1},
		}, stats)

		time.Sleep(10 * time.Minute)
		stats = w.broadcaster.Stats()
		assert.Equal(t, 3, stats.Tracked)
		assert.Equal(t, 3, stats.Ended)
		assert.EqualValues(t, 2, requested(stats, "finish", "written"))

		// Stats returns copies.
		for i := range stats.Requests {
			stats.Requests[i].Count = 1000
			clear(stats.Requests[i].Buckets)
		}
		stats.Dropped[DropRejected] = 1000
		assert.EqualValues(t, 3, requested(w.broadcaster.Stats(), "create", "written"))
		assert.NotContains(t, w.broadcaster.Stats().Dropped, DropRejected)
	})
}

func TestStatsWaiting(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		w.server.script(always(statusError(500, 0)))
		w.emit(0)
		time.Sleep(10 * time.Second)
		w.emit(1)
		time.Sleep(20 * time.Second)
		stats := w.broadcaster.Stats()
		assert.Equal(t, 2, stats.Waiting)
		assert.Equal(t, 30*time.Second, stats.LongestWait, "however often they were retried")
		assert.Greater(t, requested(stats, "", ""), uint64(4))
		w.broadcaster.Shutdown()
		stats = w.broadcaster.Stats()
		assert.Zero(t, stats.Waiting)
		assert.Zero(t, stats.LongestWait)
	})
}

// assertFields fails the test for each field that differs, and names it.
func assertFields(t *testing.T, want, got Stats) {
	t.Helper()
	for i, field := range reflect.VisibleFields(reflect.TypeFor[Stats]()) {
		want, got := reflect.ValueOf(want).Field(i).Interface(), reflect.ValueOf(got).Field(i).Interface()
		if !assert.ObjectsAreEqual(want, got) && (!reflect.ValueOf(want).IsZero() || !reflect.ValueOf(got).IsZero()) {
			t.Errorf("Stats.%s = %v, want %v", field.Name, got, want)
		}
	}
}

func TestDurations(t *testing.T) {
	b := NewBroadcaster(newServer())
	for _, took := range []time.Duration{0, 5 * time.Millisecond, 6 * time.Millisecond, time.Minute, time.Hour} {
		b.counters.requested("create", "create", schedule.Written, took)
	}
	requests := b.Stats().Requests
	assert.Len(t, requests, 1)
	h := requests[0]
	assert.Equal(t, [3]string{"create", "create", "written"}, [3]string{h.Kind, h.Verb, h.Outcome})
	assert.EqualValues(t, 5, h.Count)
	assert.Equal(t, time.Hour+time.Minute+11*time.Millisecond, h.Duration)
	assert.Len(t, h.Buckets, len(durationBounds))
	for bound, count := range map[time.Duration]int{
		5 * time.Millisecond:  2, // a bound is part of its bucket
		25 * time.Millisecond: 3, 30 * time.Second: 3, time.Minute: 4,
	} {
		assert.EqualValues(t, count, h.Buckets[bound], bound)
	}
}

func TestStatsDurations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLister()
		s.latency = 300 * time.Millisecond
		w := startOn(t, s.server, s, Options{})
		assert.Empty(t, w.broadcaster.Stats().Requests)
		w.emit(0)
		w.flush(t)
		w.server.script(func(ctx context.Context, _ request) error {
			<-ctx.Done()
			return ctx.Err()
		})
		w.emit(0)
		time.Sleep(requestTimeout + time.Millisecond) // it is tried again later
		w.server.script(nil)

		got := make(map[string]RequestStats)
		for _, r := range w.broadcaster.Stats().Requests {
			got[r.Verb] = r
		}
		assert.Len(t, got, 3)
		for _, verb := range []string{"create", "list"} {
			assert.EqualValues(t, 1, got[verb].Count)
			assert.Equal(t, 300*time.Millisecond, got[verb].Duration)
			assert.EqualValues(t, 0, got[verb].Buckets[250*time.Millisecond])
			assert.EqualValues(t, 1, got[verb].Buckets[500*time.Millisecond])
		}
		assert.EqualValues(t, 1, got["patch"].Count)
		assert.Equal(t, requestTimeout, got["patch"].Duration)
	})
}

// The sum of all reasons is that of all occurrences, whatever becomes of them.
func TestReasonsAddUp(t *testing.T) {
	filter := filterOf(t, "reason!=Filtered")
	inBubble(t, Options{Filter: filter, Capacity: 20}, func(t *testing.T, w *world) {
		check := func() {
			stats := w.broadcaster.Stats()
			var occurrences uint64
			ongoing := 0
			for _, r := range stats.Reasons {
				occurrences += r.Occurrences
				ongoing += r.Ongoing
			}
			assert.Equal(t, stats.Occurrences, occurrences)
			assert.Equal(t, stats.Ongoing, ongoing)
		}
		check()
		for i := range 3000 {
			for _, reason := range []string{"Tested", "Filtered", fmt.Sprint("Reason", i%400)} {
				w.recorder.Eventf(testPod(i%7), nil, []string{corev1.EventTypeWarning, corev1.EventTypeNormal}[i%2], reason, "Testing", "note")
			}
			w.recorder.Eventf(testPod(0), nil, "Strange", "Tested", "Testing", "note")
			w.recorder.Eventf(nil, nil, corev1.EventTypeNormal, "Tested", "Testing", "note")
			if i%500 == 0 {
				time.Sleep(time.Hour)
				check()
			}
		}
		check()
		w.broadcaster.Shutdown()
		w.emit(0)
		check()
		stats := w.broadcaster.Stats()
		assert.NotEmpty(t, stats.Dropped[DropTableFull])
		assert.NotZero(t, stats.Filtered)
		assert.True(t, stats.ReasonsLimited)
	})
}
