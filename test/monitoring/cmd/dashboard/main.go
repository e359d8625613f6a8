// Command dashboard writes the dashboard and the picture of docs/monitoring. Its
// argument is the root of the repository.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/eventseries/eventseries/test/monitoring"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: dashboard ROOT")
		os.Exit(2)
	}
	if err := monitoring.Generate(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
