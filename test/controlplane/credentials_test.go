package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/keyutil"
)

func TestCredentialsSurviveARestart(t *testing.T) {
	dir := t.TempDir()
	first, err := prepareCredentials(dir, []user{{name: "ann", token: "a"}})
	require.NoError(t, err)
	assert.Len(t, first.admin.token, 64)
	second, err := prepareCredentials(dir, []user{{name: "bob", token: "b", groups: []string{"devs", "ops"}}})
	require.NoError(t, err)
	assert.Equal(t, first, second, "the token changes with the key")
	_, err = keyutil.PrivateKeyFromFile(second.serviceAccountKey)
	require.NoError(t, err)
	tokens, err := os.ReadFile(second.tokenFile)
	require.NoError(t, err)
	assert.Equal(t, first.admin.token+",admin,admin,system:masters\nb,bob,bob,\"devs,ops\"\n", string(tokens),
		"only the users of the last start are valid")
	for _, name := range []string{second.tokenFile, second.serviceAccountKey} {
		info, err := os.Stat(name)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode(), name)
	}
}

func TestKubeconfig(t *testing.T) {
	data, err := kubeconfig("https://127.0.0.1:6443", []byte("certificate"), []user{{name: "admin", token: "a"}, {name: "ann", token: "b"}})
	require.NoError(t, err)
	config, err := clientcmd.Load(data)
	require.NoError(t, err)
	for context, token := range map[string]string{"": "a", "admin": "a", "ann": "b"} {
		rest, err := clientcmd.NewNonInteractiveClientConfig(*config, context, nil, nil).ClientConfig()
		require.NoError(t, err)
		assert.Equal(t, "https://127.0.0.1:6443", rest.Host)
		assert.Equal(t, token, rest.BearerToken)
		assert.Equal(t, []byte("certificate"), rest.CAData)
	}
}
