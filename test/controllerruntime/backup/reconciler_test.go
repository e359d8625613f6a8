package backup

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/events/eventstest"
	"github.com/eventseries/eventseries/series"
)

var orders = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders"}}

func reconcile(t *testing.T, recorder events.EventRecorder) {
	t.Helper()
	r := &Reconciler{fake.NewClientBuilder().WithObjects(orders.DeepCopy()).Build(), recorder}
	_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(orders)})
	require.NoError(t, err)
}

func TestReconcile(t *testing.T) {
	recorder := eventstest.NewRecorder(t)
	reconcile(t, recorder)
	recorder.ExpectOnly(t, eventstest.Want{Regarding: orders, Type: "Warning", Reason: "NoSpaceLeft"})
}

// A loop of ten minutes takes three requests.
func TestReconcileInALoop(t *testing.T) {
	broadcaster := eventstest.NewBroadcaster(t)
	recorder := broadcaster.NewRecorder(clientgoscheme.Scheme, "example.com/backup-controller")
	for range 600 {
		reconcile(t, recorder)
		broadcaster.Advance(time.Second)
	}
	broadcaster.Advance(7 * time.Minute)
	require.Len(t, broadcaster.Series(), 1)
	assert.Equal(t, series.Finished, broadcaster.Series()[0].State)
	assert.EqualValues(t, 600, broadcaster.Series()[0].Count)
	assert.Len(t, broadcaster.Requests(), 3)
}
