//go:build oldserver

package main

import (
	"encoding/json"
	"os"

	"go.etcd.io/etcd/server/v3/embed"
)

// etcdConfig returns the configuration of an etcd before 3.6. The names in a
// configuration file are the same in all versions, but not those in the structure. etcd
// calls fsync: 3.4 loses data without it.
func etcdConfig(dir, host string, verbosity int) (cfg *embed.Config, quiet func(), err error) {
	client, peer := "http://"+host, "http://"+loopback(0)
	config := map[string]any{
		"data-dir":                    dir,
		"listen-client-urls":          client,
		"advertise-client-urls":       client,
		"listen-peer-urls":            peer,
		"initial-advertise-peer-urls": peer,
		"initial-cluster":             embed.DefaultName + "=" + peer,
		"heartbeat-interval":          20,
		"election-timeout":            200,
		"logger":                      "zap",
		"log-level":                   "error",
	}
	if verbosity > 0 {
		config["log-level"] = "info"
	}
	file := dir + ".json"
	content, err := json.Marshal(config)
	if err == nil {
		err = os.WriteFile(file, content, 0o600)
	}
	if err != nil {
		return nil, nil, err
	}
	cfg, err = embed.ConfigFromFile(file)
	return cfg, func() {}, err
}
