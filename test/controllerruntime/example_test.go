package controllerruntime_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/events/metrics"
	"github.com/eventseries/eventseries/test/controllerruntime"
)

// A program with a manager that provides recorders of this project. Its controllers
// ask the manager for a recorder, as before.
func ExampleNewManager() {
	clientset := fake.NewClientset()                                 // or kubernetes.NewForConfig
	config := &rest.Config{Host: "https://not.used.in.this.example"} // or ctrl.GetConfigOrDie()

	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: clientset.EventsV1()})
	mgr, err := controllerruntime.NewManager(config, ctrl.Options{Metrics: server.Options{BindAddress: "0"}}, broadcaster)
	if err != nil {
		fmt.Println(err)
		return
	}

	ctx, cancel := context.WithCancel(context.Background()) // or ctrl.SetupSignalHandler()
	recorder := mgr.GetEventRecorder("example.com/backup-controller")
	err = mgr.Add(manager.RunnableFunc(func(context.Context) error {
		defer cancel()
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db-0"}}
		for range 1000 { // a hot loop
			recorder.Eventf(pod, nil, corev1.EventTypeWarning, "NoSpaceLeft", "BackUp", "the volume is full")
		}
		return nil
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := mgr.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}

	list, err := clientset.EventsV1().Events("shop").List(context.Background(), metav1.ListOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, event := range list.Items {
		fmt.Printf("%s %s: %s (x%d)\n", event.ReportingController, event.Regarding.Name, event.Note, event.Series.Count)
	}
	// Output:
	// example.com/backup-controller db-0: the volume is full (x1000)
}

// The manager serves the metrics in the registry of controller-runtime at the address
// in ctrl.Options.Metrics.
func ExampleNewManager_metrics() {
	clientset := fake.NewClientset() // or kubernetes.NewForConfig
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: clientset.EventsV1()})
	collector := metrics.NewCollector(broadcaster, metrics.Options{})
	ctrlmetrics.Registry.MustRegister(collector)
	defer ctrlmetrics.Registry.Unregister(collector) // only in this example

	config := &rest.Config{Host: "https://not.used.in.this.example"} // or ctrl.GetConfigOrDie()
	mgr, err := controllerruntime.NewManager(config, ctrl.Options{Metrics: server.Options{BindAddress: "0"}}, broadcaster)
	if err != nil {
		fmt.Println(err)
		return
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db-0"}}
	mgr.GetEventRecorder("example.com/backup-controller").Eventf(pod, nil, corev1.EventTypeNormal, "Started", "BackUp", "started")

	families, err := ctrlmetrics.Registry.Gather()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range families {
		if f.GetName() == "eventseries_occurrences_total" {
			fmt.Println(f.GetMetric()[0].GetCounter().GetValue())
		}
	}
	// Output:
	// 1
}
