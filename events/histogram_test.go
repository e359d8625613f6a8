package events

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestDurations(t *testing.T) {
	var d durations
	for _, took := range []time.Duration{0, 5 * time.Millisecond, 6 * time.Millisecond, time.Minute, time.Hour} {
		d.observe(took)
	}
	h := d.histogram()
	assert.EqualValues(t, 5, h.Count)
	assert.Equal(t, time.Hour+time.Minute+11*time.Millisecond, h.Sum)
	assert.Len(t, h.Buckets, len(durationBounds))
	assert.Equal(t, Bucket{Bound: 5 * time.Millisecond, Count: 2}, h.Buckets[0], "a bound is part of its bucket")
	assert.Equal(t, Bucket{Bound: 25 * time.Millisecond, Count: 3}, h.Buckets[1])
	assert.Equal(t, Bucket{Bound: 30 * time.Second, Count: 3}, h.Buckets[len(h.Buckets)-2])
	assert.Equal(t, Bucket{Bound: time.Minute, Count: 4}, h.Buckets[len(h.Buckets)-1])
	assert.True(t, slices.IsSorted(durationBounds[:]))
}

// Each request is measured, whatever becomes of it.
func TestStatsDurations(t *testing.T) {
	inBubble(t, Options{RequestTimeout: 10 * time.Second}, func(t *testing.T, w *world) {
		assert.Empty(t, w.broadcaster.Stats().Durations)
		w.server.slow(300 * time.Millisecond)
		w.emit(0)
		w.flush(t)
		w.server.script(func(ctx context.Context, _ request) error {
			<-ctx.Done()
			return ctx.Err()
		})
		w.emit(0)
		time.Sleep(10*time.Second + time.Millisecond) // it is tried again later
		w.server.script(nil)

		got := w.broadcaster.Stats().Durations
		assert.Len(t, got, 2)
		assert.EqualValues(t, 1, got["create"].Count)
		assert.Equal(t, 300*time.Millisecond, got["create"].Sum)
		assert.Equal(t, []Bucket{{250 * time.Millisecond, 0}, {500 * time.Millisecond, 1}}, got["create"].Buckets[3:5])
		assert.EqualValues(t, 1, got["patch"].Count)
		assert.Equal(t, 10*time.Second, got["patch"].Sum)
	})
}

// So is listing.
func TestStatsDurationsOfLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		w := newWorldOn(t, s, listFunc{server: s, answer: func() error { time.Sleep(2 * time.Second); return nil }}, Options{})
		w.start(t)
		time.Sleep(time.Minute)
		got := w.broadcaster.Stats().Durations["list"]
		assert.EqualValues(t, 1, got.Count)
		assert.Equal(t, 2*time.Second, got.Sum)
		w.broadcaster.Shutdown()
	})
}
