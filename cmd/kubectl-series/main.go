// Command kubectl-series is a plugin of kubectl that shows the events of a cluster as
// series: what is going on, since when, and how often. See docs/kubectl-series.md.
//
// As kubectl_complete-series, it completes the arguments of kubectl series.
package main

import (
	"context"
	"os"
	"runtime/debug"
	_ "time/tzdata" // for machines without it

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/cli"
)

// softMemoryLimit makes the garbage collector work harder instead of using more memory.
const softMemoryLimit = 150 << 20

func main() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(softMemoryLimit)
	}
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	os.Exit(cli.Main(context.Background(), os.Args, streams))
}
