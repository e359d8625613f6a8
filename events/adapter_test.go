package events

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// Recorders of both kinds write through core/v1, which most programs read, or through events.k8s.io/v1.
func TestEventBroadcasterAdapter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		ctx, cancel := context.WithCancel(t.Context())
		a := NewEventBroadcasterAdapterWithContext(ctx, client)
		stop := make(chan struct{})
		defer close(stop)
		a.StartRecordingToSink(stop)
		a.NewRecorder("new").Eventf(testPod(0), nil, "Normal", "Tested", "Testing", "note")
		for _, message := range []string{"one", "two"} {
			a.DeprecatedNewLegacyRecorder("old").Event(testPod(0), "Normal", "Tested", message)
		}
		cancel() // and so it is shut down
		synctest.Wait()
		list, err := client.CoreV1().Events("ns").List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		require.Len(t, list.Items, 3)
		assert.NotZero(t, list.Items[0].FirstTimestamp)
	})
}

func TestEventBroadcasterAdapterStartsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		client.PrependReactor("create", "events", func(action clienttesting.Action) (bool, runtime.Object, error) {
			return action.GetResource().Group == "", nil, apierrors.NewForbidden(action.GetResource().GroupResource(), "", nil)
		})
		a := NewEventBroadcasterAdapter(client)
		a.StartRecordingToSink(nil)
		a.StartRecordingToSink(nil) // is logged
		a.NewRecorder("new").Eventf(testPod(0), nil, "Normal", "Tested", "Testing", "note")
		a.Shutdown()
		a.Shutdown()
		list, err := client.EventsV1().Events("ns").List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		assert.Len(t, list.Items, 1)
	})
}

func TestFakeRecorder(t *testing.T) {
	recorder := NewFakeRecorder(1)
	var _ EventRecorderLogger = recorder
	recorder.Eventf(testPod(0), nil, "Normal", "Tested", "Testing", "note %d", 1)
	assert.Equal(t, "Normal Tested note 1", <-recorder.Events)
}
