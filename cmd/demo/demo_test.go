package main

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/eventseries/eventseries/internal/fakeapi"
	"github.com/eventseries/eventseries/series"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestInMemory runs what the demo shows first.
func TestInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		began := time.Now()
		require.NoError(t, demoInMemory(t.Context(), &out))
		assert.GreaterOrEqual(t, time.Since(began), 2*time.Hour+series.FinishAfter)
		assert.Less(t, time.Since(began), 2*time.Hour+15*time.Minute)
		assert.Equal(t, 9, strings.Count(out.String(), "  created    Singleton        1  "))
		assert.Equal(t, 4, strings.Count(out.String(), "  finished   Finished   "))
		assert.Equal(t, 4, strings.Count(out.String(), "Singleton → Ongoing → 4 heartbeats → Finished\n"))
		assert.Contains(t, out.String(), "\nok     Pod/checkout-0 BackOff\n       28 of 28: Singleton")
		assert.Contains(t, out.String(), "(the controllers emit for another 90m)")
		assert.Contains(t, out.String(), "(idle: ")
		assert.Contains(t, out.String(), "OK: every Event")
	})
}

// The same controllers are faster on the real server.
func TestPaceOfTheRealServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		s, err := newSession(&fakeapi.Server{}, inSeconds(defaultDuration), &out)
		require.NoError(t, err)
		require.NoError(t, s.run(t.Context()), out.String())
		assert.GreaterOrEqual(t, time.Since(s.started), defaultDuration+finishAfter)
		assert.Greater(t, s.ledger.emitted(), 1000)
	})
}

func TestWrongResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var server fakeapi.Server
		server.Before(func(_ context.Context, request fakeapi.Request) error {
			if strings.HasPrefix(request.Name, "analytics-0.") {
				return apierrors.NewInvalid(schema.GroupKind{Kind: "Event"}, request.Name, nil)
			}
			return nil
		})
		server.After(func(_ context.Context, request fakeapi.Request) error {
			if strings.HasPrefix(request.Name, "worker-3.") {
				_ = server.Delete(request.Namespace, request.Name) // or it is deleted
			}
			return nil
		})
		var out strings.Builder
		err := play(t.Context(), &server, inHours, &out)
		require.ErrorIs(t, err, errWrong)
		assert.ErrorContains(t, err, "Node/worker-3 NodeNotReady; ")
		assert.ErrorContains(t, err, "Pod/analytics-0 FailedScheduling; ")
		assert.ErrorContains(t, err, "; dropped occurrences: map[Rejected:")
		assert.Contains(t, out.String(), "\nWRONG  Pod/analytics-0 FailedScheduling\n       0 of 32: \n")
		assert.Contains(t, out.String(), "       - emitted 32 times, but the count on the server is 0\n")
		assert.Contains(t, out.String(), "       - the server has another version, or none\n")
		assert.NotContains(t, out.String(), "OK: every Event")
	})
}

// People have seen the result in memory.
func TestInterruptBeforeTheServerHasStartedIsNoError(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	var out, errOut strings.Builder
	require.NoError(t, demo(ctx, options{}, &out, &errOut))
	assert.Contains(t, out.String(), "Stopped before the real server has started.")
}

func TestParseFlags(t *testing.T) {
	for _, test := range []struct {
		args []string
		want options
		err  string
	}{
		{want: options{duration: defaultDuration}},
		{args: []string{"--keep", "-v", "--duration=30s"}, want: options{duration: 30 * time.Second, keep: true, verbose: true}},
		{args: []string{"-duration", "3s"}, err: "-duration 3s is too short for a heartbeat; the minimum is 10s"},
		{args: []string{"keep"}, err: `unexpected argument "keep"`},
		{args: []string{"-what"}, err: "flag provided but not defined: -what"},
		{args: []string{"-h"}, err: flag.ErrHelp.Error()},
	} {
		var errOut strings.Builder
		opts, err := parseFlags(test.args, &errOut)
		assert.Equal(t, test.want, opts)
		if test.err == "" {
			require.NoError(t, err)
			assert.Empty(t, errOut.String())
			continue
		}
		require.EqualError(t, err, test.err)
		assert.Contains(t, errOut.String(), "-duration", "the usage follows")
	}
}

func TestReadKubeconfig(t *testing.T) {
	const kubeconfig = `{apiVersion: v1, kind: Config, current-context: admin,
clusters: [{name: eventseries, cluster: {server: "https://127.0.0.1:6443", certificate-authority-data: Y2E=}}],
users: [{name: admin, user: {token: secret}}],
contexts: [{name: admin, context: {cluster: eventseries, user: admin}}]}`
	file := filepath.Join(t.TempDir(), "kubeconfig")
	_, err := readKubeconfig(file)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.WriteFile(file, []byte(kubeconfig), 0o600))
	config, err := readKubeconfig(file)
	require.NoError(t, err)
	assert.Equal(t, "https://127.0.0.1:6443", config.Host)
	assert.Equal(t, "secret", config.BearerToken)
	assert.Equal(t, "ca", string(config.CAData))
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(kubeconfig, "user: admin", "user: other", 1)), 0o600))
	_, err = readKubeconfig(file)
	require.ErrorContains(t, err, `context "admin" has no cluster or no user`)
}
