package controlplane

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fakeRepository returns the root of a repository with a control plane module.
func fakeRepository(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	module := filepath.Join(root, "test", "controlplane")
	require.NoError(t, os.MkdirAll(module, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(module, "go.mod"), []byte("require k8s.io/kubernetes v1.2.3\n"), 0o644))
	return root
}

func TestBuild(t *testing.T) {
	play(t, "go")
	root := fakeRepository(t)
	var out bytes.Buffer
	binary, err := build(t.Context(), root, os.Args[0], &out)
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(root, "bin", "controlplane"+exeSuffix), binary)
	args, err := os.ReadFile(binary)
	require.NoError(t, err)
	assert.Contains(t, string(args), "gitVersion=v1.2.3")
	assert.Contains(t, out.String(), announcement)
	assert.Contains(t, out.String(), "1 modules downloading, latest k8s.io/kubernetes v1.36.3")
}

func TestBuildsSideBySide(t *testing.T) {
	play(t, "go")
	root := fakeRepository(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			_, err := build(t.Context(), root, os.Args[0], &bytes.Buffer{})
			assert.NoError(t, err)
		})
	}
	wg.Wait()
}

func TestBuildThatFailsSaysWhatTheCompilerSaid(t *testing.T) {
	play(t, "broken go")
	var out bytes.Buffer
	_, err := build(t.Context(), fakeRepository(t), os.Args[0], &out)
	require.ErrorContains(t, err, "types.go:1:1: no")
	assert.NotContains(t, err.Error(), "downloading", "what is no error is no part of it")
	assert.Contains(t, out.String(), "gave up")
}

func TestBuildWithoutGo(t *testing.T) {
	_, err := build(t.Context(), fakeRepository(t), "no-such-go", &bytes.Buffer{})
	assert.ErrorContains(t, err, "no-such-go")
}

func TestBuildCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := build(ctx, fakeRepository(t), os.Args[0], &bytes.Buffer{})
	assert.ErrorIs(t, err, context.Canceled)
}

func TestKubernetesVersion(t *testing.T) {
	assert.Equal(t, "v1.36.3", kubernetesVersion([]byte("require (\n\tk8s.io/api v0.0.0\n\tk8s.io/kubernetes v1.36.3\n)\n")))
	assert.Equal(t, "v1.36.3", kubernetesVersion([]byte("require k8s.io/kubernetes v1.36.3 // indirect\n")))
	assert.Empty(t, kubernetesVersion([]byte("module x\n\nreplace k8s.io/kubernetes => ../k\n")))
}
