package controlplane

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// newRepository creates a repository with the module of the program, and returns
// its root.
func newRepository(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	module := fstest.MapFS{"test/controlplane/go.mod": {Data: []byte("require k8s.io/kubernetes v1.2.3\n")}}
	require.NoError(t, os.CopyFS(root, module))
	return root
}

func TestBuildConcurrently(t *testing.T) {
	setRole(t, "go")
	root := newRepository(t)
	want := filepath.Join(root, "bin", "controlplane"+exeSuffix)
	var builds sync.WaitGroup
	for range 4 {
		builds.Go(func() {
			var out bytes.Buffer
			binary, err := build(t.Context(), root, os.Args[0], &out, []string{moduleDir, "cmd/demo"})
			assert.NoError(t, err)
			assert.Equal(t, want, binary)
			assert.Contains(t, out.String(), "latest: go: downloading k8s.io/kubernetes v1.36.3")
		})
	}
	builds.Wait()
	args, err := os.ReadFile(want)
	require.NoError(t, err)
	assert.Contains(t, string(args), "gitVersion=v1.2.3")
	assert.Contains(t, string(args), "./test/controlplane\n./cmd/demo")
}

func TestBuildReturnsCompilerErrors(t *testing.T) {
	setRole(t, "broken go")
	var out bytes.Buffer
	_, err := build(t.Context(), newRepository(t), os.Args[0], &out, []string{moduleDir})
	require.ErrorContains(t, err, "types.go:1:1: no")
	assert.NotContains(t, err.Error(), "downloading", "the error contains only error messages")
	assert.Contains(t, out.String(), "build failed")
}

func TestBuildFails(t *testing.T) {
	root := newRepository(t)
	_, err := build(t.Context(), root, "no-such-go", io.Discard, []string{moduleDir})
	require.ErrorContains(t, err, "no-such-go")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = build(ctx, root, os.Args[0], io.Discard, []string{moduleDir})
	require.ErrorIs(t, err, context.Canceled)
}

func TestInterruptWhileAnotherProcessCompiles(t *testing.T) {
	root := newRepository(t)
	bin := filepath.Join(root, "bin")
	require.NoError(t, os.MkdirAll(bin, 0o755))
	unlock, err := lock(t.Context(), filepath.Join(bin, ".controlplane.lock"), nil)
	require.NoError(t, err)
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	_, err = build(ctx, root, os.Args[0], io.Discard, []string{moduleDir})
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, unlock())
}

func TestFindRoot(t *testing.T) {
	root := newRepository(t)
	for _, dir := range []string{root, filepath.Join(root, "test", "controlplane", "deep")} {
		found, err := findRoot(dir)
		require.NoError(t, err)
		assert.Equal(t, root, found, "from %s", dir)
	}
	_, err := findRoot(t.TempDir())
	require.ErrorContains(t, err, "inside a clone")
}
