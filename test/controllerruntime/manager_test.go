package controllerruntime

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/eventseries/eventseries/compat"
	"github.com/eventseries/eventseries/controllerruntime"
	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// Recorders of the manager emit to the broadcaster, and Start returns after all events
// are written.
func TestManagerProvidesRecorders(t *testing.T) {
	for name, opts := range map[string]events.Options{
		"started with the manager": {},
		"started with the leader":  {Scope: events.SameController, ReportingInstance: "replica-1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			broadcaster := w.broadcaster(apiserver.Config(t), opts)
			mgr, err := controllerruntime.NewManager(apiserver.Config(t), w.electing(w.options(ctrl.Options{})), broadcaster)
			require.NoError(t, err)
			recorder, legacy := mgr.GetEventRecorder("example.com/wrapped"), legacyRecorder(mgr, "example.com/wrapped")
			r := newReconciler(t, mgr, func(object *corev1.ConfigMap) {
				recorder.Eventf(object, nil, corev1.EventTypeNormal, "New", "Testing", "from the recorder")
				legacy.Event(object, corev1.EventTypeNormal, "Old", "from the legacy recorder")
			})
			annotated, ok := recorder.(events.AnnotatedEventRecorder)
			require.True(t, ok)
			annotated.AnnotatedEventf(w.object("one"), nil, map[string]string{"example.com/a": "b"}, corev1.EventTypeNormal, "Noted", "Testing", "before the start")
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
