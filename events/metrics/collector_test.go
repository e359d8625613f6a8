package metrics

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
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
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"

	"github.com/eventseries/eventseries/events"
)

var rewrite = flag.Bool("rewrite", false, "write what is exposed into testdata")

const golden = "testdata/exposition.txt"

// stats is a source in which nothing is zero.
type stats events.Stats

func (s *stats) Stats() events.Stats { return events.Stats(*s) }

func someStats() *stats {
	return &stats{
		Occurrences: 1234567,
		Tracked:     60, Singletons: 10, Ongoing: 20, Closing: 30, Capacity: 65536,
		Writes: map[events.WriteKey]uint64{
			{Kind: "create", Outcome: "written"}:    40,
			{Kind: "create", Outcome: "taken"}:      5,
			{Kind: "series", Outcome: "pushedBack"}: 6,
			{Kind: "heartbeat", Outcome: "written"}: 70,
			{Kind: "finish", Outcome: "troubled"}:   8,
			{Kind: "recreate", Outcome: "written"}:  9,
			{Kind: "list", Outcome: "denied"}:       1,
			{Kind: "successor", Outcome: "refused"}: 2,
			{Kind: "look", Outcome: "gone"}:         3,
			{Kind: "heartbeat", Outcome: "changed"}: 4,
		},
		Durations: map[string]events.Histogram{
			"create": {Count: 5, Sum: 2500 * time.Millisecond, Buckets: []events.Bucket{
				{Bound: 5 * time.Millisecond, Count: 1}, {Bound: time.Second, Count: 3}, {Bound: time.Minute, Count: 4},
			}},
			"patch": {Count: 1, Sum: time.Second, Buckets: []events.Bucket{
				{Bound: 5 * time.Millisecond, Count: 0}, {Bound: time.Second, Count: 1}, {Bound: time.Minute, Count: 1},
			}},
		},
		Dropped:        map[events.DropReason]uint64{events.DropTableFull: 3, events.DropRejected: 4},
		WatcherDropped: 5, RelatedOmitted: 6, AnnotationsOmitted: 7,
		Adopted: 8, Restored: 9,
		Queue: 10, Waiting: 11, LongestWait: 12500 * time.Millisecond,
		PausedUntil: time.Unix(1e9, 0), Paused: 90 * time.Second,
		DistinctReasons: 13, DistinctActions: 14,
	}
}

// gathered returns what a registry exposes, in the text format.
func gathered(t *testing.T, gatherer prometheus.Gatherer) []byte {
	t.Helper()
	response := httptest.NewRecorder()
	promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{}).ServeHTTP(response, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	require.Equal(t, http.StatusOK, response.Code, response.Body)
	return response.Body.Bytes()
}

func registryOf(t *testing.T, collectors ...prometheus.Collector) *prometheus.Registry {
	t.Helper()
	// A pedantic one finds metrics that are not as they are described.
	registry := prometheus.NewPedanticRegistry()
	for _, c := range collectors {
		require.NoError(t, registry.Register(c))
	}
	return registry
}

