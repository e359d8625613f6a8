package backup

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/eventseries/eventseries/test/internal/apiserver"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(apiserver.Main(m))
}

// The loop is one Event on the server.
func TestRun(t *testing.T) {
	namespace, clients := apiserver.Namespace(t), apiserver.Clientset(t)
	_, err := clients.CoreV1().ConfigMaps(namespace).Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "orders"},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	mgr, err := ctrl.NewManager(apiserver.Config(t), ctrl.Options{
		Metrics: server.Options{BindAddress: "0"},
		Cache:   cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, mgr, clients) }()

	find := func(c require.TestingT) eventsv1.Event {
		list, err := clients.EventsV1().Events(namespace).List(context.Background(), metav1.ListOptions{FieldSelector: "regarding.kind=ConfigMap"})
		require.NoError(c, err)
		require.Len(c, list.Items, 1)
		require.NotNil(c, list.Items[0].Series)
		return list.Items[0]
	}
	require.EventuallyWithT(t, func(c *assert.CollectT) { find(c) }, time.Minute, apiserver.PollInterval)
	scrape := httptest.NewRecorder()
	promhttp.HandlerFor(ctrlmetrics.Registry, promhttp.HandlerOpts{}).ServeHTTP(scrape, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	assert.Contains(t, scrape.Body.String(), `eventseries_series{state="ongoing"} 1`)
	assert.Contains(t, scrape.Body.String(), `eventseries_writes_total{kind="series",outcome="written"} 1`)
	cancel()
	require.NoError(t, <-ended)
	event := find(t)
	assert.Equal(t, "no space left for 0 keys", event.Note)
	assert.GreaterOrEqual(t, event.Series.Count, int32(2))
	assert.Equal(t, "Ongoing", event.Annotations["eventseries.dev/state"])
}
