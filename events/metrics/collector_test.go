package metrics

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/events/eventstest"
	"github.com/eventseries/eventseries/internal/tracker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var rewrite = flag.Bool("rewrite", false, "rewrite testdata with the current exposition")

const golden = "testdata/exposition.txt"

// kinds are the kinds of writes.
var kinds = []string{"create", "recreate", "series", "heartbeat", "finish", "flush", "look", "list"}

// stats is a Source.
type stats events.Stats

func (s *stats) Stats() events.Stats { return events.Stats(*s) }

// someStats returns statistics without zeros.
func someStats() *stats {
	return &stats{
		Running: true, Occurrences: 1234567,
		Tracked: 75, Singletons: 10, Ongoing: 20, Ended: 15, Closing: 30, Capacity: 65536,
		Requests: []events.RequestStats{
			{Kind: "create", Verb: "create", Outcome: "written", Count: 40, Duration: 2500 * time.Millisecond, Buckets: map[time.Duration]uint64{
				5 * time.Millisecond: 1, time.Second: 39, time.Minute: 40,
			}},
			{Kind: "create", Verb: "create", Outcome: "taken", Count: 5, Duration: 10 * time.Minute, Buckets: map[time.Duration]uint64{
				5 * time.Millisecond: 0, time.Second: 3, time.Minute: 4,
			}},
			{Kind: "series", Verb: "patch", Outcome: "pushedBack", Count: 6},
			{Kind: "heartbeat", Verb: "patch", Outcome: "written", Count: 70},
			{Kind: "finish", Verb: "patch", Outcome: "troubled", Count: 8, Duration: time.Second, Buckets: map[time.Duration]uint64{
				5 * time.Millisecond: 0, time.Second: 8, time.Minute: 8,
			}},
			{Kind: "recreate", Verb: "create", Outcome: "written", Count: 9},
			{Kind: "list", Verb: "list", Outcome: "denied", Count: 1},
			{Kind: "look", Verb: "patch", Outcome: "refused", Count: 2},
			{Kind: "look", Verb: "patch", Outcome: "gone", Count: 3},
			{Kind: "heartbeat", Verb: "patch", Outcome: "changed", Count: 4},
		},
		Dropped:  map[events.DropReason]uint64{"TableFull": 3, "Rejected": 4},
		Filtered: 15,
		Reasons: []events.ReasonStats{
			{Controller: "example.com/a", Type: "Warning", Reason: "BackOff", Occurrences: 1234000, Ongoing: 19},
			{Controller: "other", Type: "Normal", Reason: "other", Occurrences: 567, Ongoing: 1},
		},
		ReasonsLimited: true,
		WatcherDropped: 5, RelatedOmitted: 6, AnnotationsOmitted: 7,
		Adopted: 8, Restored: 9,
		Waiting: 11, LongestWait: 12500 * time.Millisecond,
		Namespaces: []events.NamespaceStats{{Name: "a", LongestWait: 12500 * time.Millisecond}, {Name: "b", LongestWait: time.Second, PausedUntil: time.UnixMilli(1_800_000_000_500)}},
	}
}

// gathered returns what a registry exposes, in the text format. It checks the names, units
// and labels of the metrics.
func gathered(t *testing.T, gatherer prometheus.Gatherer) string {
	t.Helper()
	response := httptest.NewRecorder()
	promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{}).ServeHTTP(response, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	require.Equal(t, http.StatusOK, response.Code, response.Body)
	problems, err := testutil.GatherAndLint(gatherer)
	require.NoError(t, err)
	assert.Empty(t, problems)
	return response.Body.String()
}

// registryOf returns a registry that checks metrics against their descriptions.
func registryOf(t *testing.T, source Source, opts Options) *prometheus.Registry {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(NewCollector(source, opts)))
	return registry
}

