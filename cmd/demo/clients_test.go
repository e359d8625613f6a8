package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const kubeconfig = `{apiVersion: v1, kind: Config, current-context: admin,
clusters: [{name: eventseries, cluster: {server: "https://127.0.0.1:6443", certificate-authority-data: Y2E=}}],
users: [{name: admin, user: {token: secret}}],
contexts: [{name: admin, context: {cluster: eventseries, user: admin}}]}`

func TestReadKubeconfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	_, err := readKubeconfig(file)
	require.ErrorIs(t, err, os.ErrNotExist)

	require.NoError(t, os.WriteFile(file, []byte(kubeconfig), 0o600))
	config, err := readKubeconfig(file)
	require.NoError(t, err)
	assert.Equal(t, "https://127.0.0.1:6443", config.Host)
	assert.Equal(t, "secret", config.BearerToken)
	assert.Equal(t, "ca", string(config.CAData))

	for content, want := range map[string]string{
		"not a kubeconfig": "couldn't get version/kind",
		strings.Replace(kubeconfig, "current-context: admin", "current-context: other", 1): `no context "other"`,
		strings.Replace(kubeconfig, "cluster: eventseries", "cluster: other", 1):           `context "admin" without a cluster or user`,
		strings.Replace(kubeconfig, "user: admin", "user: other", 1):                       `context "admin" without a cluster or user`,
	} {
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
		_, err := readKubeconfig(file)
		require.ErrorContains(t, err, want)
	}
}

func TestRequestsCountsEveryRequest(t *testing.T) {
	var counted requests
	answer := &http.Response{StatusCode: http.StatusTooManyRequests, Body: http.NoBody}
	transport := counted.wrap(roundTripper(func(*http.Request) (*http.Response, error) { return answer, nil }))
	for _, method := range []string{http.MethodPost, http.MethodPatch, http.MethodPatch, http.MethodGet} {
		request, err := http.NewRequestWithContext(t.Context(), method, "http://localhost", nil)
		require.NoError(t, err)
		response, err := transport.RoundTrip(request)
		require.NoError(t, err)
		assert.Same(t, answer, response)
		require.NoError(t, response.Body.Close())
	}
	assert.Equal(t, calls{creates: 1, patches: 2, others: 1}, counted.calls(), "rejected requests count too")
	assert.Equal(t, 4, counted.calls().total())
}
