package controllerruntime_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/eventseries/eventseries/compat"
	"github.com/eventseries/eventseries/controllerruntime"
	"github.com/eventseries/eventseries/events"
)

// followed is a manager that calls a function when it has stopped.
type followed struct {
	manager.Manager
	stopped func()
}

func (f followed) Start(ctx context.Context) error {
	defer f.stopped()
	return f.Manager.Start(ctx)
}

// A provider of multicluster-runtime starts clusters in goroutines for which the manager does not wait.
func TestClusterForWhichTheManagerDoesNotWait(t *testing.T) {
	config := &rest.Config{Host: "https://cluster.invalid"}
	remoteClients := fake.NewClientset()
	broadcaster := events.NewBroadcaster(compat.NewSink(remoteClients))
	remote, err := controllerruntime.NewCluster(config, broadcaster)
	require.NoError(t, err)
	created, answers := make(chan struct{}), make(chan struct{})
	remoteClients.PrependReactor("create", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
		close(created)
		return false, nil, nil
	})
	remoteClients.PrependReactor("patch", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
		<-answers
		return false, nil, nil
	})
	local, err := controllerruntime.NewManager(config, ctrl.Options{Metrics: server.Options{BindAddress: "0"}}, nil)
	require.NoError(t, err)
	mgr := followed{local, func() { time.AfterFunc(100*time.Millisecond, func() { close(answers) }) }} // the server is slower
	ctx, cancel := context.WithCancel(t.Context())
	var provider sync.WaitGroup
	require.NoError(t, mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		provider.Go(func() { _ = remote.Start(ctx) })
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0"}}
		remote.GetEventRecorder("tester").Eventf(pod, nil, corev1.EventTypeWarning, "Failed", "Try", "it fails")
		<-created
		for range 99 {
			remote.GetEventRecorder("tester").Eventf(pod, nil, corev1.EventTypeWarning, "Failed", "Try", "it fails")
		}
		cancel()
		return nil
	})))

	err = mgr.Start(ctx)
	broadcaster.Shutdown() // of each remote cluster
	require.NoError(t, err)
	list, err := remoteClients.CoreV1().Events("shop").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	assert.EqualValues(t, 100, list.Items[0].Count)
	provider.Wait()
}
