package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const kubeconfig = `apiVersion: v1
kind: Config
clusters:
- name: eventseries
  cluster:
    server: https://127.0.0.1:6443
    certificate-authority-data: Y2E=
users:
- name: admin
  user:
    token: secret
contexts:
- name: admin
  context:
    cluster: eventseries
    user: admin
current-context: admin
`

func TestReadKubeconfig(t *testing.T) {
	config, err := readKubeconfig(writeKubeconfig(t, kubeconfig))
	require.NoError(t, err)
	assert.Equal(t, "https://127.0.0.1:6443", config.Host)
	assert.Equal(t, "secret", config.BearerToken)
	assert.Equal(t, "ca", string(config.CAData))
}

func TestReadKubeconfigThatIsBroken(t *testing.T) {
	for problem, content := range map[string]string{
		"couldn't get version/kind":                 "not a kubeconfig",
		`there is no context "other"`:               strings.Replace(kubeconfig, "current-context: admin", "current-context: other", 1),
		`context "admin" has no cluster or`:         strings.Replace(kubeconfig, "cluster: eventseries", "cluster: other", 1),
		`context "admin" has no cluster or no user`: strings.Replace(kubeconfig, "    user: admin", "    user: other", 1),
	} {
		_, err := readKubeconfig(writeKubeconfig(t, content))
		require.ErrorContains(t, err, problem)
	}
	_, err := readKubeconfig(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func writeKubeconfig(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}
