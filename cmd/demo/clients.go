package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	typedeventsv1 "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clientcmdlatest "k8s.io/client-go/tools/clientcmd/api/latest"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/eventseries/eventseries/events"
)

// clients are the clients of a real server. The recorder has its own client, so that the
// demo counts only the recorder's requests.
type clients struct {
	requests
	namespaces typedcorev1.NamespaceInterface
	observing  typedeventsv1.EventInterface // in all namespaces
	recording  *typedeventsv1.EventsV1Client
}

// newClients returns clients for the server of a kubeconfig.
func newClients(kubeconfig string) (*clients, error) {
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
	c := &clients{namespaces: core.Namespaces(), observing: observing.Events(metav1.NamespaceAll)}
	counting := rest.CopyConfig(config)
	counting.Wrap(c.wrap)
	if c.recording, err = typedeventsv1.NewForConfig(counting); err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	return c, nil
}

// sink implements [server].
func (c *clients) sink() events.EventSink { return &events.EventSinkImpl{Interface: c.recording} }

// prepare creates the namespaces of the Events. A server that has just started may not
// have created kube-system yet.
func (c *clients) prepare(ctx context.Context) error {
	for _, name := range []string{namespace, metav1.NamespaceSystem} {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := c.namespaces.Create(ctx, ns, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create namespace %s: %w", name, err)
		}
	}
	return nil
}

// list implements [server].
func (c *clients) list(ctx context.Context) (*eventsv1.EventList, error) {
	list, err := c.observing.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list Events: %w", err)
	}
	return list, nil
}

// watch implements [server]. It reconnects if necessary.
func (c *clients) watch(ctx context.Context) (changes <-chan watch.Event, stop func(), err error) {
	list, err := c.list(ctx)
	if err != nil {
		return nil, nil, err
	}
	// NewRetryWatcherWithContext needs client-go v0.33.
	watcher, err := watchtools.NewRetryWatcher(list.ResourceVersion, &cache.ListWatch{
		WatchFunc: func(opts metav1.ListOptions) (watch.Interface, error) { return c.observing.Watch(ctx, opts) },
	})
	if err != nil {
		return nil, nil, fmt.Errorf("watch Events: %w", err)
	}
	return watcher.ResultChan(), func() {
		watcher.Stop()
		<-watcher.Done()
	}, nil
}

// readKubeconfig returns a client configuration from a kubeconfig of the control plane.
// It supports only embedded certificates and tokens. Package clientcmd supports
// everything, but would add its dependencies to the go.mod of all users.
func readKubeconfig(path string) (*rest.Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var config clientcmdapi.Config
	if err := runtime.DecodeInto(clientcmdlatest.Codec, data, &config); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	current := config.Contexts[config.CurrentContext]
	if current == nil {
		return nil, fmt.Errorf("%s: no context %q", path, config.CurrentContext)
	}
	cluster, user := config.Clusters[current.Cluster], config.AuthInfos[current.AuthInfo]
	if cluster == nil || user == nil {
		return nil, fmt.Errorf("%s: context %q without a cluster or user", path, config.CurrentContext)
	}
	return &rest.Config{
		Host:            cluster.Server,
		BearerToken:     user.Token,
		TLSClientConfig: rest.TLSClientConfig{CAData: cluster.CertificateAuthorityData},
	}, nil
}

// requests counts the requests of a recorder. It is safe for concurrent use. The zero
// value is ready to use.
type requests struct{ creates, patches, others atomic.Int64 }

// calls is a number of requests for each verb.
type calls struct{ creates, patches, others int }

func (c calls) total() int { return c.creates + c.patches + c.others }

// wrap returns a transport that counts requests, for [rest.Config.Wrap].
func (r *requests) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		r.count(request.Method)
		return next.RoundTrip(request)
	})
}

// count counts a request with an HTTP method, or with a verb of the API.
func (r *requests) count(method string) {
	switch method {
	case http.MethodPost, "create":
		r.creates.Add(1)
	case http.MethodPatch, "patch":
		r.patches.Add(1)
	default:
		r.others.Add(1)
	}
}

// calls implements [server].
func (r *requests) calls() calls {
	return calls{
		creates: int(r.creates.Load()),
		patches: int(r.patches.Load()),
		others:  int(r.others.Load()),
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
