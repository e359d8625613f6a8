package events

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// Recorders of both kinds write through the API group that the server has.
func TestEventBroadcasterAdapter(t *testing.T) {
	newer := []*metav1.APIResourceList{{GroupVersion: eventsv1.SchemeGroupVersion.String()}}
	for name, tt := range map[string]struct {
		has  []*metav1.APIResourceList
		fail error
		want schema.GroupVersion
	}{
		"events.k8s.io/v1": {newer, nil, eventsv1.SchemeGroupVersion},
		"core/v1 alone":    {nil, nil, corev1.SchemeGroupVersion},
		"does not answer":  {newer, apierrors.NewTimeoutError("asleep", 1), eventsv1.SchemeGroupVersion},
		"forbidden":        {newer, &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusForbidden}}, eventsv1.SchemeGroupVersion},
	} {
		runBubble(t, name, func(t *testing.T) {
			client := fake.NewClientset()
			client.Resources = tt.has
			if tt.fail != nil {
				client.PrependReactor("get", "resource", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tt.fail })
			}
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

			written := 0
			for _, action := range client.Actions() {
				if create, ok := action.(clienttesting.CreateAction); ok {
					assert.Equal(t, tt.want, create.GetResource().GroupVersion())
					written++
				}
			}
			assert.Equal(t, 3, written)
		})
	}
}

func TestEventBroadcasterAdapterStartsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		a := NewEventBroadcasterAdapter(client)
		a.StartRecordingToSink(nil)
		a.StartRecordingToSink(nil) // is logged
		a.NewRecorder("new").Eventf(testPod(0), nil, "Normal", "Tested", "Testing", "note")
		a.Shutdown()
		a.Shutdown()
		list, err := client.CoreV1().Events("ns").List(t.Context(), metav1.ListOptions{})
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
