package bench

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// The simulation stores managedFields as the real server does, since these are a third of an
// Event.
func TestManagedFields(t *testing.T) {
	clients, namespace := apiserver.Clientset(t), apiserver.Namespace(t)
	about := refer("v1", "Pod", 7, 1)
	about.Namespace = namespace
	check := func(t *testing.T, stored, copied metav1.Object, apiVersion string) {
		t.Helper()
		require.Len(t, stored.GetManagedFields(), 1)
		want := stored.GetManagedFields()[0]
		manage(copied, apiVersion, want.Manager)
		got := copied.GetManagedFields()[0]
		assert.JSONEq(t, string(want.FieldsV1.Raw), string(got.FieldsV1.Raw))
		got.FieldsV1, got.Time = want.FieldsV1, want.Time
		assert.Equal(t, want, got)
	}

	newer := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "newer", Namespace: namespace, Labels: map[string]string{"a": "b"}},
		EventTime:  metav1.NowMicro(), ReportingController: controller, ReportingInstance: "node-1", Action: action, Reason: reason,
		Regarding: *about, Related: about, Note: note, Type: corev1.EventTypeWarning,
	}
	stored, err := clients.EventsV1().Events(namespace).Create(t.Context(), newer, metav1.CreateOptions{})
	require.NoError(t, err)
	check(t, stored, stored.DeepCopy(), "events.k8s.io/v1")
	patch := `{"series":{"count":2,"lastObservedTime":"` + time.Now().UTC().Format(metav1.RFC3339Micro) + `"},"metadata":{"annotations":{"c":"d"}}}`
	stored, err = clients.EventsV1().Events(namespace).Patch(t.Context(), "newer", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(t, err)
	check(t, stored, stored.DeepCopy(), "events.k8s.io/v1")

	older := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "older", Namespace: namespace}, InvolvedObject: *about, Reason: reason, Message: note,
		Source: corev1.EventSource{Component: "kubelet", Host: "node-1"}, FirstTimestamp: metav1.Now(), LastTimestamp: metav1.Now(), Count: 1,
		Type: corev1.EventTypeWarning, ReportingController: "kubelet", ReportingInstance: "node-1",
	}
	old, err := clients.CoreV1().Events(namespace).Create(t.Context(), older, metav1.CreateOptions{})
	require.NoError(t, err)
	check(t, old, old.DeepCopy(), "v1")
	old, err = clients.CoreV1().Events(namespace).Patch(t.Context(), "older", types.StrategicMergePatchType, []byte(`{"count":2}`), metav1.PatchOptions{})
	require.NoError(t, err)
	check(t, old, old.DeepCopy(), "v1")
}
