package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// startTimeout bounds a start. It takes a few seconds, much longer on a machine
// that is busy compiling.
const startTimeout = 3 * time.Minute

// serve runs etcd and the API server until ctx ends, and prints a line on
// stdout when they are ready. A stop that was asked for is no error, even while
// they start.
func serve(ctx context.Context, cfg config, stdout io.Writer) (err error) {
	dir, err := filepath.Abs(cfg.dataDir)
	if err != nil {
		return fmt.Errorf("controlplane: data directory: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("controlplane: data directory: %w", err)
	}
	p, err := choosePorts(ctx, dir, ports{API: cfg.port, Etcd: cfg.etcdPort})
	if err != nil {
		return err
	}
	creds, err := prepareCredentials(dir, cfg.users)
	if err != nil {
		return err
	}

	etcd, err := startEtcd(ctx, filepath.Join(dir, "etcd"), p.Etcd, cfg.verbosity)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	defer etcd.close()
	api, err := startAPIServer(apiServerArgs(cfg, dir, p, creds), cfg.verbosity)
	if err != nil {
		return err
	}
	defer func() {
		if stopErr := api.stop(); err == nil {
			err = stopErr
		}
	}()

	// Whatever ends first ends the wait: the request to stop, or one of the two.
	running, stopped := context.WithCancelCause(ctx)
	defer stopped(nil)
	go func() {
		select {
		case <-api.done:
			stopped(fmt.Errorf("controlplane: kube-apiserver ended: %w", api.err))
		case err := <-etcd.Err():
			stopped(fmt.Errorf("controlplane: etcd ended: %w", err))
		case <-running.Done():
		}
	}()
	if err := announce(running, cfg, dir, p, creds, stdout); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	<-running.Done()
	if ctx.Err() != nil {
		return nil
	}
	return context.Cause(running)
}

// announce waits until the server is ready, writes the kubeconfig and prints
// the line.
func announce(ctx context.Context, cfg config, dir string, p ports, creds credentials, stdout io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	host := "https://" + loopback(p.API)
	if err := waitReady(ctx, host, servingCert(dir), creds.admin.token); err != nil {
		return err
	}
	cert, err := os.ReadFile(servingCert(dir))
	if err != nil {
		return fmt.Errorf("controlplane: serving certificate: %w", err)
	}
	content, err := kubeconfig(host, cert, append([]user{creds.admin}, cfg.users...))
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "kubeconfig")
	if cfg.kubeconfig != "" {
		if file, err = filepath.Abs(cfg.kubeconfig); err != nil {
			return fmt.Errorf("controlplane: kubeconfig: %w", err)
		}
	}
	if err := writeFile(file, content); err != nil {
		return fmt.Errorf("controlplane: kubeconfig: %w", err)
	}
	if _, err := fmt.Fprintf(stdout, "ready %s kubeconfig=%s\n", host, file); err != nil {
		return fmt.Errorf("controlplane: announce: %w", err)
	}
	return nil
}
