//go:build !oldserver

package main

import (
	"fmt"
	"net/url"

	"go.etcd.io/etcd/client/pkg/v3/logutil"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// etcdConfig returns the configuration of an etcd that serves clients on host, and a
// function that ends its log.
func etcdConfig(dir, host string, verbosity int) (cfg *embed.Config, quiet func(), err error) {
	cfg = embed.NewConfig()
	cfg.Dir = dir
	client := url.URL{Scheme: "http", Host: host}
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
		return nil, nil, fmt.Errorf("log: %w", err)
	}
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(logger)
	return cfg, func() { level.SetLevel(zap.FatalLevel) }, nil
}
