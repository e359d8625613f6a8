package events

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTakenNamesAreRetriedWithBackOff(t *testing.T) {
	for name, look := range map[string]error{
		"and nothing is there": apierrors.NewNotFound(eventResource, "x"),
		"and a stranger there": nil,
	} {
		runInBubble(t, name, Options{}, func(t *testing.T, w *world) {
			w.server.script(func(_ context.Context, r request) error {
				if r.Verb == "create" {
					return apierrors.NewAlreadyExists(eventResource, "x")
				}
				if look == nil {
					w.server.put(&eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name}})
				}
				return look
			})
			w.emit(0)
			time.Sleep(10 * time.Minute)
			assert.Less(t, len(w.server.log()), 30)
			w.server.script(nil)
			w.server.remove()
			w.flush(t)
			if look == nil {
				assert.Equal(t, map[DropReason]uint64{DropNameTaken: 1}, w.broadcaster.Stats().Dropped)
				assert.Len(t, w.logs.with("Dropped events", "NameTaken"), 1)
				return
			}
			assert.EqualValues(t, 1, countOf(w.server.only(t)))
		})
	}
}

func TestRefusedIsDropped(t *testing.T) {
	err := namespaceTerminating()
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		w.server.script(always(err))
		w.emit(0)
		time.Sleep(2 * time.Minute)
		assert.Len(t, w.server.log(), 1, "not tried again")
		assert.Equal(t, map[DropReason]uint64{DropNamespaceTerminating: 1}, w.broadcaster.Stats().Dropped)
		drops := w.dropped()
		require.Len(t, drops, 1)
		assert.Equal(t, DropNamespaceTerminating, drops[0].Reason)
		assert.Equal(t, 1, drops[0].Count)
		assert.Equal(t, "note", drops[0].Note)
		assert.Equal(t, "pod-0", drops[0].Key.Regarding.Name)
		assert.Len(t, w.logs.with("Dropped events, because their namespace is being deleted", strconv.Quote(err.Error()), "pod-0", `"level"=2`), 1)
	})
}

// A namespace is deleted while controllers emit events about what is in it. Nobody needs to do
// anything, whichever event comes when.
func TestNamespaceIsDeleted(t *testing.T) {
	gone := apierrors.NewNotFound(corev1.Resource("namespaces"), "ns")
	for name, steps := range map[string][]int{ // which pods have events before, in, and after its end
		"before and in":   {0b01, 0b11, 0b00},
		"in":              {0b00, 0b01, 0b00},
		"in and after":    {0b00, 0b01, 0b11},
		"before, after":   {0b01, 0b00, 0b10},
		"always, and new": {0b01, 0b11, 0b111},
	} {
		runInBubble(t, name, Options{}, func(t *testing.T, w *world) {
			w.unaccounted = true // what was written is gone as well
			emit := func(pods int) {
				for range 10 {
					for pod := range 3 {
						if pods&(1<<pod) != 0 {
							w.emit(pod)
						}
					}
					time.Sleep(30 * time.Second)
				}
			}
			emit(steps[0])
			w.server.remove()
			w.server.script(failing("create", namespaceTerminating()))
			emit(steps[1])
			w.server.script(failing("create", gone))
			emit(steps[2])
			time.Sleep(time.Hour)
			stats := w.broadcaster.Stats()
			assert.Equal(t, map[DropReason]uint64{DropNamespaceTerminating: stats.Occurrences}, stats.Dropped)
			assert.Empty(t, w.logs.with("error"))
		})
	}
}

