package controllerruntime

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/events/metrics"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// What is registered with controller-runtime's registry is served by the manager,
// beside its own metrics.
func TestMetricsOfAManager(t *testing.T) {
	w := newWorld(t)
	broadcaster := w.broadcaster(events.Options{})
	collector := metrics.NewCollector(broadcaster, metrics.Options{})
	require.NoError(t, ctrlmetrics.Registry.Register(collector))
	t.Cleanup(func() { ctrlmetrics.Registry.Unregister(collector) })

	opts := w.options(ctrl.Options{})
	opts.Metrics = server.Options{BindAddress: freeAddress(t)}
	mgr, err := NewManager(apiserver.Config(t), opts, broadcaster)
	require.NoError(t, err)
	recorder := mgr.GetEventRecorder("example.com/measured")
	r := newReconciler(t, mgr, func(object *corev1.ConfigMap) {
		recorder.Eventf(object, nil, corev1.EventTypeWarning, "Failed", "Trying", "it failed")
	})
	w.object("one")
	stop := w.run(mgr)
	w.waitFor("the loop", r.looping)
	flush(t, broadcaster)

	text := ""
	apiserver.Eventually(t, patience, func(ctx context.Context) (err error) {
		text, err = scrape(ctx, "http://"+opts.Metrics.BindAddress+"/metrics")
		return err
	})
	for _, start := range []string{
		`eventseries_writes_total{kind="create",outcome="written"} 1`,
		`eventseries_series{state="ongoing"} 1`,
		`eventseries_series_capacity 65536`,
		`eventseries_distinct_values{field="reason"} 1`,
		`eventseries_request_duration_seconds_count{verb="create"} 1`,
		`eventseries_occurrences_total `,
		`controller_runtime_reconcile_total`,
	} {
		assert.Contains(t, text, "\n"+start)
	}
	problems, err := testutil.CollectAndLint(collector)
	require.NoError(t, err)
	assert.Empty(t, problems)

	stop()
	n, err := testutil.GatherAndCount(ctrlmetrics.Registry, "eventseries_occurrences_total")
	require.NoError(t, err)
	assert.Equal(t, 1, n, "after the end as well")
	assert.NoError(t, testutil.GatherAndCompare(ctrlmetrics.Registry, strings.NewReader(fmt.Sprintf(`
# HELP eventseries_occurrences_total Emitted events, including dropped ones.
# TYPE eventseries_occurrences_total counter
eventseries_occurrences_total %d
`, r.emitted.Load())), "eventseries_occurrences_total"))
}

// freeAddress returns one to listen at. The manager does not tell which port it has
// been given.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().String()
}

// scrape does what Prometheus does.
func scrape(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, text)
	}
	return string(text), err
}
