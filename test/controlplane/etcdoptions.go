//go:build !oldserver

package main

import (
	"net/url"

	"go.etcd.io/etcd/client/pkg/v3/logutil"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// setEtcdOptions sets what has other names before etcd 3.6. It returns a function that
// ends the log.
func setEtcdOptions(cfg *embed.Config, client, peer []url.URL, verbosity int) (quiet func(), err error) {
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = client, client
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = peer, peer
	cfg.UnsafeNoFsync = true
	level := zap.NewAtomicLevelAt(zap.ErrorLevel)
	if verbosity > 0 {
		level.SetLevel(zap.InfoLevel)
	}
	logConfig := logutil.DefaultZapLoggerConfig
	logConfig.Level = level
	logger, err := logConfig.Build()
	if err != nil {
		return nil, err
	}
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(logger)
	return func() { level.SetLevel(zap.FatalLevel) }, nil
}