// A sink that cannot write some Events, such as a client for one namespace, is not called for
// ever. What it cannot write is lost, and nothing else.
func TestErrorsOfTheClient(t *testing.T) {
	foreign := fmt.Errorf("can't create an event with namespace '%v' in namespace '%v'", "bad", "good")
	for name, tt := range map[string]struct {
		fail  func(context.Context, request) error
		pods  int // in the namespace
		lost  int
		loops bool
	}{
		"a namespace":               {fail: failIn(foreign, "bad"), pods: 1, lost: 1},
		"a namespace with a loop":   {fail: failIn(foreign, "bad"), pods: 1, lost: 180, loops: true},
		"a namespace, many objects": {fail: failIn(foreign, "bad"), pods: 20, lost: 20 * 180, loops: true},
		"an object": {fail: func(_ context.Context, r request) error {
			if r.Namespace == "bad" && strings.HasPrefix(r.Name, "pod-0.") {
				return errors.New("message too large")
			}
			return nil
		}, pods: 2, lost: 180, loops: true},
	} {
		runInBubble(t, name, Options{}, func(t *testing.T, w *world) {
			calls, failing := new(atomic.Int32), tt.pods
			if name == "an object" {
				failing = 1
			}
			w.server.script(func(ctx context.Context, r request) error {
				err := tt.fail(ctx, r)
				if err != nil {
					calls.Add(1)
				}
				return err
			})
			for i := range 180 {
				for pod := range tt.pods {
					if i == 0 || tt.loops {
						w.emitIn("bad", "Normal", pod)
					}
				}
				w.emitIn("good", "Normal", i)
				time.Sleep(time.Minute)
			}
			assertBetween(t, 4, 14*failing, int(calls.Load()))
			assertBetween(t, 2, 7, len(w.logs.with(`"error"=`)))
			assertBetween(t, 2, 4, len(w.logs.with("Cannot write events", `"namespace"="bad" "event"=`)))
			assert.Empty(t, w.logs.with(`"verb"=`), "the namespace does not fail")
			assert.Empty(t, w.logs.with("Events are written again"), "nothing has ended")
			assert.Len(t, slices.DeleteFunc(w.server.list(), func(e *eventsv1.Event) bool { return e.Namespace != "good" }), 180)
			w.broadcaster.Shutdown()
			stats := w.broadcaster.Stats()
			assert.EqualValues(t, tt.lost, stats.Dropped[DropRejected]+stats.Dropped[DropShutdown])
			assert.NotZero(t, stats.Dropped[DropRejected])
		})
	}
}

func assertBetween[T ~int | ~int64](t *testing.T, low, high, got T) {
	t.Helper()
	assert.GreaterOrEqual(t, got, low)
	assert.LessOrEqual(t, got, high)
}

// What waits for longer than EventTTL is lost, so no pause is longer.
func TestPauseIsNoLongerThanEventTTL(t *testing.T) {
	const ttl = 20 * time.Minute
	synctest.Test(t, func(t *testing.T) {
		s := newLister()
		s.script(once(statusError(429, math.MaxInt32)))
		w := startOn(t, s.server, s, Options{EventTTL: ttl, Scope: SameController, listLimit: math.MaxInt})
		synctest.Wait()
		s.script(once(statusError(429, math.MaxInt32)))
		w.emit(0)
		time.Sleep(ttl - time.Second)
		assert.Equal(t, 2, s.requestsOf("list")+s.requestsOf("create"))
		time.Sleep(ttl / 4)
		assert.EqualValues(t, 1, requested(w.broadcaster.Stats(), "create", "written"))
		assert.EqualValues(t, 1, requested(w.broadcaster.Stats(), "list", "written"))
		w.broadcaster.Shutdown()
	})
}

// Events about a cluster-scoped object are in the namespace of others, and wait for its pauses.
func TestPauseOfClusterScopedObjects(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		w.server.script(once(statusError(429, 60)))
		w.recorder.Eventf(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}, nil, "Warning", "Tested", "Testing", "note")
		synctest.Wait()
		w.emitIn(metav1.NamespaceSystem, "Warning", 0)
		time.Sleep(59 * time.Second)
		assert.Len(t, w.server.log(), 1)
		assert.Equal(t, metav1.NamespaceSystem, w.broadcaster.Stats().Namespaces[0].Name)
		time.Sleep(10 * time.Second)
		assert.Len(t, w.server.list(), 2)
	})
}
