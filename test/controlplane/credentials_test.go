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
	assert.Len(t, first.admin.token, 26)
	key, err := keyutil.PrivateKeyFromFile(first.serviceAccountKey)
	require.NoError(t, err)

	second, err := prepareCredentials(dir, []user{{name: "bob", token: "b", groups: []string{"devs", "ops"}}})
	require.NoError(t, err)
	assert.Equal(t, first, second)
	sameKey, err := keyutil.PrivateKeyFromFile(second.serviceAccountKey)
	require.NoError(t, err)
	assert.Equal(t, key, sameKey)

	tokens, err := os.ReadFile(second.tokenFile)
	require.NoError(t, err)
	assert.Equal(t, first.admin.token+",admin,admin,system:masters\nb,bob,bob,\"devs,ops\"\n", string(tokens),
		"only the users of the last start are valid")
	for _, name := range []string{"admin-token", "tokens.csv", "service-account.key"} {
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode(), name)
	}
}
