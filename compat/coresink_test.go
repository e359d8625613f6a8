package compat

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/series"
)

// A fake clientset has no REST client, so these writes call its typed methods.
func TestCoreSinkMaintainsDeprecatedFields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clients := fake.NewClientset()
		broadcaster := events.NewBroadcaster(&CoreSink{Interface: clients.CoreV1()})
		require.NoError(t, broadcaster.StartRecordingToSinkWithContext(t.Context()))
		defer broadcaster.Shutdown()
		recorder := broadcaster.NewRecorder(nil, "example.com/x")
		begin := time.Now()
		check := func(state string, count int32, last time.Duration) {
			t.Helper()
			synctest.Wait()
			list, err := clients.CoreV1().Events("ns").List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			require.Len(t, list.Items, 1)
			event := list.Items[0]
			assert.Equal(t, state, event.Annotations[series.AnnotationState])
			assert.Equal(t, "it failed", event.Message)
			assert.Equal(t, corev1.EventSource{Component: "example.com/x"}, event.Source)
			assert.Equal(t, count, event.Count)
			assert.True(t, begin.Equal(event.FirstTimestamp.Time), event.FirstTimestamp)
			assert.True(t, begin.Add(last).Equal(event.LastTimestamp.Time), event.LastTimestamp)
			assert.Equal(t, count == 1, event.Series == nil)
			if event.Series != nil {
				assert.Equal(t, count, event.Series.Count)
				assert.True(t, begin.Add(last).Equal(event.Series.LastObservedTime.Time), event.Series.LastObservedTime)
			}
		}
		for minute := range 32 {
			recorder.Eventf(object("Pod", "pod"), nil, corev1.EventTypeWarning, "Failed", "Trying", "it failed")
			switch minute {
			case 0:
				check("", 1, 0)
			case 1:
				check("Ongoing", 2, time.Minute)
			}
			time.Sleep(time.Minute)
		}
		assert.EqualValues(t, 1, broadcaster.Stats().Writes[events.WriteKey{Kind: "heartbeat", Outcome: "written"}])
		time.Sleep(6 * time.Minute)
		check("Finished", 32, 31*time.Minute)
		assert.Empty(t, broadcaster.Stats().Dropped)
	})
}

func TestCoreSinkRequiresInterface(t *testing.T) {
	event := &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x"}}
	for _, sink := range []*CoreSink{nil, {}} {
		_, create := sink.Create(t.Context(), event)
		_, patch := sink.Patch(t.Context(), event, []byte("{}"))
		_, update := sink.Update(t.Context(), event)
		_, list := sink.List(t.Context(), "", metav1.ListOptions{})
		for _, err := range []error{create, patch, update, list} {
			require.ErrorContains(t, err, "no Interface")
		}
	}
}
