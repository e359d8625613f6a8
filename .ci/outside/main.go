// Command outside is a program of a user: it requires the released modules, and emits
// events with each recorder.
package main

import (
	"context"
	"fmt"
	"log"
	"maps"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/eventseries/eventseries/compat/record"
	"github.com/eventseries/eventseries/controllerruntime"
	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/events/eventstest"
)

var pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "uid-of-web"}}

func main() {
	server := &eventstest.Server{}
	broadcaster := events.NewBroadcaster(server)
	if err := broadcaster.StartRecordingToSinkWithContext(context.Background()); err != nil {
		log.Fatal(err)
	}
	recorder := broadcaster.NewRecorder(scheme.Scheme, "example.com/outside")
	for range 3 {
		recorder.Eventf(pod, nil, corev1.EventTypeWarning, "Failed", "Testing", "it failed")
	}

	// The recorder of a manager writes to the same server.
	config := &rest.Config{Host: "http://127.0.0.1:1"}
	mgr, err := controllerruntime.NewManager(config, ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}}, broadcaster)
	if err != nil {
		log.Fatal(err)
	}
	mgr.GetEventRecorder("example.com/manager").Eventf(pod, nil, corev1.EventTypeNormal, "Tested", "Testing", "it passed")
	broadcaster.Shutdown()
	counts := map[string]int32{}
	for _, event := range server.Events() { // in any order
		counts[event.Reason] = 1
		if event.Series != nil {
			counts[event.Reason] = event.Series.Count
		}
	}
	if want := map[string]int32{"Failed": 3, "Tested": 1}; !maps.Equal(counts, want) {
		log.Fatalf("wrote %v, want %v", counts, want)
	}

	sink := &coreSink{}
	legacy := record.NewBroadcaster()
	legacy.StartRecordingToSink(sink)
	legacy.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "outside"}).Event(pod, corev1.EventTypeNormal, "Tested", "it passed")
	legacy.Shutdown()
	if sink.created.Load() != 1 {
		log.Fatalf("the legacy recorder wrote %d Events, want 1", sink.created.Load())
	}
	fmt.Println("outside: emitted events with each recorder")
}

// coreSink is a sink for core/v1.
type coreSink struct{ created atomic.Int64 }

func (s *coreSink) Create(event *corev1.Event) (*corev1.Event, error) {
	s.created.Add(1)
	return event, nil
}
func (s *coreSink) Update(event *corev1.Event) (*corev1.Event, error)          { return event, nil }
func (s *coreSink) Patch(event *corev1.Event, _ []byte) (*corev1.Event, error) { return event, nil }
