//go:build oldserver

package main

import (
	"fmt"
	"net/url"
	"os"

	"go.etcd.io/etcd/server/v3/embed"
)

// setEtcdOptions is for etcd before 3.6: only the names in its configuration file are
// the same in all versions. It leaves fsync on, because 3.4 loses data without it.
func setEtcdOptions(cfg *embed.Config, client, peer []url.URL, _ int) (quiet func(), err error) {
	file := cfg.Dir + ".json"
	content := fmt.Sprintf(`{"data-dir": %q, "logger": "zap", "log-level": "error",
		"listen-client-urls": %q, "advertise-client-urls": %[2]q,
		"listen-peer-urls": %q, "initial-advertise-peer-urls": %[3]q}`, cfg.Dir, client[0].String(), peer[0].String())
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		return nil, err
	}
	loaded, err := embed.ConfigFromFile(file)
	if err == nil {
		*cfg = *loaded
	}
	return func() {}, err
}
