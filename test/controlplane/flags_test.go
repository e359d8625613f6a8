package main

import (
	"flag"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseFlags(t *testing.T) {
	cfg, err := parseFlags(strings.Fields("--data-dir d --port 1 --etcd-port=2 --etcd-endpoint 127.0.0.1:3 --secondary --kubeconfig k --event-ttl 10s"+
		" --user ann:a --user bob:b:devs,system:masters -v 3 --lifeline --remove-orphaned-data -- --max-requests-inflight=7 -v 4"), io.Discard)
	require.NoError(t, err)
	assert.Equal(t, config{
		dataDir: "d", port: 1, etcdPort: 2, etcdEndpoint: "127.0.0.1:3", secondary: true, kubeconfig: "k", eventTTL: 10 * time.Second,
		users: []user{
			{name: "ann", token: "a"},
			{name: "bob", token: "b", groups: []string{"devs", "system:masters"}},
		},
		verbosity: 3, lifeline: true, removeOrphanedData: true,
		apiserverArgs: []string{"--max-requests-inflight=7", "-v", "4"},
	}, cfg)

	cfg, err = parseFlags(nil, io.Discard)
	require.NoError(t, err)
	assert.Equal(t, config{eventTTL: time.Hour}, cfg)
}

func TestParseFlagsRejects(t *testing.T) {
	for args, want := range map[string]string{
		"--port=70000":               "--port=70000",
		"--etcd-port=-1":             "--etcd-port=-1",
		"--port=7 --etcd-port=7":     "both 7",
		"--etcd-endpoint=proxy":      "proxy",
		"--event-ttl=999ms":          "999ms",
		"--secondary --data-dir=d":   "--etcd-endpoint",
		"--remove-orphaned-data":     "--lifeline",
		"--user=ann":                 "name:token",
		"--user=:token":              "name:token",
		"--user=ann:":                "name:token",
		"--user=ann:a --user=ann:b":  `"ann"`,
		"--user=admin:token":         `"admin"`,
		"stray":                      `"stray"`,
		"--port=1 stray -- --v=2":    `"stray"`,
		"--no-such-flag":             "no-such-flag",
		"--event-ttl=1h --port=port": "port",
	} {
		_, err := parseFlags(strings.Fields(args), io.Discard)
		require.ErrorContains(t, err, want, args)
		assert.ErrorContains(t, err, "controlplane: ", args)
	}
	_, err := parseFlags([]string{"--help"}, io.Discard)
	assert.ErrorIs(t, err, flag.ErrHelp)
}
