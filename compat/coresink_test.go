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

// A fake clientset has no REST client. The whole life of a series goes through
// its typed methods, and the old fields live with it.
func TestCoreSinkWithAFakeClientset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clients := fake.NewClientset()
		broadcaster := events.NewBroadcaster(&CoreSink{Interface: clients.CoreV1()})
		require.NoError(t, broadcaster.StartRecordingToSinkWithContext(t.Context()))
		defer broadcaster.Shutdown()
		recorder := broadcaster.NewRecorder(nil, "example.com/x")
		about := &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "ns", Name: "pod", UID: "uid"}
		occur := func() { recorder.Eventf(about, nil, corev1.EventTypeWarning, "Failed", "Trying", "it failed") }
		begin := time.Now()
		only := func(state string, count int32, last time.Duration) {
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
			if count == 1 {
				assert.Nil(t, event.Series)
				return
			}
			require.NotNil(t, event.Series)
			assert.Equal(t, count, event.Series.Count)
			assert.True(t, begin.Add(last).Equal(event.Series.LastObservedTime.Time), event.Series.LastObservedTime)
		}
		occur()
		only("", 1, 0)
		time.Sleep(time.Minute)
		occur()
		only("Ongoing", 2, time.Minute)
		for range 30 {
			time.Sleep(time.Minute)
			occur()
		}
		synctest.Wait()
		assert.EqualValues(t, 1, broadcaster.Stats().Writes[events.WriteKey{Kind: "heartbeat", Outcome: "written"}])
		time.Sleep(7 * time.Minute)
		only("Finished", 32, 31*time.Minute)
		assert.Empty(t, broadcaster.Stats().Dropped)
	})
}

func TestCoreSinkThatCannotBeUsed(t *testing.T) {
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
