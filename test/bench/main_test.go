package bench

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/eventseries/eventseries/test/internal/apiserver"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if err := apiserver.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if err := leaks(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// leaks returns an error if goroutines are left. Connections end some time after the
// server that they lead to; to a cluster of the user's they are kept, so nothing can be
// said there.
func leaks() error {
	if os.Getenv(apiserver.UseCluster) == "1" {
		return nil
	}
	for deadline := time.Now().Add(patience); ; {
		err := goleak.Find() // which waits for a moment
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}
