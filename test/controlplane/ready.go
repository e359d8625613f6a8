package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// readyPaths are the paths that a ready server answers with 200: the health check,
// which covers the default RBAC roles, and the namespaces of Events about
// cluster-scoped objects, which the server creates a moment later.
var readyPaths = []string{"/readyz", "/api/v1/namespaces/default", "/api/v1/namespaces/kube-system"}

const (
	readyInterval  = 50 * time.Millisecond
	requestTimeout = 5 * time.Second
)

// waitReady polls the server of a kubeconfig until it answers all readyPaths, or until
// ctx ends.
func waitReady(ctx context.Context, kubeconfig []byte) error {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return fmt.Errorf("controlplane: kubeconfig: %w", err)
	}
	config.QPS, config.Timeout = -1, requestTimeout
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("controlplane: client: %w", err)
	}
	return poll(ctx, func() error {
		for _, path := range readyPaths {
			if err := clients.Discovery().RESTClient().Get().AbsPath(path).MaxRetries(0).Do(ctx).Error(); err != nil {
				return err
			}
		}
		return nil
	})
}

// poll calls check until it returns nil, or until ctx ends.
func poll(ctx context.Context, check func() error) error {
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("controlplane: not ready: %w (%w)", context.Cause(ctx), err)
		case <-time.After(readyInterval):
		}
	}
}
