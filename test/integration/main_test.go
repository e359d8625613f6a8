package integration

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/eventseries/eventseries/test/internal/apiserver"
)

func TestMain(m *testing.M) {
	if spec, ok := os.LookupEnv(replicaVariable); ok {
		os.Exit(runReplica(spec))
	}
	code := m.Run()
	if err := apiserver.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if err := leaks(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	// A test binary that ends before it comes here (a panic, an interrupt, the
	// test timeout) takes the server and its files with it all the same.
	os.Exit(code)
}

// leaks returns an error if goroutines are left after all tests. Connections end
// some time after the server that they lead to. To a cluster, which goes on, they
// are kept for the next request, so nothing can be said there.
func leaks() error {
	if apiserver.OnCluster() {
		return nil
	}
	for deadline := time.Now().Add(patience); ; {
		err := goleak.Find() // which waits for a moment
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}
