package controlplane

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fakeProgram returns a program that behaves as the control plane does, in a
// directory of its own, where the data go.
func fakeProgram(t *testing.T) string {
	t.Helper()
	play(t, "server")
	exe, err := os.Executable()
	require.NoError(t, err)
	binary := filepath.Join(t.TempDir(), "controlplane"+exeSuffix)
	if err := os.Link(exe, binary); err != nil { // another file system
		require.NoError(t, os.Symlink(exe, binary))
	}
	return binary
}

func TestServerLife(t *testing.T) {
	binary := fakeProgram(t)
	s, err := Start(t.Context(), Options{Binary: binary})
	require.NoError(t, err)
	assert.Equal(t, "127.0.0.1:6443", s.Addr())
	assert.Equal(t, filepath.Join(s.dataDir, "kubeconfig"), s.Kubeconfig())
	assert.Equal(t, filepath.Dir(binary), filepath.Dir(s.dataDir), "the data lie beside the program")
	assert.NotZero(t, s.PID())

	first := s.PID()
	require.NoError(t, s.Restart(t.Context()))
	assert.NotEqual(t, first, s.PID())
	require.NoError(t, s.Kill())
	assert.Zero(t, s.PID())
	require.NoError(t, s.Restart(t.Context()))
	starts, err := os.ReadFile(filepath.Join(s.dataDir, "starts"))
	require.NoError(t, err)
	assert.Equal(t, "xxx", string(starts), "three starts on the same data")

	require.NoError(t, s.Stop())
	assert.NoDirExists(t, s.dataDir)
	require.NoError(t, s.Stop(), "a second Stop does nothing")
	require.ErrorIs(t, s.Kill(), errNotRunning)
	require.ErrorIs(t, s.Pause(), errNotRunning)
}

func TestServerKeepsDataThatItWasToldWhereToKeep(t *testing.T) {
	dir := t.TempDir()
	s, err := Start(t.Context(), Options{Binary: fakeProgram(t), DataDir: dir})
	require.NoError(t, err)
	require.NoError(t, s.Stop())
	assert.FileExists(t, filepath.Join(dir, "starts"))
}

func TestPausedServerStops(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no way to pause a process")
	}
	s, err := Start(t.Context(), Options{Binary: fakeProgram(t)})
	require.NoError(t, err)
	require.NoError(t, s.Pause())
	require.NoError(t, s.Resume())
	require.NoError(t, s.Pause())
	require.NoError(t, s.Stop())
}

func TestStartFailsFastWithTheEndOfTheLog(t *testing.T) {
	binary := fakeProgram(t)
	_, err := Start(t.Context(), Options{Binary: binary, ExtraArgs: []string{"--", "die"}})
	require.ErrorContains(t, err, "exit status 3")
	require.ErrorContains(t, err, "log: the port is taken")
	left, err := filepath.Glob(filepath.Join(filepath.Dir(binary), "data-*"))
	require.NoError(t, err)
	assert.Empty(t, left)
}

func TestStartGivesUpWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := Start(ctx, Options{Binary: fakeProgram(t), ExtraArgs: []string{"--", "hang"}})
	assert.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestStartRefusesAnotherProgram(t *testing.T) {
	_, err := Start(t.Context(), Options{Binary: fakeProgram(t), ExtraArgs: []string{"--", "babble"}})
	require.ErrorContains(t, err, "good morning")
	_, err = Start(t.Context(), Options{Binary: filepath.Join(t.TempDir(), "nothing")})
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = Start(t.Context(), Options{})
	require.ErrorContains(t, err, "Options.Binary")
}

func TestStopReportsABadExit(t *testing.T) {
	s, err := Start(t.Context(), Options{Binary: fakeProgram(t), ExtraArgs: []string{"--", "stop badly"}})
	require.NoError(t, err)
	err = s.Stop()
	require.ErrorContains(t, err, "exit status 4")
	require.ErrorContains(t, err, "log: etcd is stuck")
	assert.NoDirExists(t, s.dataDir)
}

func TestServerDoesNotOutliveItsParent(t *testing.T) {
	for name, paused := range map[string]bool{"running": false, "paused": true} {
		t.Run(name, func(t *testing.T) {
			if paused && runtime.GOOS == "windows" {
				t.Skip("no way to pause a process")
			}
			binary := fakeProgram(t)
			parent := exec.CommandContext(t.Context(), binary, binary)
			if paused {
				parent.Args = append(parent.Args, "pause")
			}
			parent.Env = append(os.Environ(), roleVar+"=parent")
			parent.Stderr = os.Stderr
			out, err := parent.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, parent.Start())
			lines := bufio.NewScanner(out)
			require.True(t, lines.Scan(), "the parent says where its server's data are")
			dir := lines.Text()
			require.FileExists(t, filepath.Join(dir, "starts"))

			require.NoError(t, parent.Process.Kill())
			require.Error(t, parent.Wait())
			// The server removes its data as the last thing before it ends.
			assert.Eventually(t, func() bool {
				_, err := os.Stat(dir)
				return os.IsNotExist(err)
			}, 10*time.Second, 10*time.Millisecond)
		})
	}
}