func TestExposition(t *testing.T) {
	got := gathered(t, registryOf(t, NewCollector(someStats(), Options{})))
	if *rewrite {
		require.NoError(t, os.WriteFile(golden, got, 0o666))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	assert.Equal(t, string(want), string(got))
}

// Nothing of the statistics is left out.
func TestEveryFieldIsShown(t *testing.T) {
	of := func(s *stats) string { return string(gathered(t, registryOf(t, NewCollector(s, Options{})))) }
	all := of(someStats())
	fields := reflect.TypeFor[events.Stats]()
	for i := range fields.NumField() {
		name := fields.Field(i).Name
		if name == "Tracked" {
			continue // a sum
		}
		s := someStats()
		reflect.ValueOf(s).Elem().Field(i).SetZero()
		assert.NotEqual(t, all, of(s), "%s makes no difference", name)
	}
}

func TestLint(t *testing.T) {
	got := gathered(t, registryOf(t, NewCollector(someStats(), Options{})))
	problems, err := promlint.New(bytes.NewReader(got)).Lint()
	require.NoError(t, err)
	assert.Empty(t, problems)
}

// An increase from nothing is none to Prometheus, so there are zeros.
func TestZeros(t *testing.T) {
	broadcaster := events.NewBroadcaster(nil)
	defer broadcaster.Shutdown()
	got := gathered(t, registryOf(t, NewCollector(broadcaster, Options{})))
	for _, f := range families {
		if f.name != "eventseries_request_duration_seconds" { // its buckets come with the first request
			assert.Contains(t, string(got), "\n"+f.name)
		}
	}
	for _, reason := range declaredDropReasons(t) {
		assert.Contains(t, string(got), fmt.Sprintf("\neventseries_occurrences_dropped_total{reason=%q} 0\n", reason))
	}
	for _, kind := range []string{"create", "recreate", "series", "heartbeat", "finish", "flush", "look", "close", "successor", "list"} {
		assert.Contains(t, string(got), fmt.Sprintf("\neventseries_writes_total{kind=%q,outcome=\"written\"} 0\n", kind))
	}
	assert.NotContains(t, string(got), `"nothing"`)
}

// declaredDropReasons reads from the source which reasons there are.
func declaredDropReasons(t *testing.T) (reasons []string) {
	t.Helper()
	for _, name := range []string{"../drop.go", "../../series/drop.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if ok && strings.HasPrefix(spec.Names[0].Name, "Drop") {
				if literal, ok := spec.Values[0].(*ast.BasicLit); ok {
					reasons = append(reasons, strings.Trim(literal.Value, `"`))
				}
			}
			return true
		})
	}
	require.Len(t, reasons, len(dropReasons))
	return reasons
}

