package controllerruntime

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/eventseries/eventseries/compat"
	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

var _ manager.Manager = (*Manager)(nil)

// newManager is manager for the one that the documentation shows.
func (w *world) newManager(opts ctrl.Options, to *events.Broadcaster) *Manager {
	w.t.Helper()
	mgr, err := NewManager(apiserver.Config(w.t), w.options(opts), to)
	require.NoError(w.t, err)
	return mgr
}

// What asks the manager for recorders gets those of the broadcaster, and all has
// been written when the manager has returned.
func TestRecordersOfAManager(t *testing.T) {
	for name, opts := range map[string]events.Options{
		"started with the manager": {},
		"started with the leader":  {Scope: events.SameController, ReportingInstance: "replica-1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			broadcaster := w.broadcaster(opts)
			mgr := w.newManager(w.electing(ctrl.Options{}), broadcaster)
			recorder, legacy := mgr.GetEventRecorder("example.com/wrapped"), legacyRecorder(mgr, "example.com/wrapped")
			r := newReconciler(t, mgr, func(object *corev1.ConfigMap) {
				recorder.Eventf(object, nil, corev1.EventTypeNormal, "New", "Testing", "from the recorder")
				legacy.Event(object, corev1.EventTypeNormal, "Old", "from the legacy recorder")
			})
			annotated, ok := recorder.(events.AnnotatedEventRecorder)
			require.True(t, ok)
			object := w.object("one")
			annotated.AnnotatedEventf(object, nil, map[string]string{"example.com/a": "b"}, corev1.EventTypeNormal, "Noted", "Testing", "before the start")
			stop := w.run(mgr)
			w.waitFor("the loop", r.looping)
			stop()

			emitted := int(r.emitted.Load())
			assert.Equal(t, map[string]int{
				"from the recorder":        emitted,
				"from the legacy recorder": emitted,
				"before the start":         1,
			}, w.counts("example.com/wrapped"))
			assert.Len(t, w.written(compat.LeaderElection), 2)
			stats := broadcaster.Stats()
			assert.EqualValues(t, 2*emitted+1+2, stats.Occurrences)
			assert.Empty(t, stats.Dropped)
		})
	}
}

// What ctrl.NewManager says is not hidden.
func TestNewManagerFails(t *testing.T) {
	_, err := NewManager(nil, ctrl.Options{}, events.NewBroadcaster(nil))
	assert.Error(t, err)
}
