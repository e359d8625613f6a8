package controlplane

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// newProgram returns a program that acts as the control plane, in a directory of
// its own. The data directories are created there.
func newProgram(t *testing.T) string {
	t.Helper()
	setRole(t, "server")
	exe, err := os.Executable()
	require.NoError(t, err)
	binary := filepath.Join(t.TempDir(), "controlplane"+exeSuffix)
	if err := os.Link(exe, binary); err != nil { // another file system
		require.NoError(t, os.Symlink(exe, binary))
	}
	return binary
}

func TestServerLifecycle(t *testing.T) {
	binary := newProgram(t)
	s, err := Start(t.Context(), Options{Binary: binary})
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(s.dataDir, "kubeconfig"), s.Kubeconfig())
	assert.Equal(t, filepath.Dir(binary), filepath.Dir(s.dataDir), "the data directory is next to the program")

	require.NoError(t, s.Restart(t.Context()))
	require.NoError(t, s.Kill())
	require.NoError(t, s.Restart(t.Context()))
	starts, err := os.ReadFile(filepath.Join(s.dataDir, "starts"))
	require.NoError(t, err)
	port := strings.TrimPrefix(s.Addr(), "127.0.0.1:")
	assert.NotEqual(t, "0", port)
	assert.Equal(t, strings.Repeat(port+"\n", 3), string(starts), "three starts with the same data and port")

	if runtime.GOOS != "windows" {
		require.NoError(t, s.Pause())
		require.NoError(t, s.Resume())
		require.NoError(t, s.Pause())
	}
	require.NoError(t, s.Stop(), "Stop resumes a paused server")
	assert.NoDirExists(t, s.dataDir)
	require.NoError(t, s.Stop(), "a second Stop does nothing")
	require.ErrorIs(t, s.Kill(), errNotRunning)
	require.ErrorIs(t, s.Pause(), errNotRunning)
}

func TestStartFails(t *testing.T) {
	binary := newProgram(t)
	start := func(ctx context.Context, failure string) error {
		_, err := Start(ctx, Options{Binary: binary, ExtraArgs: []string{"--", failure}})
		left, globErr := filepath.Glob(filepath.Join(filepath.Dir(binary), "data-*"))
		require.NoError(t, globErr)
		assert.Empty(t, left)
		return err
	}
	err := start(t.Context(), "die")
	require.ErrorContains(t, err, "exit status 3")
	require.ErrorContains(t, err, "log: the port is taken")
	require.ErrorContains(t, start(t.Context(), "babble"), "good morning")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, start(ctx, "hang"), context.DeadlineExceeded)

	_, err = Start(t.Context(), Options{Binary: binary + "-missing"})
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = Start(t.Context(), Options{})
	require.ErrorContains(t, err, "Options.Binary")
}

func TestStopReportsAnUncleanExit(t *testing.T) {
	for _, dir := range []string{"", t.TempDir()} {
		s, err := Start(t.Context(), Options{Binary: newProgram(t), DataDir: dir, ExtraArgs: []string{"--", "stop badly"}})
		require.NoError(t, err)
		err = s.Stop()
		require.ErrorContains(t, err, "exit status 4")
		require.ErrorContains(t, err, "log: etcd is stuck")
		_, err = os.Stat(s.dataDir)
		assert.Equal(t, dir == "", os.IsNotExist(err), "Stop keeps Options.DataDir")
	}
}

// A paused server notices, too.
func TestServerDoesNotOutliveItsParent(t *testing.T) {
	binary := newProgram(t)
	parent := exec.CommandContext(t.Context(), binary, binary)
	parent.Env = append(os.Environ(), roleVar+"=parent")
	parent.Stderr = os.Stderr
	out, err := parent.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, parent.Start())
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan(), "the parent prints the data directory")
	dir := lines.Text()
	require.FileExists(t, filepath.Join(dir, "starts"))

	require.NoError(t, parent.Process.Kill())
	require.Error(t, parent.Wait())
	// The server removes its data just before it exits.
	assert.Eventually(t, func() bool {
		_, err := os.Stat(dir)
		return os.IsNotExist(err)
	}, 10*time.Second, 10*time.Millisecond)
}
