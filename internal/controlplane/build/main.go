// Command build compiles programs of this repository into bin and shows the progress. The
// arguments are their directories; without arguments it compiles the control plane.
//
//	go run ./internal/controlplane/build
//
// The tests build the control plane, too, but "go test" shows nothing until a test
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
	_, err := controlplane.Build(ctx, os.Stderr, os.Args[1:]...)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
