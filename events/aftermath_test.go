package events

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// What waits is written within the times that docs/oncall.md promises, in one namespace and in
// many.
func TestAfterAFault(t *testing.T) {
	for _, tt := range []struct {
		name     string
		err      error
		lasts    time.Duration
		promised time.Duration
	}{
		{"500", statusError(500, 0), 30 * time.Minute, 3 * time.Minute},
		{"500", statusError(500, 0), 3 * time.Hour, 3 * time.Minute},
		{"429", statusError(429, 0), 3 * time.Hour, 3 * time.Minute},
		{"403", statusError(403, 0), 50 * time.Minute, 6 * time.Minute},
		{"403", statusError(403, 0), 170 * time.Minute, 6 * time.Minute}, // what is dropped at the end of an hour does not occur again
	} {
		for _, namespaces := range []int{1, 50} {
			runInBubble(t, fmt.Sprint(tt.name, " ", tt.lasts, " ", namespaces), Options{}, func(t *testing.T, w *world) {
				w.server.script(always(tt.err))
				for range tt.lasts / time.Minute {
					for i := range 200 {
						w.emitIn(fmt.Sprint("ns-", i%namespaces), "Normal", i)
					}
					time.Sleep(time.Minute)
				}
				assert.Empty(t, w.server.list())
				w.server.script(nil)
				over := time.Now()
				for time.Since(over) < tt.promised && w.broadcaster.Stats().Waiting > 0 {
					time.Sleep(time.Second)
				}
				t.Log("after", time.Since(over))
				assert.Zero(t, w.broadcaster.Stats().Waiting)
				assert.Len(t, w.server.list(), 200)
			})
		}
	}
}
