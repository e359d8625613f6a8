package events

import (
	"context"
	"strconv"
	"testing"
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

// A namespace is deleted with its Events while a loop goes on. Its end is due minutes later.
func TestNamespaceIsDeletedWithALoop(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		w.unaccounted = true // what was written is gone as well
		for range 5 {
			w.emit(0)
		}
		w.flush(t)
		w.server.remove()
		w.server.script(func(_ context.Context, r request) error {
			if r.Verb == "create" {
				return apierrors.NewNotFound(corev1.Resource("namespaces"), r.Namespace)
			}
			return nil
		})
		time.Sleep(50 * time.Minute)
		assert.Equal(t, map[DropReason]uint64{DropNamespaceTerminating: 5}, w.broadcaster.Stats().Dropped)
		assert.Empty(t, w.logs.with("error"), "nobody needs to do anything")
		w.emit(0)
		w.flush(t)
		assert.Equal(t, map[DropReason]uint64{DropNamespaceTerminating: 6}, w.broadcaster.Stats().Dropped)
	})
}

func assertBetween[T ~int | ~int64](t *testing.T, low, high, got T) {
	t.Helper()
	assert.GreaterOrEqual(t, got, low)
	assert.LessOrEqual(t, got, high)
}