func TestExposition(t *testing.T) {
	got := gathered(t, registryOf(t, someStats(), Options{ByReason: true}))
	if *rewrite {
		require.NoError(t, os.WriteFile(golden, []byte(got), 0o666))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	wantLines, gotLines := strings.Split(string(want), "\n"), strings.Split(got, "\n")
	for i := range max(len(wantLines), len(gotLines)) {
		want, got := lineOf(wantLines, i), lineOf(gotLines, i)
		require.Equal(t, want, got, "line %d of %s differs, and -rewrite writes it", i+1, golden)
	}
}

func lineOf(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(the end)"
}

func TestEveryFieldIsExposed(t *testing.T) {
	all := gathered(t, registryOf(t, someStats(), Options{ByReason: true}))
	fields := reflect.TypeFor[events.Stats]()
	for i := range fields.NumField() {
		name := fields.Field(i).Name
		if name == "Tracked" || name == "Occurrences" {
			continue // the sum of four others, and that of Reasons
		}
		s := someStats()
		reflect.ValueOf(s).Elem().Field(i).SetZero()
		assert.NotEqual(t, all, gathered(t, registryOf(t, s, Options{ByReason: true})), name)
	}
}

// A series whose request takes some milliseconds does not wait.
func TestWaitsFromASecondOn(t *testing.T) {
	for wait, waiting := range map[time.Duration]int{50 * time.Millisecond: 0, time.Second: 11} {
		s := someStats()
		s.LongestWait = wait
		got := gathered(t, registryOf(t, s, Options{}))
		assert.Contains(t, got, fmt.Sprintf("\neventseries_waiting_series %d\n", waiting), wait)
		assert.Contains(t, got, fmt.Sprintf("\neventseries_longest_wait_seconds %d\n", waiting/11), wait)
	}
}

// Prometheus does not take the appearance of a counter for an increase.
func TestCountersStartAtZero(t *testing.T) {
	broadcaster := events.NewBroadcaster(nil)
	defer broadcaster.Shutdown()
	got := gathered(t, registryOf(t, broadcaster, Options{}))
	for _, f := range families {
		// They begin with the first request, and with a namespace that waits.
		if f.name != "eventseries_request_duration_seconds" && !strings.HasPrefix(f.name, "eventseries_namespace_") {
			assert.Contains(t, got, "\n"+f.name)
		}
	}
	for _, reason := range tracker.Losses {
		assert.Contains(t, got, fmt.Sprintf("\neventseries_occurrences_dropped_total{reason=%q} 0\n", reason))
	}
	for _, kind := range kinds {
		assert.Contains(t, got, fmt.Sprintf("\neventseries_writes_total{kind=%q,outcome=\"written\"} 0\n", kind))
	}
	assert.NotContains(t, got, `"none"`)
}

// Labels tell broadcasters in one registry apart, set by the options or by Prometheus.
func TestSeveralBroadcasters(t *testing.T) {
	labels := func(name string) prometheus.Labels { return prometheus.Labels{"controller": name} }
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(NewCollector(someStats(), Options{ConstLabels: labels("one")})))
	require.NoError(t, prometheus.WrapRegistererWith(labels("two"), registry).Register(NewCollector(someStats(), Options{})))
	got := gathered(t, registry)
	for _, line := range []string{`{controller="one"} 1.234567e+06`, `{controller="two"} 1.234567e+06`} {
		assert.Contains(t, got, "\neventseries_occurrences_total"+line+"\n")
	}
	assert.Error(t, registry.Register(NewCollector(someStats(), Options{ConstLabels: labels("one")})))
	assert.Error(t, registryOf(t, someStats(), Options{}).Register(NewCollector(someStats(), Options{})), "without labels")
}

// The label of the documentation fits to metrics by reason, which have a controller.
func TestSeveralBroadcastersByReason(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	for _, name := range []string{"one", "two"} {
		require.NoError(t, registry.Register(NewCollector(someStats(), Options{ByReason: true, ConstLabels: prometheus.Labels{"broadcaster": name}})))
	}
	got := gathered(t, registry)
	for _, name := range []string{"one", "two"} {
		assert.Contains(t, got, fmt.Sprintf("\neventseries_ongoing_series{broadcaster=%q,controller=\"example.com/a\",reason=\"BackOff\",type=\"Warning\"} 19\n", name))
	}
	err := registry.Register(NewCollector(someStats(), Options{ConstLabels: prometheus.Labels{"broadcaster": "three"}}))
	assert.ErrorContains(t, err, "eventseries_occurrences_total", "all by reason, or none")
}

func TestByReason(t *testing.T) {
	broadcaster := events.NewBroadcaster(nil)
	defer broadcaster.Shutdown()
	registry := registryOf(t, broadcaster, Options{ByReason: true})
	assert.NotContains(t, gathered(t, registry), "eventseries_occurrences_total{")
	recorder := broadcaster.NewRecorder(nil, "example.com/metrics")
	for n := range 3 {
		for i := range 206 {
			recorder.Eventf(podRef("pod"), nil, corev1.EventTypeWarning, fmt.Sprint("Reason", i), "Testing", "number %d", n)
		}
	}
	got := gathered(t, registry)
	for reason, occurrences := range map[string]int{"Reason0": 3, "Reason199": 3, "other": 18} {
		controller := "example.com/metrics"
		if reason == "other" {
			controller = reason
		}
		labels := fmt.Sprintf(`{controller=%q,reason=%q,type="Warning"}`, controller, reason)
		assert.Contains(t, got, fmt.Sprintf("\neventseries_occurrences_total%s %d\n", labels, occurrences))
		assert.Contains(t, got, fmt.Sprintf("\neventseries_ongoing_series%s %d\n", labels, occurrences/3))
	}
	assert.Contains(t, got, "\neventseries_reasons_limited 1\n")
}

