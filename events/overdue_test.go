package events

import (
	"bytes"
	"context"
	"regexp"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// deafTime is how long it takes until a sink that does not return is done
// without.
const deafTime = DefaultRequestTimeout + overdueGrace

// deaf has the first n requests, or all if n is negative, block until heard is
// called, whatever becomes of their contexts.
func deaf(n int) (answer func(context.Context, request) error, heard func()) {
	var calls atomic.Int32
	wait := make(chan struct{})
	answer = func(context.Context, request) error {
		if n < 0 || int(calls.Add(1)) <= n {
			<-wait
		}
		return nil
	}
	return answer, sync.OnceFunc(func() { close(wait) })
}

// A sink that does not return when its time is over holds up its own series and
// no other.
func TestSinkThatDoesNotReturnHoldsUpNobodyElse(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		answer, heard := deaf(DefaultWorkers)
		defer heard()
		w.server.script(answer)
		for i := range 20 {
			w.emit(i)
		}
		time.Sleep(deafTime - 1)
		assert.Empty(t, w.server.list(), "every worker has one")
		time.Sleep(time.Second)
		assert.Len(t, w.server.list(), 20-DefaultWorkers)
		assert.Len(t, w.logs.with("A call of the sink does not return", `"since"="2000-01-01T00:00:00.000Z"`, `"waiting"=`), 1)

		// Its series waits for it: what it does late would come out of order.
		for i := range 20 {
			w.emit(i)
		}
		time.Sleep(time.Hour)
		heard()
		w.flush(t)
		assert.Len(t, w.server.list(), 20)
		w.server.assertNoProblems(t)
		assert.Len(t, w.logs.with("A call of the sink has returned after all", `"after"="1h`), 1)
		assert.Zero(t, w.broadcaster.writer.Load().overdue.Load())
	})
}

// Nor does it hold up what waits for the end of a pause.
func TestProbeThatDoesNotReturn(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		w.server.script(once(statusError(429, 0)))
		w.emit(0)
		synctest.Wait()
		for i := range 20 {
			w.emit(i)
		}
		answer, heard := deaf(1)
		defer heard()
		w.server.script(answer)
		time.Sleep(pauseFirst + deafTime - 1)
		assert.Len(t, w.server.log(), 2, "the probe is under way")
		time.Sleep(2 * time.Second)
		assert.Len(t, w.server.list(), 19)
		assert.Zero(t, w.broadcaster.Stats().PausedUntil)
		heard()
		w.flush(t)
		assert.Len(t, w.server.list(), 20)
	})
}

// Nor does a list that takes for ever.
func TestListThatDoesNotReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		var calls atomic.Int32
		forever := make(chan struct{})
		w := newWorldOn(t, s, listFunc{s, func() error {
			if calls.Add(1) == 1 {
				return statusError(429, 0)
			}
			<-forever
			return nil
		}}, Options{})
		w.start(t)
		time.Sleep(2 * pauseFirst)
		for i := range 20 {
			w.emit(i)
		}
		synctest.Wait()
		assert.EqualValues(t, 2, calls.Load())
		assert.Empty(t, s.log(), "the list is the probe")
		time.Sleep(deafTime)
		assert.Len(t, s.list(), 20)
		close(forever)
		w.broadcaster.Shutdown()
		s.assertNoProblems(t)
	})
}

// listFunc is a server whose list is empty, or an error.
type listFunc struct {
	*server
	answer func() error
}

func (l listFunc) List(context.Context, string, metav1.ListOptions) (*eventsv1.EventList, error) {
	return &eventsv1.EventList{}, l.answer()
}

// If no call returns, there is an end to the calls that are made, and when they
// all return there are no more workers than there were.
func TestSinkOfWhichNothingReturns(t *testing.T) {
	inBubble(t, Options{QPS: -1}, func(t *testing.T, w *world) {
		answer, heard := deaf(-1)
		defer heard()
		w.server.script(answer)
		synctest.Wait()
		atRest := goroutines(t)
		for i := range 200 {
			w.emit(i)
		}
		time.Sleep(24 * time.Hour)
		assert.Len(t, w.server.log(), 2*DefaultWorkers)
		assert.Equal(t, atRest+DefaultWorkers, goroutines(t))

		var now, most atomic.Int32
		w.server.script(func(context.Context, request) error {
			n := now.Add(1)
			for before := most.Load(); n > before && !most.CompareAndSwap(before, n); before = most.Load() {
			}
			time.Sleep(time.Second)
			now.Add(-1)
			return nil
		})
		heard()
		w.flush(t)
		synctest.Wait()
		assert.Len(t, w.server.list(), 200)
		assert.EqualValues(t, DefaultWorkers, most.Load())
		assert.Equal(t, atRest, goroutines(t))
	})
}

// goroutines counts those of the bubble that the caller is in. Those that other tests
// have left behind may end meanwhile, and are none of its business.
func goroutines(t *testing.T) int {
	t.Helper()
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	bubble := regexp.MustCompile(`, synctest bubble \d+\]:\n`)
	own := bubble.Find(stacks) // the caller's is the first
	require.NotNil(t, own, "%.100s", stacks)
	return bytes.Count(stacks, own)
}

// A sink that does not return is no reason for Shutdown not to.
func TestShutdownWhileCallsAreOverdue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.start(t)
		answer, heard := deaf(DefaultWorkers)
		w.server.script(answer)
		for i := range 20 {
			w.emit(i)
		}
		time.Sleep(2 * deafTime)
		start := time.Now()
		w.broadcaster.Shutdown()
		assert.LessOrEqual(t, time.Since(start), DefaultShutdownTimeout)
		assert.Equal(t, map[DropReason]uint64{DropShutdown: DefaultWorkers}, w.broadcaster.Stats().Dropped)
		heard()
		synctest.Wait()
		assert.EqualValues(t, 20, w.server.delivered(), "what was said to be lost got there after all")
	})
}
