package controllerruntime

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/eventseries/eventseries/compat"
	"github.com/eventseries/eventseries/events"
)

// withLegacy is the line that changes in a program of the legacy recorder.
func (w *world) withLegacy(opts ctrl.Options, to *events.Broadcaster) ctrl.Options {
	opts.EventBroadcaster = compat.NewBroadcasterFor(to, compat.Options{}) //nolint:staticcheck // this is what is tested
	return opts
}

// legacyRecorder is what legacy users ask a manager for.
func legacyRecorder(mgr manager.Manager, name string) record.EventRecorder {
	return mgr.GetEventRecorderFor(name) //nolint:staticcheck // this is what is tested
}

// Legacy users of two managers that have one broadcaster. No manager ends what it
// does not own, so what is emitted after they have ended is written as well.
func TestLegacyUsersOfTwoManagers(t *testing.T) {
	const name, each = "example.com/legacy", 500
	w := newWorld(t)
	object := w.object("one")
	broadcaster := w.legacyBroadcaster()

	var stops []func()
	var recorders []record.EventRecorder
	for i := range 2 {
		opts := ctrl.Options{}
		opts.EventBroadcaster = broadcaster //nolint:staticcheck // this is what is tested
		mgr := w.manager(opts)
		recorder := legacyRecorder(mgr, name)
		emitted := make(chan struct{})
		require.NoError(t, mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
			defer close(emitted)
			for range each {
				recorder.Event(object, corev1.EventTypeWarning, "Failed", "it failed")
			}
			recorder.Eventf(object, corev1.EventTypeNormal, "Created", "created job %d", i)
			recorder.AnnotatedEventf(object, map[string]string{"example.com/a": "b"}, corev1.EventTypeNormal, "Annotated", "with %s", "annotations")
			return nil
		})))
		stops = append(stops, w.run(mgr))
		recorders = append(recorders, recorder)
		w.waitFor("emitting", emitted)
	}
	want := map[string]int{"it failed": 2 * each, "created job 0": 1, "created job 1": 1, "with annotations": 2}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, broadcaster.Events().Flush(ctx))
	assert.Equal(t, want, w.counts(name))
	for _, event := range w.written(name) {
		assert.Equal(t, event.Reason, event.Action, "the reason stands in")
		assert.Equal(t, event.Reason == "Annotated", event.Annotations["example.com/a"] == "b")
	}

	// People who look through core/v1 see the same.
	list, err := w.clients.CoreV1().Events(w.namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=Failed"})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	require.NotNil(t, list.Items[0].Series)
	assert.EqualValues(t, 2*each, list.Items[0].Series.Count)
	assert.Equal(t, object.UID, list.Items[0].InvolvedObject.UID)

	for i, stop := range stops {
		stop()
		for n, recorder := range recorders {
			note := fmt.Sprintf("manager %d has ended, says %d", i, n)
			recorder.Event(object, corev1.EventTypeNormal, "Ended", note)
			want[note] = 1
		}
	}
	broadcaster.Shutdown()
	assert.Equal(t, want, w.counts(name))
	assert.Empty(t, broadcaster.Events().Stats().Dropped)
}
