package docs

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/events"
)

func TestFakeRecorder(t *testing.T) {
	recorder := events.NewFakeRecorder(100)
	reconciler := &Reconciler{Recorder: recorder}
	reconcile(t, reconciler)
	require.Contains(t, <-recorder.Events, "Warning QuotaExceeded")
}
