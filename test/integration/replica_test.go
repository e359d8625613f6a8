package integration

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// replicaVariable, where it is set, makes this program a replica of a small
// controller instead of a test. Its value is a replicaSpec in JSON.
const replicaVariable = "EVENTSERIES_TEST_REPLICA"

// replicaSpec says what a replica is to be.
type replicaSpec struct {
	Kubeconfig string
	User       string // whom the replica impersonates
	Namespace  string // of all that it has to do with
	Name       string // its reportingInstance, and its identity as a leader
	Scope      events.Scope

	// Now is the time, which goes on as the test says. If zero, it is the real
	// one.
	Now time.Time
	// Lease is what replicas compete for: the one that holds it starts its
	// broadcaster, and is in a hot loop from then on. If empty, it is started at
	// once.
	Lease string
}

// replica is a process of its own, which can be killed without a chance. It does
// what it is told on its standard input, line by line, and ends with that: no
// replica outlives its test.
type replica struct {
	cmd    *exec.Cmd
	stdin  io.Writer
	lines  chan string // what it answers; closed at the end of its output
	stderr syncBuffer
	done   chan struct{}
	// now is the replica's time as of its last answer, unless that is the real
	// one.
	now time.Time
}

// startReplica starts a replica on the shared server. It is killed at the end of
// the test.
func startReplica(t *testing.T, spec replicaSpec) *replica {
	t.Helper()
	spec.Kubeconfig = apiserver.Kubeconfig(t)
	value, err := json.Marshal(spec)
	require.NoError(t, err)
	program, err := os.Executable()
	require.NoError(t, err)
	r := &replica{
		cmd:   exec.CommandContext(t.Context(), program),
		lines: make(chan string, 100),
		done:  make(chan struct{}),
		now:   spec.Now,
	}
	r.cmd.Env = append(os.Environ(), replicaVariable+"="+string(value))
	r.cmd.Stderr = &r.stderr
	r.stdin, err = r.cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := r.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, r.cmd.Start())
	go func() {
		defer close(r.done)
		for scanner := bufio.NewScanner(stdout); scanner.Scan(); {
			r.lines <- scanner.Text()
		}
		close(r.lines)
		_ = r.cmd.Wait() // it is killed, mostly
	}()
	t.Cleanup(func() { // the context of the test has ended
		<-r.done
		if t.Failed() {
			t.Logf("the log of %s:\n%s", spec.Name, &r.stderr)
		}
	})
	return r
}

// kill ends the replica as SIGKILL does, and waits for its end.
func (r *replica) kill(t *testing.T) {
	t.Helper()
	require.NoError(t, r.cmd.Process.Kill())
	<-r.done
}

// await waits for the next line of the replica.
func (r *replica) await(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	select {
	case line, ok := <-r.lines:
		require.True(t, ok, "the replica has ended")
		return line
	case <-ctx.Done():
		require.NoError(t, ctx.Err(), "the replica does not answer")
		return ""
	}
}

// do has the replica do something, and returns its answer. What there is to do is
// with replicaProgram.do.
func (r *replica) do(t *testing.T, format string, args ...any) string {
	t.Helper()
	command := fmt.Sprintf(format, args...)
	_, err := io.WriteString(r.stdin, command+"\n")
	require.NoError(t, err, command)
	answer := r.await(t)
	result, at, _ := strings.Cut(answer, " at ")
	require.False(t, strings.HasPrefix(result, "error"), "%s: %s", command, answer)
	if !r.now.IsZero() {
		r.now, err = time.Parse(time.RFC3339Nano, at)
		require.NoError(t, err, answer)
	}
	return result
}

// eventually has the replica's time pass until check returns nil.
func (r *replica) eventually(t *testing.T, check func(context.Context) error) {
	t.Helper()
	apiserver.Eventually(t, patience, func(ctx context.Context) error {
		err := check(ctx)
		if err != nil {
			r.do(t, "wait %v", step)
		}
		return err
	})
}
