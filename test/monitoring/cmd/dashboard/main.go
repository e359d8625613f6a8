// Command dashboard generates the dashboard and the picture in docs/monitoring. Its
// argument is the root of the repository.
package main

import (
	"context"
	"log"
	"os"

	"github.com/eventseries/eventseries/test/monitoring"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: dashboard ROOT")
	}
	if err := monitoring.Generate(context.Background(), os.Args[1]); err != nil {
		log.Fatal(err)
	}
}
