package events

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestStartTwice(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		writer := w.broadcaster.writer.Load()
		require.ErrorContains(t, w.broadcaster.StartRecordingToSinkWithContext(t.Context()), "started already")
		w.broadcaster.StartRecordingToSink(nil)
		assert.Len(t, w.logs.with("Cannot record events", "started already"), 1)
		assert.Same(t, writer, w.broadcaster.writer.Load())
		w.emit(0)
		w.flush(t)
		assert.EqualValues(t, 1, countOf(w.server.only(t)))
	})
}

func TestStartWithoutASink(t *testing.T) {
	w := newWorld(t, Options{})
	w.broadcaster.sink = nil
	require.ErrorContains(t, w.broadcaster.StartRecordingToSinkWithContext(t.Context()), "no sink")
	w.emit(0)
	w.broadcaster.Shutdown()
	w.assertAccounted(t)
}

// Options that cannot be used are said at the start. What is emitted is counted
// all the same.
func TestStartWithInvalidOptions(t *testing.T) {
	w := newWorld(t, Options{Workers: -1, ClusterNamespace: "here"})
	err := w.broadcaster.StartRecordingToSinkWithContext(t.Context())
	require.ErrorContains(t, err, "cannot start")
	require.ErrorContains(t, err, "Workers is negative: -1")
	require.ErrorContains(t, err, `ClusterNamespace is "here"`)
	w.emit(0)
	w.broadcaster.Shutdown()
	assert.Equal(t, map[DropReason]uint64{DropShutdown: 1}, w.broadcaster.Stats().Dropped)
	assert.Empty(t, w.server.log())
	w.assertAccounted(t)
}

// What was emitted before the start is written then, whole.
func TestEmittingBeforeTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		for range 3 {
			for i := range 20 {
				w.emit(i)
			}
		}
		time.Sleep(time.Hour)
		assert.Equal(t, 20, w.broadcaster.Stats().Tracked, "nothing is forgotten before it is written")
		w.start(t)
		w.flush(t)
		assert.Len(t, w.server.list(), 20)
		assert.EqualValues(t, 60, w.server.delivered())
		w.assertAccounted(t)
	})
}

func TestStartRecordingToSinkEndsWithItsChannel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		stop := make(chan struct{})
		w.broadcaster.StartRecordingToSink(stop)
		w.emit(0)
		close(stop)
		time.Sleep(DefaultShutdownTimeout)
		synctest.Wait()
		assert.EqualValues(t, 1, countOf(w.server.only(t)))
		w.broadcaster.writer.Load().goroutines.Wait()
	})
}

// A broadcaster that is never started, and its recorders, are garbage like any
// other: nothing runs. A bubble does not end well while there is a goroutine in
// it, and here is no Shutdown that would have ended one.
func TestNoGoroutineBeforeTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBroadcaster(newServer())
		recorder := b.NewRecorder(testScheme(), controller)
		for i := range 100 {
			recorder.Eventf(testPod(i), nil, "Normal", "Tested", "Testing", "note")
		}
		assert.Equal(t, 100, b.Stats().Tracked)
	})
}
