package events_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/eventseries/eventseries/events"
)

// Replicas of a controller elect a leader. With SameController the next leader
// continues the series of the previous one, in one Event with one count.
func Example_leaderElection() {
	clientset := fake.NewClientset() // or kubernetes.NewForConfig
	for _, replica := range []string{"scheduler-0", "scheduler-1"} {
		lead(clientset, replica)
	}

	list, err := clientset.EventsV1().Events("shop").List(context.Background(), metav1.ListOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, event := range list.Items {
		fmt.Printf("%s (x%d), first seen by %s\n", event.Note, event.Series.Count, event.ReportingInstance)
	}
	// Output:
	// no node has room (x2000), first seen by scheduler-0
}

// lead is the program of a replica.
func lead(clientset kubernetes.Interface, replica string) {
	broadcaster, err := events.New(&events.EventSinkImpl{Interface: clientset.EventsV1()}, events.Options{
		Scope:             events.SameController,
		ReportingInstance: replica,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer broadcaster.Shutdown()
	recorder := broadcaster.NewRecorder(scheme.Scheme, "example.com/scheduler")

	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: "shop", Name: "scheduler"},
			Client:     clientset.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: replica},
		},
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				defer close(done)
				// Start when the leader is elected. A manager of controller-runtime
				// does that after mgr.Add(broadcaster).
				if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
					fmt.Println(err)
				}
				for range 1000 { // a hot loop
					recorder.Eventf(pod, nil, corev1.EventTypeWarning, "NoRoom", "Schedule", "no node has room")
				}
				cancel()
			},
			OnStoppedLeading: func() {},
		},
	})
	<-done
}
