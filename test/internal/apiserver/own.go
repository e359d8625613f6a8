package apiserver

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/eventseries/eventseries/internal/controlplane"
)

// program builds the control plane, once for all tests.
var program = sync.OnceValues(func() (string, error) {
	return controlplane.Build(context.Background(), os.Stderr)
})

// Program returns the path of the control plane, built. On a user's cluster the
// test is skipped.
func Program(t *testing.T) string {
	t.Helper()
	if OnCluster() {
		t.Skipf("%s=1: this test needs a server of its own", UseCluster)
	}
	binary, err := program()
	require.NoError(t, err)
	return binary
}

// Start starts a server for this test alone and stops it at the test's end.
// Options.Binary is filled in. On a user's cluster the test is skipped.
func Start(t *testing.T, opts controlplane.Options) *controlplane.Server {
	t.Helper()
	opts.Binary = Program(t)
	server, err := controlplane.Start(startContext(t), opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	return server
}

// Restart starts a server of Start again on its data and ports.
func Restart(t *testing.T, server *controlplane.Server) {
	t.Helper()
	begin := time.Now()
	require.NoError(t, server.Restart(startContext(t)))
	t.Logf("ready again %v later", time.Since(begin).Round(time.Millisecond))
}

// ConfigOf returns a configuration of an administrator of a server of Start.
func ConfigOf(t *testing.T, server *controlplane.Server) *rest.Config {
	t.Helper()
	config, err := Load(server.Kubeconfig())
	require.NoError(t, err)
	return config
}

// ConfigAs returns a copy of a configuration with another user's token.
func ConfigAs(config *rest.Config, u controlplane.User) *rest.Config {
	c := rest.AnonymousClientConfig(config)
	c.QPS, c.Burst = config.QPS, config.Burst
	c.BearerToken = u.Token
	return c
}

// startContext bounds a start of the control plane.
func startContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), StartTimeout)
	t.Cleanup(cancel)
	return ctx
}
