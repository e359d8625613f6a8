package controllerruntime

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/eventseries/eventseries/compat"
	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/events/metrics"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

var _ manager.Manager = (*Manager)(nil)

var quotation = regexp.MustCompile("(?s)<!-- from: (\\S+) -->\n\n```go\n(.*?)```")

// Users copy the code from the page, so the page must contain all of it.
func TestDocumentationQuotesTheManager(t *testing.T) {
	root := filepath.Join("..", "..")
	page, err := os.ReadFile(filepath.Join(root, "docs", "manager.md"))
	require.NoError(t, err)
	var quoted []string
	for _, match := range quotation.FindAllStringSubmatch(string(page), -1) {
		file, quote := match[1], match[2]
		if path.Dir(file) != "test/controllerruntime" || strings.HasSuffix(file, "_test.go") {
			continue // a part of a file, which internal/docs tests
		}
		source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
		require.NoError(t, err)
		_, code, ok := strings.Cut(string(source), "package controllerruntime\n\n")
		require.True(t, ok, file)
		assert.Equal(t, code, quote, file)
		quoted = append(quoted, filepath.Base(file))
	}
	assert.Equal(t, []string{"manager.go", "recorder.go", "recorder_v0_24.go"}, quoted)
}

// Recorders of the manager emit to the broadcaster, and Start returns after all events
// are written.
func TestManagerProvidesRecorders(t *testing.T) {
	for name, opts := range map[string]events.Options{
		"started with the manager": {},
		"started with the leader":  {Scope: events.SameController, ReportingInstance: "replica-1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			broadcaster := w.broadcaster(apiserver.Config(t), opts)
			mgr := w.newManager(w.electing(ctrl.Options{}), broadcaster)
			recorder, legacy := mgr.GetEventRecorder("example.com/wrapped"), legacyRecorder(mgr, "example.com/wrapped")
			r := newReconciler(t, mgr, func(object *corev1.ConfigMap) {
				recorder.Eventf(object, nil, corev1.EventTypeNormal, "New", "Testing", "from the recorder")
				legacy.Event(object, corev1.EventTypeNormal, "Old", "from the legacy recorder")
			})
			annotated, ok := recorder.(events.AnnotatedEventRecorder)
			require.True(t, ok)
			annotated.AnnotatedEventf(w.object("one"), nil, map[string]string{"example.com/a": "b"}, corev1.EventTypeNormal, "Noted", "Testing", "before the start")
			stop := w.run(mgr)
			w.waitFor("the loop", r.looping)
			stop()

			emitted := int(r.emitted.Load())
			assert.Equal(t, map[string]int{
				"from the recorder":        emitted,
				"from the legacy recorder": emitted,
				"before the start":         1,
			}, w.counts("example.com/wrapped"))
			assert.Len(t, w.written(compat.LeaderElection), 2)
			stats := broadcaster.Stats()
			assert.EqualValues(t, 2*emitted+1+2, stats.Occurrences)
			assert.Empty(t, stats.Dropped)
		})
	}
}

func TestNewManagerReturnsErrors(t *testing.T) {
	_, err := NewManager(nil, ctrl.Options{}, events.NewBroadcaster(nil))
	assert.Error(t, err)
}

func TestBroadcasterLogsToBaseContext(t *testing.T) {
	w := newWorld(t)
	var mu sync.Mutex
	var lines []string
	logger := funcr.New(func(_, args string) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, args)
	}, funcr.Options{Verbosity: 2})
	mgr := w.newManager(ctrl.Options{
		BaseContext: func() context.Context { return logr.NewContext(context.Background(), logger) },
	}, w.broadcaster(apiserver.Config(t), events.Options{}))
	started := make(chan struct{})
	require.NoError(t, mgr.Add(manager.RunnableFunc(func(context.Context) error { close(started); return nil })))
	stop := w.run(mgr)
	w.waitFor("the start", started)
	stop()
	mu.Lock()
	defer mu.Unlock()
	log := strings.Join(lines, "\n")
	assert.Contains(t, log, `"msg"="Recording events"`)
	assert.Contains(t, log, `"msg"="Stopped recording events"`)
}

func TestManagerServesMetrics(t *testing.T) {
	w := newWorld(t)
	broadcaster := w.broadcaster(apiserver.Config(t), events.Options{})
	collector := metrics.NewCollector(broadcaster, metrics.Options{})
	require.NoError(t, ctrlmetrics.Registry.Register(collector))
	t.Cleanup(func() { ctrlmetrics.Registry.Unregister(collector) })

	address := fmt.Sprintf("127.0.0.1:%d", apiserver.FreePort(t))
	mgr := w.newManager(ctrl.Options{Metrics: server.Options{BindAddress: address}}, broadcaster)
	recorder := mgr.GetEventRecorder("example.com/measured")
	r := newReconciler(t, mgr, func(object *corev1.ConfigMap) {
		recorder.Eventf(object, nil, corev1.EventTypeWarning, "Failed", "Trying", "it failed")
	})
	w.object("one")
	stop := w.run(mgr)
	w.waitFor("the loop", r.looping)
	w.flush(broadcaster)

	text := w.scrape("http://" + address + "/metrics")
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
	assert.NoError(t, testutil.GatherAndCompare(ctrlmetrics.Registry, strings.NewReader(fmt.Sprintf(`
# HELP eventseries_occurrences_total Emitted events, including dropped ones.
# TYPE eventseries_occurrences_total counter
eventseries_occurrences_total %d
`, r.emitted.Load())), "eventseries_occurrences_total"), "after the shutdown")
}

// scrape returns the metrics at a URL once the server listens.
func (w *world) scrape(url string) (text string) {
	w.t.Helper()
	require.EventuallyWithT(w.t, func(c *assert.CollectT) {
		request, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, url, nil)
		require.NoError(c, err)
		response, err := http.DefaultClient.Do(request)
		require.NoError(c, err)
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		require.NoError(c, err)
		require.Equal(c, http.StatusOK, response.StatusCode, "%s", body)
		text = string(body)
	}, patience, apiserver.PollInterval)
	return text
}
