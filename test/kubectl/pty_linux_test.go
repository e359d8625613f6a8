package kubectl

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// inTerminal runs the program in a terminal of a width, and returns what it prints there.
func inTerminal(t *testing.T, kubeconfig string, width int, environment []string, args ...string) string {
	t.Helper()
	leader, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	defer leader.Close()
	require.NoError(t, unix.IoctlSetPointerInt(int(leader.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(leader.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetWinsize(int(leader.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: uint16(width)}))
	follower, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)

	cmd := command(t.Context(), t, kubeconfig, args...)
	cmd.Env = append(cmd.Env, environment...)
	cmd.Stdout, cmd.Stderr = follower, follower
	require.NoError(t, cmd.Start())
	require.NoError(t, follower.Close())
	out, err := io.ReadAll(leader)
	if !errors.Is(err, syscall.EIO) { // how Linux says that nobody has the terminal open
		require.NoError(t, err)
	}
	require.NoError(t, cmd.Wait(), "%s", out)
	return string(bytes.ReplaceAll(out, []byte("\r\n"), []byte("\n")))
}
