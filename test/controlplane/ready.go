package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// readyPaths answer 200 when the server is of use: the health check, which
// covers RBAC's default roles, and the namespaces that Events without a
// namespace of their own go to, which the server creates a moment later.
var readyPaths = []string{"/readyz", "/api/v1/namespaces/default", "/api/v1/namespaces/kube-system"}

// readyInterval is the time between two looks.
const readyInterval = 50 * time.Millisecond

// waitReady returns when the server at host answers every one of readyPaths. It
// reads the certificate anew at each look, because the server writes it only
// while it starts. The caller bounds ctx.
func waitReady(ctx context.Context, host, certFile, token string) error {
	ticker := time.NewTicker(readyInterval)
	defer ticker.Stop()
	for {
		err := checkReady(ctx, host, certFile, token)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("controlplane: not ready: %w (%w)", context.Cause(ctx), err)
		case <-ticker.C:
		}
	}
}

func checkReady(ctx context.Context, host, certFile, token string) error {
	cert, err := os.ReadFile(certFile)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(cert) {
		return fmt.Errorf("no certificate in %s", certFile)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: 5 * time.Second}
	for _, path := range readyPaths {
		if err := get(ctx, client, host+path, token); err != nil {
			return err
		}
	}
	return nil
}

func get(ctx context.Context, client *http.Client, url, token string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(resp.Body)
	if closeErr := resp.Body.Close(); err == nil {
		err = closeErr
	}
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s: %.500s", url, resp.Status, body)
	}
	return err
}
