package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clientcmdlatest "k8s.io/client-go/tools/clientcmd/api/latest"

	"github.com/eventseries/eventseries/events"
)

// server is an API server.
type server interface {
	events.EventSink
	events.EventLister
}

// sink is the sink of the recorder. It counts the requests, and passes on the Events that
// the server returns.
type sink struct {
	server
	requests atomic.Int64
	stored   chan<- *eventsv1.Event
}

func (s *sink) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	s.requests.Add(1)
	return s.pass(s.server.Create(ctx, event))
}

func (s *sink) Patch(ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
	s.requests.Add(1)
	return s.pass(s.server.Patch(ctx, event, data))
}

func (s *sink) List(ctx context.Context, namespace string, opts metav1.ListOptions) (*eventsv1.EventList, error) {
	s.requests.Add(1)
	return s.server.List(ctx, namespace, opts)
}

func (s *sink) pass(event *eventsv1.Event, err error) (*eventsv1.Event, error) {
	if err == nil {
		s.stored <- event.DeepCopy()
	}
	return event, err
}

// newClient returns a client for the server of a kubeconfig, and creates the namespaces of
// the Events. A server that has just started may not have created kube-system yet.
func newClient(ctx context.Context, kubeconfig string) (server, error) {
	config, err := readKubeconfig(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", kubeconfig, err)
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	for _, name := range []string{namespace, metav1.NamespaceSystem} {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := clients.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return nil, fmt.Errorf("create namespace %s: %w", name, err)
		}
	}
	return &events.EventSinkImpl{Interface: clients.EventsV1()}, nil
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
		return nil, err
	}
	current := cmp.Or(config.Contexts[config.CurrentContext], &clientcmdapi.Context{})
	cluster, user := config.Clusters[current.Cluster], config.AuthInfos[current.AuthInfo]
	if cluster == nil || user == nil {
		return nil, fmt.Errorf("context %q has no cluster or no user", config.CurrentContext)
	}
	return &rest.Config{
		Host:            cluster.Server,
		BearerToken:     user.Token,
		TLSClientConfig: rest.TLSClientConfig{CAData: cluster.CertificateAuthorityData},
	}, nil
}
