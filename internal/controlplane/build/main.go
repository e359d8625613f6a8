// Command build compiles the control plane into bin/controlplane and shows what
// it does. "go test" keeps what a test prints to itself until the test has
// ended, so whoever runs the integration tests for the first time should run
// this first:
//
//	go run ./internal/controlplane/build
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
