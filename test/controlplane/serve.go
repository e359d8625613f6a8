package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// startTimeout bounds the start. It takes a few seconds, or much longer on a machine
// that is busy compiling.
const startTimeout = 3 * time.Minute

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
	if err := cfg.choosePorts(ctx); err != nil {
		return err
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
	var cert []byte
	err := poll(ctx, func() (err error) {
		cert, err = os.ReadFile(filepath.Join(certDir(cfg), "apiserver.crt"))
		return err
	})
	if err != nil {
		return err
	}
	content, err := kubeconfig(host, cert, append([]user{creds.admin}, cfg.users...))
	if err != nil {
		return err
	}
	if err := waitReady(ctx, content); err != nil {
		return err
	}
	file := filepath.Join(cfg.dataDir, "kubeconfig")
	if cfg.kubeconfig != "" {
		if file, err = filepath.Abs(cfg.kubeconfig); err != nil {
			return fmt.Errorf("controlplane: kubeconfig: %w", err)
		}
	}
	if err := os.WriteFile(file, content, 0o600); err != nil {
		return fmt.Errorf("controlplane: kubeconfig: %w", err)
	}
	if _, err := fmt.Fprintf(stdout, "ready %s kubeconfig=%s\n", host, file); err != nil {
		return fmt.Errorf("controlplane: announce: %w", err)
	}
	return nil
}
