package controlplane

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

// roleVar makes the test binary play one of the programs that this package
// starts.
const roleVar = "EVENTSERIES_TEST_ROLE"

// play makes the programs that the test starts play a role.
func play(t *testing.T, role string) {
	t.Helper()
	t.Setenv(roleVar, role)
	t.Setenv("GORACE", "atexit_sleep_ms=0") // else the race detector stretches each end by a second
}

func TestMain(m *testing.M) {
	switch role := os.Getenv(roleVar); role {
	case "":
		goleak.VerifyTestMain(m)
	case "server":
		os.Exit(playServer(os.Args[1:]))
	case "go", "broken go":
		os.Exit(playGo(os.Args[1:], role == "broken go"))
	case "parent":
		playParent()
	default:
		panic("no such role: " + role)
	}
}

// playServer behaves as the control plane does towards its parent. Arguments
// after "--" make it misbehave.
func playServer(args []string) int {
	var dir string
	dispose := false
	misbehaviour := ""
	for i, arg := range args {
		if d, ok := strings.CutPrefix(arg, "--data-dir="); ok {
			dir = d
		}
		if arg == "--remove-orphaned-data" {
			dispose = true
		}
		if arg == "--" {
			misbehaviour = args[i+1]
		}
	}
	fmt.Fprintln(os.Stderr, "log: started")
	switch misbehaviour {
	case "die":
		fmt.Fprintln(os.Stderr, "log: the port is taken")
		return 3
	case "hang":
		select {}
	case "babble":
		fmt.Println("good morning")
	}

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	orphaned := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(orphaned)
	}()
	// How often the directory was served stands for the data in it.
	file := filepath.Join(dir, "starts")
	starts, _ := os.ReadFile(file)
	if err := os.WriteFile(file, append(starts, 'x'), 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Printf("ready https://127.0.0.1:6443 kubeconfig=%s\n", filepath.Join(dir, "kubeconfig"))
	select {
	case <-ctx.Done():
		if misbehaviour == "stop badly" {
			fmt.Fprintln(os.Stderr, "log: etcd is stuck")
			return 4
		}
	case <-orphaned:
		if dispose {
			_ = os.RemoveAll(dir)
		}
	}
	return 0
}

// playGo behaves as "go build -v" and "go list" do.
func playGo(args []string, broken bool) int {
	if args[0] == "list" {
		fmt.Println("a\nb\nc")
		return 0
	}
	fmt.Fprintln(os.Stderr, "go: downloading k8s.io/kubernetes v1.36.3")
	fmt.Fprintln(os.Stderr, "k8s.io/api/core/v1")
	if broken {
		fmt.Fprintln(os.Stderr, "# k8s.io/api/core/v1\ntypes.go:1:1: no")
		return 1
	}
	for i, arg := range args {
		if arg == "-o" {
			if err := os.WriteFile(args[i+1], []byte(strings.Join(args, "\n")), 0o755); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
		}
	}
	return 0
}

// playParent starts a server, says where it is and waits to be killed. With an
// argument it pauses the server first.
func playParent() {
	err := os.Setenv(roleVar, "server")
	if err != nil {
		panic(err)
	}
	s, err := Start(context.Background(), Options{Binary: os.Args[1]})
	if err == nil && len(os.Args) > 2 {
		err = s.Pause()
	}
	if err != nil {
		panic(err)
	}
	fmt.Println(s.dataDir)
	select {}
}
