package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

const (
	// startTimeout bounds the start. It takes a few seconds, or much longer on a machine
	// that is busy compiling.
	startTimeout   = 3 * time.Minute
	readyInterval  = 50 * time.Millisecond
	requestTimeout = 5 * time.Second
)

// readyPaths are the paths that a ready server answers with 200: the health check,
// which covers the default RBAC roles, and the namespaces of Events about
// cluster-scoped objects, which the server creates a moment later.
var readyPaths = []string{"/readyz", "/api/v1/namespaces/default", "/api/v1/namespaces/kube-system"}

var errStartTimeout = errors.New("the start takes too long")

// serve runs etcd, unless the server is a secondary one, and the API server until ctx ends,
// and prints a line to stdout when they are ready. If ctx ends during the start, that is
// not an error.
func serve(ctx context.Context, cfg config, stdout io.Writer) error {
	var err error
	cfg.dataDir, err = filepath.Abs(cfg.dataDir)
	if err == nil {
		err = os.MkdirAll(cfg.dataDir, 0o700)
	}
	if err != nil {
		return fmt.Errorf("controlplane: data directory: %w", err)
	}
	creds, err := prepareCredentials(cfg.dataDir, cfg.users)
	if err != nil {
		return err
	}

	running, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	timeout := time.AfterFunc(startTimeout, func() { stop(errStartTimeout) })
	var etcdFailed <-chan error // nil for a secondary server
	if !cfg.secondary {
		etcd, err := startEtcd(running, filepath.Join(cfg.dataDir, "etcd"), cfg.etcdPort, cfg.verbosity)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		defer etcd.close()
		etcdFailed = etcd.Err()
	}
	api, err := startAPIServer(apiServerArgs(cfg, creds), cfg.verbosity)
	if err != nil {
		return err
	}
	go func() {
		select {
		case <-api.done:
			stop(fmt.Errorf("controlplane: kube-apiserver exited: %w", api.err))
		case err := <-etcdFailed:
			stop(fmt.Errorf("controlplane: etcd failed: %w", err))
		case <-running.Done():
		}
	}()

	err = announce(running, cfg, creds, stdout)
	if err == nil {
		timeout.Stop()
		<-running.Done()
		err = context.Cause(running)
	}
	if ctx.Err() != nil {
		err = nil
	}
	if stopErr := api.stop(); err == nil {
		err = stopErr
	}
	return err
}

// announce waits until the server is ready, writes the kubeconfig and prints the
// line.
func announce(ctx context.Context, cfg config, creds credentials, stdout io.Writer) error {
	host := "https://" + loopback(cfg.port)
	cert, err := waitReady(ctx, host, filepath.Join(certDir(cfg), "apiserver.crt"), creds.users[0].token)
	if err != nil {
		return err
	}
	content, err := kubeconfig(host, cert, creds.users)
	if err != nil {
		return err
	}
	file := filepath.Join(cfg.dataDir, "kubeconfig")
	if cfg.kubeconfig != "" {
		file, err = filepath.Abs(cfg.kubeconfig)
	}
	if err == nil {
		err = os.WriteFile(file, content, 0o600)
	}
	if err == nil {
		_, err = fmt.Fprintf(stdout, "ready %s kubeconfig=%s\n", host, file)
	}
	if err != nil {
		return fmt.Errorf("controlplane: kubeconfig: %w", err)
	}
	return nil
}

// waitReady polls the server until it answers all readyPaths, or until ctx ends. It returns
// the certificate in the file, which the server writes.
func waitReady(ctx context.Context, host, certFile, token string) ([]byte, error) {
	for {
		cert, err := os.ReadFile(certFile)
		if err == nil {
			err = checkReady(ctx, host, cert, token)
		}
		if err == nil {
			return cert, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("controlplane: not ready: %w (%w)", context.Cause(ctx), err)
		case <-time.After(readyInterval):
		}
	}
}

func checkReady(ctx context.Context, host string, cert []byte, token string) error {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(cert)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()
	client := http.Client{Transport: transport, Timeout: requestTimeout}
	for _, path := range readyPaths {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, host+path, nil)
		if err != nil {
			return err
		}
		request.Header.Set("Authorization", "Bearer "+token)
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		_ = response.Body.Close() // nothing of it is needed
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("GET %s: %s", path, response.Status)
		}
	}
	return nil
}