// Several broadcasters can be in one registry if they are told apart, by the options
// or as Prometheus does it.
func TestSeveralBroadcasters(t *testing.T) {
	one, other := someStats(), someStats()
	other.Occurrences = 1
	labels := func(name string) prometheus.Labels { return prometheus.Labels{"controller": name} }

	registry := registryOf(t,
		NewCollector(one, Options{ConstLabels: labels("one")}),
		NewCollector(other, Options{ConstLabels: labels("other")}))
	require.NoError(t, prometheus.WrapRegistererWith(labels("third"), registry).Register(NewCollector(other, Options{})))
	assert.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP eventseries_occurrences_total Events that were emitted, those included that were dropped.
# TYPE eventseries_occurrences_total counter
eventseries_occurrences_total{controller="one"} 1.234567e+06
eventseries_occurrences_total{controller="other"} 1
eventseries_occurrences_total{controller="third"} 1
`), "eventseries_occurrences_total"))
	problems, err := testutil.GatherAndLint(registry)
	require.NoError(t, err)
	assert.Empty(t, problems)

	assert.Error(t, registry.Register(NewCollector(other, Options{ConstLabels: labels("one")})), "it is there already")
	registry = prometheus.NewRegistry()
	require.NoError(t, registry.Register(NewCollector(one, Options{})))
	assert.Error(t, registry.Register(NewCollector(other, Options{})), "they are not told apart")
}

// What cannot be is found out when it is registered.
func TestConstLabelsThatCannotBe(t *testing.T) {
	for _, labels := range []prometheus.Labels{{"reason": "r"}, {"": "x"}, {"name": "\xff"}} {
		collector := NewCollector(someStats(), Options{ConstLabels: labels})
		assert.Error(t, prometheus.NewRegistry().Register(collector), "%q", labels)
		var metrics int
		assert.NotPanics(t, func() { metrics = testCollect(collector) })
		assert.Positive(t, metrics)
	}
}

// testCollect collects from a collector that no registry takes.
func testCollect(c prometheus.Collector) (n int) {
	metrics := make(chan prometheus.Metric)
	go func() {
		defer close(metrics)
		c.Collect(metrics)
	}()
	for range metrics {
		n++
	}
	return n
}

// sink takes everything.
type sink struct{}

func (sink) Create(_ context.Context, e *eventsv1.Event) (*eventsv1.Event, error) { return e, nil }
func (sink) Update(_ context.Context, e *eventsv1.Event) (*eventsv1.Event, error) { return e, nil }
func (sink) Patch(_ context.Context, e *eventsv1.Event, _ []byte) (*eventsv1.Event, error) {
	return e, nil
}

// It can be scraped by several at any time of the life of a broadcaster.
func TestCollectAtAnyTime(t *testing.T) {
	broadcaster := events.NewBroadcaster(sink{})
	registry := registryOf(t, NewCollector(broadcaster, Options{}))
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
			pod := &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "ns", Name: fmt.Sprint("pod-", n%20)}
			recorder.Eventf(pod, nil, corev1.EventTypeWarning, "Tested", "Testing", "number %d", n)
		}
	}
	emit()
	require.NoError(t, broadcaster.StartRecordingToSinkWithContext(t.Context()))
	emit()
	require.NoError(t, broadcaster.Flush(t.Context()))
	broadcaster.Shutdown()
	emit()
	stop()
	scrapers.Wait()
	got := string(gathered(t, registry))
	for _, line := range []string{
		fmt.Sprintf("eventseries_occurrences_total %d", emitted),
		fmt.Sprintf(`eventseries_occurrences_dropped_total{reason="Shutdown"} %d`, emitted/3),
		`eventseries_series{state="ongoing"} 0`,
		`eventseries_waiting_series 0`,
		`eventseries_distinct_values{field="reason"} 1`,
		`eventseries_request_duration_seconds_count{verb="create"} 20`,
	} {
		assert.Contains(t, got, "\n"+line+"\n")
	}
}

// Whatever is emitted, labels have none of it, and there are not more of them.
func TestCardinality(t *testing.T) {
	broadcaster := events.NewBroadcaster(sink{})
	registry := registryOf(t, NewCollector(broadcaster, Options{}))
	recorder := broadcaster.NewRecorderWithOptions(nil, "example.com/secret", events.RecorderOptions{DistinctNotes: 10})
	require.NoError(t, broadcaster.StartRecordingToSinkWithContext(t.Context()))
	for n := range 50 {
		secret := fmt.Sprint("secret-", n)
		pod := &corev1.ObjectReference{APIVersion: secret, Kind: secret, Namespace: secret, Name: secret, UID: "secret", FieldPath: secret}
		recorder.AnnotatedEventf(pod, pod, map[string]string{"secret": secret}, corev1.EventTypeNormal, secret, secret, secret)
		recorder.Eventf(pod, nil, secret, secret, secret, secret)
	}
	broadcaster.Shutdown()
	got := string(gathered(t, registry))
	assert.Contains(t, got, `reason="InvalidType"} 50`)
	assert.NotContains(t, got, "secret")

	// The most that there can be.
	full := someStats()
	for _, kind := range []string{"create", "recreate", "series", "heartbeat", "finish", "flush", "look", "close", "successor", "list"} {
		for _, outcome := range []string{"written", "pushedBack", "troubled", "denied", "gone", "changed", "taken", "refused"} {
			full.Writes[events.WriteKey{Kind: kind, Outcome: outcome}] = 1
		}
	}
	h := events.Histogram{Buckets: make([]events.Bucket, 12)}
	for i := range h.Buckets {
		h.Buckets[i].Bound = time.Duration(i)
	}
	full.Durations = map[string]events.Histogram{"create": h, "patch": h, "list": h}
	n := 0
	for line := range strings.Lines(string(gathered(t, registryOf(t, NewCollector(full, Options{}))))) {
		if !strings.HasPrefix(line, "#") {
			n++
		}
	}
	assert.Less(t, n, 200)
	t.Logf("%d time series at most", n)
}

func BenchmarkCollect(b *testing.B) {
	broadcaster := events.NewBroadcaster(sink{})
	defer broadcaster.Shutdown()
	registry := prometheus.NewRegistry()
	registry.MustRegister(NewCollector(broadcaster, Options{}))
	recorder := broadcaster.NewRecorder(nil, "example.com/metrics")
	for n := range 10000 {
		pod := &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "ns", Name: fmt.Sprint("pod-", n)}
		recorder.Eventf(pod, nil, corev1.EventTypeWarning, "Tested", "Testing", "note")
	}
	for b.Loop() {
		if _, err := registry.Gather(); err != nil {
			b.Fatal(err)
		}
	}
}
