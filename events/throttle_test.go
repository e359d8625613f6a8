package events

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// No more requests than the burst and what has come in since, and one more for
// each worker: it takes its turn before it takes its work.
func TestRequestRate(t *testing.T) {
	for _, tt := range []struct {
		qps            float32
		burst, workers int
		wantQPS        float64
		wantBurst      int
	}{
		{qps: 0, burst: 0, workers: 0, wantQPS: 50, wantBurst: 100 + 4},
		{qps: 10, burst: 20, workers: 1, wantQPS: 10, wantBurst: 20 + 1},
		{qps: 0.5, burst: 1, workers: 4, wantQPS: 0.5, wantBurst: 1 + 4},
	} {
		t.Run(fmt.Sprint(tt.qps), func(t *testing.T) {
			inBubble(t, Options{QPS: tt.qps, Burst: tt.burst, Workers: tt.workers}, func(t *testing.T, w *world) {
				const n = 400
				start := time.Now()
				for i := range n {
					w.emit(i)
				}
				w.flush(t)
				requests := w.server.log()
				require.Len(t, requests, n)
				for i, r := range requests {
					assert.LessOrEqual(t, float64(i+1), float64(tt.wantBurst)+tt.wantQPS*r.at.Sub(start).Seconds()+0.001)
				}
				// And no fewer: the limit is used.
				assertBetween(t, 0, time.Duration(float64(n-tt.wantBurst+8)/tt.wantQPS*float64(time.Second)), time.Since(start))
			})
		})
	}
}

func TestNoRequestRate(t *testing.T) {
	inBubble(t, Options{QPS: -1}, func(t *testing.T, w *world) {
		start := time.Now()
		for i := range 1000 {
			w.emit(i)
		}
		w.flush(t)
		assert.Len(t, w.server.list(), 1000)
		assert.Zero(t, time.Since(start))
	})
}

// Where the limit binds, what waits is ordered: a Warning does not wait for a
// flood of Normals.
func TestWarningBeforeAFloodOfNormals(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		for i := range 2000 {
			w.emit(i)
		}
		time.Sleep(5 * time.Second)
		warned := time.Now()
		w.emitAs("Warning", 9999)
		time.Sleep(time.Second)
		assertWritten(t, w, "pod-9999.", warned, time.Second)
		w.flush(t)
	})
}

// While 5,000 heartbeats are due at 5 ms each, a new Warning is there in less
// than a second.
func TestWarningBeforeAFloodOfHeartbeats(t *testing.T) {
	const n = 5000
	inBubble(t, Options{QPS: -1, Workers: 1, HeartbeatInterval: 5 * time.Minute, RequestTimeout: 10 * time.Minute}, func(t *testing.T, w *world) {
		for range 2 {
			for i := range n {
				w.emit(i)
			}
		}
		w.flush(t)
		written := w.server.requestsOf("create") + w.server.requestsOf("patch")
		w.server.slow(5 * time.Minute) // the first of them holds up the others, until all are due
		time.Sleep(2 * time.Minute)
		w.server.slow(5 * time.Millisecond)
		time.Sleep(2 * time.Minute)
		for i := range n {
			w.emit(i)
		}
		time.Sleep(time.Minute + 40*time.Second)
		require.Less(t, len(w.server.log()), written+n/2, "most heartbeats are still to come")
		require.Greater(t, w.broadcaster.Stats().Queue, n/2)

		warned := time.Now()
		w.emitAs("Warning", 9999)
		time.Sleep(time.Second)
		assertWritten(t, w, "pod-9999.", warned, time.Second)
		time.Sleep(time.Minute)
		assert.GreaterOrEqual(t, w.broadcaster.Stats().Writes[WriteKey{"heartbeat", "written"}], uint64(n))
		w.server.slow(0)
	})
}

// assertWritten fails the test unless a request for the Event whose name begins
// like this was made in less than a time after since.
func assertWritten(t *testing.T, w *world, prefix string, since time.Time, within time.Duration) {
	t.Helper()
	for _, r := range w.server.log() {
		if len(r.name.Name) > len(prefix) && r.name.Name[:len(prefix)] == prefix {
			assert.Less(t, r.at.Sub(since), within)
			return
		}
	}
	assert.Fail(t, "not written", prefix)
}
