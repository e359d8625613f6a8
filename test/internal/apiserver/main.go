package apiserver

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Main runs the tests of a package and stops the server. Then it makes the given
// checks, and returns the code for os.Exit. It is for TestMain.
//
// A test binary that ends before it comes here (a panic, an interrupt, the test
// timeout) takes the server and its files with it all the same.
func Main(m *testing.M, checks ...func() error) (code int) {
	code = m.Run()
	if err := stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	for _, check := range checks {
		if err := check(); err != nil && code == 0 {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	return code
}

// Leaks returns an error if goroutines are left after all tests. Connections end some
// time after the server that they lead to. To a cluster, which goes on, they are kept
// for the next request, so nothing can be said there.
func Leaks() error {
	if OnCluster() {
		return nil
	}
	for deadline := time.Now().Add(leakTimeout); ; {
		err := goleak.Find() // which waits for a moment
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}
