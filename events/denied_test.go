package events

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
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
