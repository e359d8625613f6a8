// Package kubectl tests kubectl series, as a program, on the real API server, and its
// pages in a browser.
package kubectl

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// patience bounds how long a test waits for what it expects.
const patience = time.Minute

// module is the directory of the program.
var module = filepath.Join("..", "..", "cmd", "kubectl-series")

func TestMain(m *testing.M) {
	code := apiserver.Main(m, apiserver.Leaks)
	if directory != "" {
		if err := os.RemoveAll(directory); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// directory contains the program and the cache of its discovery.
var directory string

// build builds the program once.
var build = sync.OnceValues(func() (path string, err error) {
	if directory, err = os.MkdirTemp("", "kubectl-series"); err != nil {
		return "", err
	}
	path = filepath.Join(directory, "kubectl-series.exe") // the suffix is harmless on other systems
	cmd := exec.Command("go", "build", "-o", path, ".")
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build kubectl-series: %w: %s", err, out)
	}
	return path, nil
})

// command returns the program with arguments.
func command(ctx context.Context, t *testing.T, kubeconfig string, args ...string) *exec.Cmd {
	t.Helper()
	program, err := build()
	require.NoError(t, err)
	args = append(args, "--cache-dir", filepath.Join(directory, "cache"))
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "NO_COLOR=", "TERM=xterm")
	return cmd
}

// result is what a command wrote.
type result struct {
	out, err string
	code     int
	process  *os.ProcessState
}

// run runs the program to its end.
func run(t *testing.T, kubeconfig string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var out, errOut bytes.Buffer
	cmd := command(ctx, t, kubeconfig, args...)
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	if exit := (&exec.ExitError{}); err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return result{out.String(), errOut.String(), cmd.ProcessState.ExitCode(), cmd.ProcessState}
}

// show is run for a command that succeeds without a warning.
func show(t *testing.T, kubeconfig string, args ...string) string {
	t.Helper()
	r := run(t, kubeconfig, args...)
	require.Empty(t, r.err, args)
	require.Zero(t, r.code, args)
	return r.out
}

// printed is a series as JSON.
type printed struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	State    string            `json:"state"`
	Count    int32             `json:"count"`
	Rate     float64           `json:"rate"`
	Reason   string            `json:"reason"`
	Last     metav1.MicroTime  `json:"lastObservedTime"`
}

// items parses a list.
func items(t *testing.T, list string) []printed {
	t.Helper()
	var l struct{ Items []printed }
	require.NoError(t, json.Unmarshal([]byte(list), &l))
	return l.Items
}

// newEvent returns an Event of client-go's recorder.
func newEvent(namespace, name string, regarding corev1.ObjectReference) *eventsv1.Event {
	return &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, EventTime: metav1.NowMicro(), Type: corev1.EventTypeNormal,
		ReportingController: "example.com/test", ReportingInstance: "test-1", Action: "Testing", Reason: "Tested", Note: "note of " + name,
		Regarding: regarding,
	}
}

// create creates Events, with several requests in flight.
func create(t *testing.T, clients kubernetes.Interface, events []*eventsv1.Event, legacy []*corev1.Event) {
	t.Helper()
	var group errgroup.Group
	group.SetLimit(16)
	for _, e := range events {
		group.Go(func() error {
			_, err := clients.EventsV1().Events(e.Namespace).Create(t.Context(), e, metav1.CreateOptions{})
			return err
		})
	}
	for _, e := range legacy {
		group.Go(func() error {
			_, err := clients.CoreV1().Events(e.Namespace).Create(t.Context(), e, metav1.CreateOptions{})
			return err
		})
	}
	require.NoError(t, group.Wait())
}

func lines(s string) []string { return strings.Split(strings.TrimSuffix(s, "\n"), "\n") }
