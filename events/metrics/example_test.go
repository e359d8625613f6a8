package metrics_test

import (
	"context"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
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
	server := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	defer server.Close()

	if err := broadcaster.StartRecordingToSinkWithContext(context.Background()); err != nil {
		fmt.Println(err)
		return
	}
	recorder := broadcaster.NewRecorder(scheme.Scheme, "example.com/backup-controller")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db-0"}}
	for range 1000 { // a hot loop
		recorder.Eventf(pod, nil, corev1.EventTypeWarning, "NoSpaceLeft", "BackUp", "the volume is full")
	}
	broadcaster.Shutdown()

	response, err := server.Client().Get(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		fmt.Println(err)
		return
	}
	for line := range strings.Lines(string(text)) {
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
	for _, controller := range []string{"backup", "restore"} {
		broadcaster := events.NewBroadcaster(nil) // a sink in programs
		defer broadcaster.Shutdown()
		registry.MustRegister(metrics.NewCollector(broadcaster, metrics.Options{
			ConstLabels: prometheus.Labels{"controller": controller},
		}))
	}

	families, err := registry.Gather()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range families {
		if f.GetName() == "eventseries_series_capacity" {
			for _, m := range f.GetMetric() {
				fmt.Println(m.GetLabel()[0].GetValue(), m.GetGauge().GetValue())
			}
		}
	}
	// Output:
	// backup 65536
	// restore 65536
}
