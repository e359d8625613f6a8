package record

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRecordingCanStopAndStartAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clients := fake.NewClientset()
		sinkOf := func(clients *fake.Clientset) EventSink {
			return &typedcorev1.EventSinkImpl{Interface: clients.CoreV1().Events("")}
		}
		counts := func(clients *fake.Clientset) map[string]int32 {
			list, err := clients.CoreV1().Events("").List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			counts := make(map[string]int32)
			for _, event := range list.Items {
				counts[event.Message] += event.Count
			}
			return counts
		}
		broadcaster := NewBroadcaster()
		defer broadcaster.Shutdown()
		recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "tester"})
		emit := func(message string, n int) {
			for range n {
				recorder.Event(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}, "Normal", "Tested", message)
			}
		}
		emit("early", 2)
		assert.Empty(t, clients.Actions())
		broadcaster.StartRecordingToSink(nil).Stop()
		first := broadcaster.StartRecordingToSink(sinkOf(clients))
		second := fake.NewClientset()
		broadcaster.StartRecordingToSink(sinkOf(second)).Stop()
		emit("recorded", 3)
		first.Stop()
		first.Stop()
		time.Sleep(time.Minute)
		want := map[string]int32{"early": 2, "recorded": 3}
		assert.Equal(t, want, counts(clients))
		emit("stopped", 4)
		emit("recorded", 4)
		time.Sleep(time.Hour)
		assert.Equal(t, want, counts(clients))
		assert.Empty(t, second.Actions())
		broadcaster.StartRecordingToSink(sinkOf(second))
		emit("recorded", 5)
		broadcaster.Shutdown()
		assert.Equal(t, map[string]int32{"recorded": 5}, counts(second))
		assert.Equal(t, want, counts(clients))
	})
}
