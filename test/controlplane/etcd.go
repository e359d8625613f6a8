package main

import (
	"context"
	"fmt"
	"net/url"

	"go.etcd.io/etcd/client/pkg/v3/logutil"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// etcdServer is an etcd that runs in this process.
type etcdServer struct {
	*embed.Etcd
	logLevel zap.AtomicLevel
}

// startEtcd starts an etcd with a single member that stores its data in dir, and waits
// until it serves clients on the port. The caller must close it.
func startEtcd(ctx context.Context, dir string, port, verbosity int) (*etcdServer, error) {
	cfg := embed.NewConfig()
	cfg.Dir = dir
	client := url.URL{Scheme: "http", Host: loopback(port)}
	cfg.ListenClientUrls = []url.URL{client}
	cfg.AdvertiseClientUrls = []url.URL{client}
	// The peer URL is a part of the member's identity, but a single member has no
	// peers, so any port will do.
	peer := url.URL{Scheme: "http", Host: loopback(0)}
	cfg.ListenPeerUrls = []url.URL{peer}
	cfg.AdvertisePeerUrls = []url.URL{peer}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	// A single member needs no long elections. They delay the start, and etcd extends
	// leases that are shorter than 1.5 elections, which affects a TTL of one second.
	cfg.TickMs, cfg.ElectionMs = 20, 200
	cfg.UnsafeNoFsync = true
	level := zap.NewAtomicLevelAt(zap.ErrorLevel)
	if verbosity > 0 {
		level.SetLevel(zap.InfoLevel)
	}
	logConfig := logutil.DefaultZapLoggerConfig
	logConfig.Level = level
	logger, err := logConfig.Build()
	if err != nil {
		return nil, fmt.Errorf("controlplane: etcd log: %w", err)
	}
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(logger)

	e, err := embed.StartEtcd(cfg)
	if err != nil {
		return nil, fmt.Errorf("controlplane: etcd on %s: %w", client.Host, err)
	}
	select {
	case <-e.Server.ReadyNotify():
		return &etcdServer{Etcd: e, logLevel: level}, nil
	case err = <-e.Err():
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	e.Close()
	return nil, fmt.Errorf("controlplane: etcd on %s: %w", client.Host, err)
}

// close stops etcd and waits for its exit.
func (e *etcdServer) close() {
	// etcd logs an error for each listener that it closes.
	e.logLevel.SetLevel(zap.FatalLevel)
	e.Close()
}
