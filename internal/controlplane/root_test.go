package controlplane

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFindRoot(t *testing.T) {
	root := t.TempDir()
	module := filepath.Join(root, "test", "controlplane")
	require.NoError(t, os.MkdirAll(filepath.Join(module, "deep", "er"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(module, "go.mod"), nil, 0o644))

	for _, dir := range []string{root, filepath.Join(root, "test"), module, filepath.Join(module, "deep", "er")} {
		found, err := findRoot(dir)
		require.NoError(t, err)
		assert.Equal(t, root, found, "from %s", dir)
	}
}

func TestFindRootOutsideARepository(t *testing.T) {
	dir := t.TempDir()
	_, err := findRoot(dir)
	require.ErrorContains(t, err, dir)
	assert.ErrorContains(t, err, "inside a clone")
}

func TestFindRootOfThisRepository(t *testing.T) {
	wd, err := os.Getwd()
	require.NoError(t, err)
	root, err := findRoot(wd)
	require.NoError(t, err)
	assert.FileExists(t, filepath.Join(root, "internal", "controlplane", "root.go"))
}
