package metrics_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/events/metrics"
)

// This program serves its metrics itself. Under a manager of controller-runtime, register
// with metrics.Registry of sigs.k8s.io/controller-runtime/pkg/metrics, which the manager
// serves.
func Example() {
	clientset := fake.NewClientset() // or kubernetes.NewForConfig
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: clientset.EventsV1()})

	registry := prometheus.NewRegistry() // or prometheus.DefaultRegisterer
	registry.MustRegister(metrics.NewCollector(broadcaster, metrics.Options{}))
	handler := promhttp.HandlerFor(registry, promhttp.HandlerOpts{}) // for http.Handle("/metrics", handler)

	ctx := context.Background()
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		fmt.Println(err)
		return
	}
	recorder := broadcaster.NewRecorder(scheme.Scheme, "example.com/backup-controller")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db-0"}}
	for range 1000 { // a hot loop
		recorder.Eventf(pod, nil, corev1.EventTypeWarning, "NoSpaceLeft", "BackUp", "the volume is full")
	}
	broadcaster.Shutdown()

	response := httptest.NewRecorder()
	handler.ServeHTTP(response, httptest.NewRequestWithContext(ctx, http.MethodGet, "/metrics", nil))
	for line := range strings.Lines(response.Body.String()) {
		if strings.HasPrefix(line, "eventseries_occurrences_total") {
			fmt.Print(line)
		}
	}
	// Output:
	// eventseries_occurrences_total 1000
}

// Labels tell several broadcasters in one registry apart.
func ExampleNewCollector() {
	registry := prometheus.NewRegistry()
	for _, name := range []string{"backup", "restore"} {
		broadcaster := events.NewBroadcaster(nil) // a sink in programs
		defer broadcaster.Shutdown()
		registry.MustRegister(metrics.NewCollector(broadcaster, metrics.Options{
			ConstLabels: prometheus.Labels{"broadcaster": name},
		}))
	}
	err := testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP eventseries_occurrences_total Emitted events, with dropped and without filtered ones.
# TYPE eventseries_occurrences_total counter
eventseries_occurrences_total{broadcaster="backup"} 0
eventseries_occurrences_total{broadcaster="restore"} 0
`), "eventseries_occurrences_total")
	fmt.Println(err)
	// Output:
	// <nil>
}
