package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	typedeventsv1 "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/rest"
	watchtools "k8s.io/client-go/tools/watch"
)

// clients are those that the demo uses. The recorder has one of its own, so that
// its requests alone are counted.
type clients struct {
	namespaces typedcorev1.NamespaceInterface
	observing  typedeventsv1.EventInterface // in all namespaces
	recording  *typedeventsv1.EventsV1Client
}

// newClients returns clients for the server of a kubeconfig. counted counts the
// requests of the recorder.
func newClients(kubeconfig string, counted *requests) (*clients, error) {
	config, err := readKubeconfig(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	core, err := typedcorev1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	observing, err := typedeventsv1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	counting := rest.CopyConfig(config)
	counting.Wrap(counted.wrap)
	recording, err := typedeventsv1.NewForConfig(counting)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	return &clients{
		namespaces: core.Namespaces(),
		observing:  observing.Events(metav1.NamespaceAll),
		recording:  recording,
	}, nil
}

// prepare creates the namespaces that the Events go to. A young server may not
// have come to create kube-system itself.
func (c *clients) prepare(ctx context.Context) error {
	for _, name := range []string{namespace, metav1.NamespaceSystem} {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := c.namespaces.Create(ctx, ns, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create namespace %s: %w", name, err)
		}
	}
	return nil
}

// list returns all Events that the server has.
func (c *clients) list(ctx context.Context) (*eventsv1.EventList, error) {
	list, err := c.observing.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list Events: %w", err)
	}
	return list, nil
}

// watch returns a watch of all changes of Events from now on, which goes on
// where it was when its connection breaks. The caller has to stop it and to wait
// until it is done.
func (c *clients) watch(ctx context.Context) (*watchtools.RetryWatcher, error) {
	list, err := c.list(ctx)
	if err != nil {
		return nil, err
	}
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, list.ResourceVersion, eventWatcher{c.observing})
	if err != nil {
		return nil, fmt.Errorf("watch Events: %w", err)
	}
	return watcher, nil
}

type eventWatcher struct{ events typedeventsv1.EventInterface }

func (w eventWatcher) WatchWithContext(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	return w.events.Watch(ctx, opts)
}
