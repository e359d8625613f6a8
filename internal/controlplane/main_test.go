package controlplane

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

// roleVar is the environment variable that makes the test binary act as one of the
// programs that this package starts.
const roleVar = "EVENTSERIES_TEST_ROLE"

// setRole sets the role of the programs that the test starts.
func setRole(t *testing.T, role string) {
	t.Helper()
	t.Setenv(roleVar, role)
	t.Setenv("GORACE", "atexit_sleep_ms=0") // the default delays each exit by a second
}

func TestMain(m *testing.M) {
	switch role := os.Getenv(roleVar); role {
	case "":
		goleak.VerifyTestMain(m)
	case "server":
		os.Exit(runServer(os.Args[1:]))
	case "go", "broken go":
		os.Exit(runGo(os.Args[1:], role == "broken go"))
	case "parent":
		runParent()
	default:
		panic("unknown role: " + role)
	}
}

// runServer acts as the control plane. The first argument after "--" selects a
// failure.
func runServer(args []string) int {
	flags := flag.NewFlagSet("server", flag.ExitOnError)
	dir := flags.String("data-dir", "", "")
	port := flags.Int("port", 0, "")
	flags.Int("etcd-port", 0, "")
	dispose := flags.Bool("remove-orphaned-data", false, "")
	flags.Bool("lifeline", false, "")
	_ = flags.Parse(args) // exits on an error
	fmt.Fprintln(os.Stderr, "log: started")
	failure := flags.Arg(0)
	switch failure {
	case "die":
		fmt.Fprintln(os.Stderr, "log: the port is taken")
		return 3
	case "hang":
		// An empty select is a deadlock, which a runtime without cgo reports.
		_, _ = io.Copy(io.Discard, os.Stdin)
		return 0
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
	// The data are the port of each start.
	file := filepath.Join(*dir, "starts")
	starts, _ := os.ReadFile(file)
	if err := os.WriteFile(file, fmt.Append(starts, *port, "\n"), 0o600); err != nil {
		panic(err)
	}
	fmt.Printf("ready https://127.0.0.1:%d kubeconfig=%s\n", *port, filepath.Join(*dir, "kubeconfig"))
	select {
	case <-ctx.Done():
		if failure == "stop badly" {
			fmt.Fprintln(os.Stderr, "log: etcd is stuck")
			return 4
		}
	case <-orphaned:
		if *dispose {
			_ = os.RemoveAll(*dir)
		}
	}
	return 0
}

// runGo acts as "go build -v". The program that it builds consists of the arguments.
func runGo(args []string, broken bool) int {
	fmt.Fprintln(os.Stderr, "go: downloading k8s.io/kubernetes v1.36.3")
	if broken {
		fmt.Fprintln(os.Stderr, "# k8s.io/api/core/v1\ntypes.go:1:1: no")
		return 1
	}
	binary := filepath.Join(args[slices.Index(args, "-o")+1], "controlplane"+exeSuffix)
	busy := binary + ".busy"
	if err := os.Mkdir(busy, 0o755); err != nil && runtime.GOOS != "windows" { // which has no lock
		panic(err)
	}
	err := os.WriteFile(binary, []byte(strings.Join(args, "\n")), 0o755)
	if err = errors.Join(err, os.Remove(busy)); err != nil && runtime.GOOS != "windows" {
		panic(err)
	}
	return 0
}

// runParent starts a server, pauses it where that is possible, prints its data directory,
// and waits to be killed.
func runParent() {
	_ = os.Setenv(roleVar, "server") // the name is valid
	s, err := Start(context.Background(), Options{Binary: os.Args[1]})
	if err == nil {
		if err = s.Pause(); errors.Is(err, errors.ErrUnsupported) {
			err = nil
		}
	}
	if err != nil {
		panic(err)
	}
	fmt.Println(s.dataDir)
	select {}
}
