package backup

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/events/eventstest"
	"github.com/eventseries/eventseries/series"
	"github.com/eventseries/eventseries/test/internal/apiserver"
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

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(apiserver.Main(m))
}

func TestRun(t *testing.T) {
	namespace, clients := apiserver.Namespace(t), apiserver.Clientset(t)
	object, err := clients.CoreV1().ConfigMaps(namespace).Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "orders"},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	address := fmt.Sprintf("127.0.0.1:%d", apiserver.FreePort(t))
	config := apiserver.Config(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, config, ctrl.Options{
			Metrics: server.Options{BindAddress: address},
			Cache:   cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
		})
	}()

	find := func(c require.TestingT) eventsv1.Event {
		list, err := clients.EventsV1().Events(namespace).List(context.Background(), metav1.ListOptions{FieldSelector: "regarding.kind=ConfigMap"})
		require.NoError(c, err)
		require.Len(c, list.Items, 1)
		require.NotNil(c, list.Items[0].Series)
		return list.Items[0]
	}
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		find(c)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/metrics", nil)
		require.NoError(c, err)
		response, err := http.DefaultClient.Do(request)
		require.NoError(c, err)
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		require.NoError(c, err)
		for _, start := range []string{
			`eventseries_writes_total{kind="create",outcome="written"} 1`,
			`eventseries_writes_total{kind="series",outcome="written"} 1`,
			`eventseries_series{state="ongoing"} 1`,
			`eventseries_series_capacity 65536`,
			`eventseries_reasons_limited 0`,
			`eventseries_request_duration_seconds_count{verb="create"} 1`,
			`eventseries_occurrences_total `,
			`controller_runtime_reconcile_total`,
		} {
			assert.Contains(c, string(text), "\n"+start)
		}
	}, time.Minute, apiserver.PollInterval)
	cancel()
	require.NoError(t, <-ended)
	event := find(t)
	assert.Equal(t, object.UID, event.Regarding.UID)
	assert.Equal(t, "no space left for 0 keys", event.Note)
	assert.GreaterOrEqual(t, event.Series.Count, int32(2))
	assert.Equal(t, "Ongoing", event.Labels["eventseries.dev/state"])
}
