package events

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"github.com/eventseries/eventseries/internal/heartbeat"
	"github.com/eventseries/eventseries/internal/tracker"
)

// runDeadlines runs a loop of deadlines until the test ends.
func runDeadlines(t *testing.T, es *entries, intervals heartbeat.Intervals, due func(*tracker.Entry, heartbeat.Due)) *deadlines {
	t.Helper()
	d := &deadlines{clock: clock.RealClock{}, intervals: intervals, table: es.table, due: due, wake: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); d.run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return d
}

// A deadline that is earlier than the one which the loop sleeps for wakes it.
func TestDeadlinesEarlierOneWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		es := newEntries()
		es.now = time.Now()
		es.table = tracker.NewTable(tracker.Options{}, es.now)
		start := es.now
		var got []string
		var d *deadlines
		d = runDeadlines(t, es, heartbeat.Intervals{First: time.Minute}, func(e *tracker.Entry, due heartbeat.Due) {
			got = append(got, fmt.Sprint(e.Key().Regarding.Name, " ", due, " ", time.Since(start)))
			d.remove(e)
			es.table.Expire(e, time.Now().Add(time.Hour)) // ends it, whatever was due
		})
		synctest.Wait() // it sleeps without a deadline
		late := es.news(t, corev1.EventTypeNormal, "late")
		es.write(t, late)
		d.schedule(late)
		synctest.Wait() // it sleeps for the late one
		early := es.series(t, corev1.EventTypeNormal, "early")
		d.schedule(early)
		time.Sleep(time.Hour)
		synctest.Wait()
		assert.Equal(t, []string{"early Heartbeat 1m0s", "late Forget 6m0s"}, got)
	})
}

// Many that are due at once are taken in batches, and the lock is not held while
// something is done about them.
func TestDeadlinesBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		es := newEntries()
		es.now = time.Now()
		es.table = tracker.NewTable(tracker.Options{}, es.now)
		const n = 3*dueBatch + 1
		calls, free := 0, 0
		var d *deadlines
		d = runDeadlines(t, es, heartbeat.Intervals{}, func(e *tracker.Entry, due heartbeat.Due) {
			assert.Equal(t, heartbeat.Forget, due)
			calls++
			if d.mu.TryLock() {
				free++
				d.mu.Unlock()
			}
			es.table.Expire(e, time.Now())
		})
		for i := range n {
			e := es.news(t, corev1.EventTypeNormal, fmt.Sprint(i))
			es.write(t, e)
			d.schedule(e)
		}
		time.Sleep(heartbeat.DefaultFinish - time.Nanosecond)
		synctest.Wait()
		assert.Zero(t, calls, "nothing is early")
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		assert.Equal(t, n, calls)
		assert.Equal(t, n, free)
		assert.Zero(t, d.queue.Len())
	})
}

// A deadline that has been moved by occurrences does nothing when it comes.
func TestDeadlinesMove(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		w.emit(0)
		for range 10 {
			time.Sleep(5 * time.Minute)
			w.emit(0)
			assert.Equal(t, 1, w.broadcaster.Stats().Tracked)
		}
		time.Sleep(6*time.Minute - time.Second)
		assert.Equal(t, "Ongoing", stateOf(w.server.only(t)))
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Equal(t, "Finished", stateOf(w.server.only(t)))
		assert.Zero(t, w.broadcaster.Stats().Tracked)
		assert.Zero(t, w.broadcaster.deadlines.queue.Len())
	})
}

// What gives way to something else leaves no deadline behind, or a stream of
// distinct events would make the queue grow.
func TestDeadlinesGoWithTheirSeries(t *testing.T) {
	inBubble(t, Options{Capacity: 10}, func(t *testing.T, w *world) {
		for i := range 100 {
			w.emit(i)
			synctest.Wait()
		}
		assert.Equal(t, 10, w.broadcaster.Stats().Tracked)
		assert.Equal(t, 10, w.broadcaster.deadlines.queue.Len())
	})
}