func TestInvalidConstLabelsFailTheRegistration(t *testing.T) {
	for _, labels := range []prometheus.Labels{{"reason": "r"}, {"": "x"}, {"name": "\xff"}} {
		collector := NewCollector(someStats(), Options{ConstLabels: labels})
		assert.Error(t, prometheus.NewRegistry().Register(collector), "%q", labels)
		metrics := make(chan prometheus.Metric, 1000)
		assert.NotPanics(t, func() { collector.Collect(metrics) })
		assert.NotEmpty(t, metrics)
	}
}

func podRef(name string) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "ns", Name: name}
}

func TestConcurrentCollects(t *testing.T) {
	broadcaster := events.NewBroadcaster(&eventstest.Server{})
	registry := registryOf(t, broadcaster, Options{})
	recorder := broadcaster.NewRecorder(nil, "example.com/metrics")
	ctx, stop := context.WithCancel(t.Context())
	var scrapers sync.WaitGroup
	for range 3 {
		scrapers.Go(func() {
			for last := false; !last; {
				last = ctx.Err() != nil
				_, err := registry.Gather()
				assert.NoError(t, err)
			}
		})
	}
	const emitted = 3 * 300
	emit := func() {
		for n := range emitted / 3 {
			recorder.Eventf(podRef(fmt.Sprint("pod-", n%20)), nil, corev1.EventTypeWarning, "Tested", "Testing", "number %d", n)
		}
	}
	emit() // before the start
	require.NoError(t, broadcaster.StartRecordingToSinkWithContext(t.Context()))
	emit()
	require.NoError(t, broadcaster.Flush(t.Context()))
	broadcaster.Shutdown()
	emit()
	stop()
	scrapers.Wait()
	got := gathered(t, registry)
	for _, line := range []string{
		fmt.Sprintf("eventseries_occurrences_total %d", emitted),
		fmt.Sprintf(`eventseries_occurrences_dropped_total{reason="Shutdown"} %d`, emitted/3),
		`eventseries_series{state="ongoing"} 0`,
		`eventseries_waiting_series 0`,
		`eventseries_running 0`,
		`eventseries_reasons_limited 0`,
		`eventseries_request_duration_seconds_count{verb="create"} 20`,
	} {
		assert.Contains(t, got, "\n"+line+"\n")
	}
}

func TestLabelsRevealNothingAboutEvents(t *testing.T) {
	broadcaster := events.NewBroadcaster(&eventstest.Server{})
	registry := registryOf(t, broadcaster, Options{})
	recorder := broadcaster.NewRecorderWithOptions(nil, "example.com/secret", events.RecorderOptions{DistinctNotes: 10})
	require.NoError(t, broadcaster.StartRecordingToSinkWithContext(t.Context()))
	for n := range 50 {
		secret := fmt.Sprint("secret-", n)
		pod := &corev1.ObjectReference{APIVersion: secret, Kind: secret, Namespace: secret, Name: secret, UID: "secret", FieldPath: secret}
		recorder.AnnotatedEventf(pod, pod, map[string]string{"secret": secret}, corev1.EventTypeNormal, secret, secret, secret)
		recorder.Eventf(pod, nil, secret, secret, secret, secret)
	}
	broadcaster.Shutdown()
	got := gathered(t, registry)
	assert.Contains(t, got, `reason="InvalidType"} 50`)
	assert.NotContains(t, got, "secret")
}

func TestCardinality(t *testing.T) {
	full := someStats()
	buckets := make(map[time.Duration]uint64)
	for i := range time.Duration(12) {
		buckets[i] = 0
	}
	for _, kind := range kinds {
		for _, outcome := range []string{"written", "pushedBack", "troubled", "denied", "gone", "changed", "taken", "refused"} {
			for _, verb := range []string{"create", "patch", "list"} {
				full.Requests = append(full.Requests, events.RequestStats{Kind: kind, Verb: verb, Outcome: outcome, Buckets: buckets})
			}
		}
	}
	text := gathered(t, registryOf(t, full, Options{}))
	n := strings.Count(text, "\n") - strings.Count(text, "# ")
	assert.Positive(t, n)
	assert.Less(t, n, 200)
	t.Logf("%d time series at most", n)
}
