package events

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// docs/rbac describes how to turn events off in an emergency: withdraw the permission.
func TestPermissionIsASwitch(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		const series = 20
		hour := func() (requests int) {
			before := len(w.server.log())
			for range 60 {
				for i := range series {
					w.emit(i)
				}
				time.Sleep(time.Minute)
			}
			return len(w.server.log()) - before
		}
		hour()
		w.server.script(always(apierrors.NewForbidden(eventResource, "x", errors.New("no role"))))
		for range 5 {
			// One request probes after 1, 2, 4 seconds and so on, and then every two
			// minutes, with up to a fifth on top.
			assertBetween(t, 25, 37, hour())
			stats := w.broadcaster.Stats()
			assert.Equal(t, series, stats.Tracked)
			assert.LessOrEqual(t, stats.Waiting, series)
		}
		stats := w.broadcaster.Stats()
		assert.Len(t, stats.Dropped, 1)
		// Each of the last two hours may still reach the server.
		assertBetween(t, 3*60*series, 5*60*series, int(stats.Dropped[DropDenied]))

		w.server.script(nil)
		time.Sleep(3 * time.Minute)
		assert.Zero(t, w.broadcaster.Stats().Waiting)
		assert.Equal(t, stats.Dropped, w.broadcaster.Stats().Dropped)
	})
}

// One denial can be a token that expires, or an object of its own. A shutdown drops
// nothing else.
func TestShutdownAfterOneDenial(t *testing.T) {
	denied := "pod-0."
	for name, tt := range map[string]struct {
		answer func(context.Context, request) error
		want   map[DropReason]uint64
	}{
		"token": {once(statusError(401, 0)), map[DropReason]uint64{}},
		"object": {func(_ context.Context, r request) error {
			if strings.HasPrefix(r.Name, denied) {
				return statusError(403, 0)
			}
			return nil
		}, map[DropReason]uint64{DropDenied: 1}},
	} {
		runInBubble(t, name, Options{}, func(t *testing.T, w *world) {
			w.server.script(tt.answer)
			for pod := range 100 {
				w.emit(pod)
			}
			begin := time.Now()
			w.broadcaster.Shutdown()
			assert.Less(t, time.Since(begin), time.Second)
			assert.Equal(t, tt.want, w.broadcaster.Stats().Dropped)
		})
	}
}

// A shutdown asks twice in each namespace, and waits for no permission.
func TestShutdownDoesNotWaitForPermission(t *testing.T) {
	for _, verb := range []string{"create", "patch"} {
		runBubble(t, verb, func(t *testing.T) {
			w := newWorld(t, Options{})
			w.start(t)
			if verb == "patch" {
				for pod := range 100 {
					w.emit(pod)
				}
				w.flush(t)
			}
			w.server.script(func(_ context.Context, r request) error {
				time.Sleep(5 * time.Millisecond)
				if r.Namespace == "ns" && r.Verb == verb {
					return statusError(403, 0)
				}
				return nil
			})
			for range 2 {
				for pod := range 100 {
					w.emit(pod)
				}
				time.Sleep(time.Minute)
			}
			other := testPod(0)
			other.Namespace = "other"
			w.recorder.Eventf(other, nil, "Normal", "Tested", "Testing", "note")
			begin, before := time.Now(), len(w.server.log())
			w.broadcaster.Shutdown()
			assert.Less(t, time.Since(begin), time.Second)
			assert.LessOrEqual(t, len(w.server.log())-before, 1+2*defaultWorkers)
			assert.Equal(t, map[DropReason]uint64{DropDenied: 200}, w.broadcaster.Stats().Dropped)
			assert.Len(t, slices.DeleteFunc(w.server.list(), func(e *eventsv1.Event) bool { return e.Namespace != "other" }), 1)
			w.assertAccounted(t)
		})
	}
}
