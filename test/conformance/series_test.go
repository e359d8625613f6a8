package conformance

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

func TestWhatIsIsomorphic(t *testing.T) {
	base := func() emission {
		return emission{regarding: pod("a"), related: pod("b"), eventtype: "Normal", reason: "Tested", action: "Testing", note: "note"}
	}
	for name, tt := range map[string]struct {
		change     func(e *emission)
		isomorphic bool
	}{
		"nothing": {func(*emission) {}, true},
		"note":    {func(e *emission) { e.note = "another note" }, true},
		"annotations": {func(e *emission) {
			e.annotations = map[string]string{"example.com/a": "b"}
		}, true},
		"regarding":   {func(e *emission) { e.regarding = pod("c") }, false},
		"its UID":     {func(e *emission) { e.regarding.(*corev1.ObjectReference).UID = "uid-2" }, false},
		"its part":    {func(e *emission) { e.regarding.(*corev1.ObjectReference).FieldPath = "spec.containers{main}" }, false},
		"related":     {func(e *emission) { e.related = pod("c") }, false},
		"no related":  {func(e *emission) { e.related = nil }, false},
		"type":        {func(e *emission) { e.eventtype = "Warning" }, false},
		"reason":      {func(e *emission) { e.reason = "Failed" }, false},
		"action":      {func(e *emission) { e.action = "Stopping" }, false},
		"API version": {func(e *emission) { e.regarding.(*corev1.ObjectReference).APIVersion = "v2" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			withBoth(t, func(t *testing.T, p *program) {
				base().emit(p.recorder)
				time.Sleep(time.Second)
				e := base()
				tt.change(&e)
				e.emit(p.recorder)
				synctest.Wait()
				stored := p.stored(t)
				if !tt.isomorphic {
					require.Len(t, stored, 2)
					assert.Nil(t, stored[0].Series)
					assert.Nil(t, stored[1].Series)
					return
				}
				require.Len(t, stored, 1)
				require.NotNil(t, stored[0].Series)
				assert.EqualValues(t, 2, stored[0].Series.Count)
			})
		})
	}
}
