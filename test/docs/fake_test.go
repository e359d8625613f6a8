package docs

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/events/eventstest"
)

var backup = job

// Reconciler is a reconciler under test.
type Reconciler struct {
	Recorder events.EventRecorder
}

func reconcile(_ *testing.T, r *Reconciler) {
	r.Recorder.Eventf(backup, nil, corev1.EventTypeWarning, "QuotaExceeded", "TakeSnapshot", "snapshot of %s: 403", volume.Name)
}

func TestEventstestRecorder(t *testing.T) {
	recorder := eventstest.NewRecorder(t)
	reconciler := &Reconciler{Recorder: recorder} // recorder.Legacy() for call sites of tools/record
	reconcile(t, reconciler)
	recorder.Expect(t, eventstest.Want{Regarding: backup, Type: corev1.EventTypeWarning, Reason: "QuotaExceeded"})
}
