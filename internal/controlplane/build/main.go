// Command build compiles the control plane into bin/controlplane and shows the
// progress. Run it before you run the integration tests for the first time:
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
	_, err := controlplane.Build(ctx, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
