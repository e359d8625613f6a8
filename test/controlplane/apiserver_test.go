package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestAPIServerArgs(t *testing.T) {
	cfg := config{port: 7, etcdPort: 8, eventTTL: time.Minute, apiserverArgs: []string{"--event-ttl=5s"}}
	args := apiServerArgs(cfg, credentials{tokenFile: "tokens", serviceAccountKey: "key"})
	assert.Subset(t, args, []string{
		"--etcd-servers=http://127.0.0.1:8", "--bind-address=127.0.0.1", "--secure-port=7",
		"--token-auth-file=tokens", "--authorization-mode=RBAC", "--event-ttl=1m0s",
		"--disable-admission-plugins=ServiceAccount",
	})
	assert.Equal(t, "--event-ttl=5s", args[len(args)-1], "explicit flags override")

	cfg.etcdEndpoint = "127.0.0.1:9"
	assert.Contains(t, apiServerArgs(cfg, credentials{}), "--etcd-servers=http://127.0.0.1:9")
}

func TestStartAPIServerRejectsUnknownArguments(t *testing.T) {
	for arg, want := range map[string]string{"--no-such-flag": "no-such-flag", "stray": `"stray"`} {
		_, err := startAPIServer([]string{arg}, 0)
		assert.ErrorContains(t, err, want)
	}
}
