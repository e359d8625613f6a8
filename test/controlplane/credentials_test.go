package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/util/keyutil"
)

func TestCredentialsSurviveARestart(t *testing.T) {
	dir := t.TempDir()
	first, err := prepareCredentials(dir, []user{{name: "ann", token: "a"}})
	require.NoError(t, err)
	key, err := os.ReadFile(first.serviceAccountKey)
	require.NoError(t, err)

	second, err := prepareCredentials(dir, []user{{name: "bob", token: "b", groups: []string{"devs", "ops"}}})
	require.NoError(t, err)
	assert.Equal(t, first, second)
	assert.Len(t, first.admin.token, 26)
	sameKey, err := os.ReadFile(second.serviceAccountKey)
	require.NoError(t, err)
	assert.Equal(t, key, sameKey)

	tokens, err := os.ReadFile(second.tokenFile)
	require.NoError(t, err)
	assert.Equal(t, first.admin.token+",admin,admin,system:masters\nb,bob,bob,\"devs,ops\"\n", string(tokens),
		"the users are those of the latest start")
}

func TestCredentialsAreOfUseAndPrivate(t *testing.T) {
	dir := t.TempDir()
	c, err := prepareCredentials(dir, nil)
	require.NoError(t, err)
	_, err = keyutil.PrivateKeyFromFile(c.serviceAccountKey)
	require.NoError(t, err)
	for _, name := range []string{"admin-token", "tokens.csv", "service-account.key"} {
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode(), name)
	}
}
