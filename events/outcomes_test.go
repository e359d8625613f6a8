package events

import (
	"context"
	"errors"
	"io"
	"strconv"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTroubleIsRetried(t *testing.T) {
	for _, err := range []error{
		statusError(500, 0), statusError(502, 0), statusError(503, 0), statusError(504, 0), statusError(408, 0),
		urlError(syscall.ECONNREFUSED), urlError(syscall.ECONNRESET), io.EOF, &apierrors.UnexpectedObjectError{},
	} {
		runInBubble(t, err.Error(), Options{}, func(t *testing.T, w *world) {
			w.server.script(once(err))
			w.emit(0)
			time.Sleep(1200 * time.Millisecond)
			synctest.Wait()
			assert.EqualValues(t, 1, countOf(w.server.only(t)))
			requests := w.server.log()
			require.Len(t, requests, 2)
			assert.Equal(t, requests[0].body, requests[1].body)
			assertBetween(t, time.Second, 1200*time.Millisecond, requests[1].at.Sub(requests[0].at))
			assert.Len(t, w.logs.with("Cannot write events", "will try again"), 1)
			assert.Len(t, w.logs.with("Events are written again"), 1)
		})
	}
}

func TestDeniedIsRetriedWithBackOff(t *testing.T) {
	for _, err := range []error{apierrors.NewUnauthorized("no token"), apierrors.NewForbidden(eventResource, "x", errors.New("no role"))} {
		runInBubble(t, err.Error(), Options{}, func(t *testing.T, w *world) {
			w.server.script(always(err))
			for i := range 10 {
				w.emit(i)
			}
			time.Sleep(time.Hour)
			requests := w.server.log()
			// One request probes after 1, 2, 4 seconds and so on, and then every two
			// minutes, with up to a fifth on top.
			assertBetween(t, 31, 37, len(requests))
			assert.Len(t, w.logs.with("May not write events", strconv.Quote(err.Error()), `"namespace"="ns"`, `"verb"="create"`), 1)
			w.server.script(nil)
			time.Sleep(3 * time.Minute)
			assert.Len(t, w.server.list(), 10)
		})
	}
}

func TestForeignEventLeadsToAUniqueName(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		key := keyOf(0)
		stranger := &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: key.BaseName()}, Note: "mine"}
		w.server.put(stranger)
		w.emit(0)
		w.flush(t)
		requests := w.server.log()
		assert.Equal(t, []string{"create", "patch", "create"}, verbs(requests))
		assert.Equal(t, "{}", requests[1].body)
		assert.Zero(t, requests[2].at.Sub(requests[0].at), "at once")
		list := w.server.list()
		require.Len(t, list, 2)
		assert.Equal(t, stranger, list[0])
		assert.Regexp(t, `^`+key.BaseName()+`\.[0-9a-f]+$`, list[1].Name)
		assert.EqualValues(t, 1, countOf(list[1]))
		assert.Empty(t, w.broadcaster.Stats().Dropped)
	})
}

func TestTakenNamesAreRetriedWithBackOff(t *testing.T) {
	for name, look := range map[string]error{
		"and nothing is there": apierrors.NewNotFound(eventResource, "x"),
		"and a stranger there": nil,
	} {
		runInBubble(t, name, Options{}, func(t *testing.T, w *world) {
			w.server.script(func(_ context.Context, r request) error {
				if r.verb == "create" {
					return apierrors.NewAlreadyExists(eventResource, "x")
				}
				if look == nil {
					w.server.put(&eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: r.name.Namespace, Name: r.name.Name}})
				}
				return look
			})
			w.emit(0)
			time.Sleep(10 * time.Minute)
			assert.Less(t, len(w.server.log()), 30)
			w.server.script(nil)
			w.server.remove()
			w.flush(t)
			assert.EqualValues(t, 1, countOf(w.server.only(t)))
		})
	}
}

func TestRefusedIsDropped(t *testing.T) {
	for _, tt := range []struct {
		name   string
		err    error
		reason DropReason
	}{
		{"400", apierrors.NewBadRequest("bad"), DropRejected},
		{"413", apierrors.NewRequestEntityTooLargeError("limit"), DropRejected},
		{"422", statusError(422, 0), DropRejected},
		{"404", apierrors.NewNotFound(eventResource, "x"), DropNamespaceNotFound},
		{"403 terminating", namespaceTerminating(), DropNamespaceTerminating},
	} {
		runInBubble(t, tt.name, Options{}, func(t *testing.T, w *world) {
			w.server.script(always(tt.err))
			w.emit(0)
			time.Sleep(2 * time.Minute)
			assert.Len(t, w.server.log(), 1, "not tried again")
			assert.Equal(t, map[DropReason]uint64{tt.reason: 1}, w.broadcaster.Stats().Dropped)
			drops := w.dropped()
			require.Len(t, drops, 1)
			assert.Equal(t, tt.reason, drops[0].Reason)
			assert.Equal(t, 1, drops[0].Count)
			assert.Equal(t, "note", drops[0].Note)
			assert.Equal(t, "pod-0", drops[0].Key.Regarding.Name)
			assert.Len(t, w.logs.with("Dropped events", strconv.Quote(tt.err.Error()), string(tt.reason), "pod-0"), 1)
		})
	}
}

func assertBetween[T ~int | ~int64](t *testing.T, low, high, got T) {
	t.Helper()
	assert.GreaterOrEqual(t, got, low)
	assert.LessOrEqual(t, got, high)
}
