package main

import (
	"context"
	"fmt"
	"net/url"

	"go.etcd.io/etcd/server/v3/embed"
)

// loopback returns the address of a port on 127.0.0.1.
func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// etcdServer is an etcd that runs in this process.
type etcdServer struct {
	*embed.Etcd
	quiet func() // ends the log
}

// startEtcd starts an etcd with a single member that stores its data in dir, and waits
// until it serves clients on the port. The caller must close it.
func startEtcd(ctx context.Context, dir string, port, verbosity int) (*etcdServer, error) {
	cfg := embed.NewConfig()
	cfg.Dir = dir
	client := []url.URL{{Scheme: "http", Host: loopback(port)}}
	// The peer URL is a part of the member's identity, but a single member has no
	// peers, so any port will do.
	peer := []url.URL{{Scheme: "http", Host: loopback(0)}}
	quiet, err := setEtcdOptions(cfg, client, peer, verbosity)
	if err != nil {
		return nil, fmt.Errorf("controlplane: etcd log: %w", err)
	}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	// A single member needs no long elections. They delay the start, and etcd extends
	// leases that are shorter than 1.5 elections, which affects a TTL of one second.
	cfg.TickMs, cfg.ElectionMs = 20, 200
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		return nil, fmt.Errorf("controlplane: etcd on port %d: %w", port, err)
	}
	select {
	case <-e.Server.ReadyNotify():
		return &etcdServer{Etcd: e, quiet: quiet}, nil
	case err = <-e.Err():
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	e.Close()
	return nil, fmt.Errorf("controlplane: etcd on port %d: %w", port, err)
}

// close stops etcd and waits for its exit.
func (e *etcdServer) close() {
	// etcd logs an error for each listener that it closes.
	e.quiet()
	e.Close()
}
