package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAPIServerArgs(t *testing.T) {
	cfg := config{
		eventTTL: time.Minute, disableAdmission: "ServiceAccount", enableAdmission: "EventRateLimit",
		admissionConfig: "f", apiserverArgs: []string{"--event-ttl=5s"},
	}
	args := apiServerArgs(cfg, "dir", ports{API: 7, Etcd: 8}, credentials{tokenFile: "tokens", serviceAccountKey: "key"})
	for _, want := range []string{
		"--etcd-servers=http://127.0.0.1:8", "--bind-address=127.0.0.1", "--secure-port=7",
		"--token-auth-file=tokens", "--authorization-mode=RBAC", "--event-ttl=1m0s",
		"--disable-admission-plugins=ServiceAccount", "--enable-admission-plugins=EventRateLimit",
		"--admission-control-config-file=f",
	} {
		assert.Contains(t, args, want)
	}
	assert.Equal(t, "--event-ttl=5s", args[len(args)-1], "what is given explicitly comes last and wins")

	assert.Contains(t, apiServerArgs(config{etcdEndpoint: "127.0.0.1:9"}, "dir", ports{Etcd: 8}, credentials{}),
		"--etcd-servers=http://127.0.0.1:9")

	plain := apiServerArgs(config{}, "dir", ports{}, credentials{})
	for _, arg := range plain {
		assert.False(t, strings.HasPrefix(arg, "--enable-admission") || strings.HasPrefix(arg, "--admission"), arg)
	}
}

func TestStartAPIServerRefusesFlagsThatItDoesNotKnow(t *testing.T) {
	_, err := startAPIServer([]string{"--no-such-flag"}, 0)
	require.ErrorContains(t, err, "no-such-flag")
	_, err = startAPIServer([]string{"stray"}, 0)
	assert.ErrorContains(t, err, `"stray"`)
}
