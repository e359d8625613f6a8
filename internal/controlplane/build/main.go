// Command build compiles programs of this repository into bin and shows the progress. The
// arguments are their directories. Without arguments it compiles the control plane. Run
// it before you run the integration tests for the first time:
//
//	go run ./internal/controlplane/build
//
// The tests build the control plane too, but "go test" shows nothing until a test
// completes.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/eventseries/eventseries/internal/controlplane"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	dirs := os.Args[1:]
	if len(dirs) == 0 {
		dirs = []string{"test/controlplane"}
	}
	_, err := controlplane.BuildPrograms(ctx, os.Stderr, dirs...)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
