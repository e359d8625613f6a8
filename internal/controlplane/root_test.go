package controlplane

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFindRoot(t *testing.T) {
	root := newRepository(t)
	module := filepath.Join(root, "test", "controlplane")
	for _, dir := range []string{root, filepath.Join(root, "test"), module, filepath.Join(module, "deep", "er")} {
		found, err := findRoot(dir)
		require.NoError(t, err)
		assert.Equal(t, root, found, "from %s", dir)
	}

	outside := t.TempDir()
	_, err := findRoot(outside)
	require.ErrorContains(t, err, outside)
	require.ErrorContains(t, err, "inside a clone")

	wd, err := os.Getwd()
	require.NoError(t, err)
	root, err = findRoot(wd)
	require.NoError(t, err)
	assert.FileExists(t, filepath.Join(root, "internal", "controlplane", "root.go"))
}
