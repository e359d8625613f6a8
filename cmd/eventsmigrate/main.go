// Command eventsmigrate moves programs from the legacy recorder of Kubernetes events to
// one of events.k8s.io/v1, and finds mistakes in the events of programs.
package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/eventseries/eventseries/cmd/eventsmigrate/internal/driver"
	"github.com/eventseries/eventseries/cmd/eventsmigrate/internal/move"
)

func main() {
	to := flag.String("to", "eventseries", "")
	related := flag.Bool("related", false, "")
	fix := flag.Bool("fix", false, "")
	flag.Parse()
	r, err := driver.Run(driver.Config{Patterns: flag.Args(), Options: move.Options{Target: move.Target(*to), Related: *related}})
	if err != nil {
		fmt.Fprintln(os.Stderr, "eventsmigrate:", err)
		os.Exit(2)
	}
	for _, i := range r.Plan.Items {
		fmt.Println(r.Fset.Position(i.Pos), i.Rule, i.Status, i.Text)
	}
	fmt.Println(r.Plan.Calls, r.Files, r.Pkgs, len(r.Changed))
	for _, n := range slices.Sorted(maps.Keys(r.Changed)) {
		if *fix {
			os.WriteFile(n, r.Changed[n], 0o644)
		} else {
			fmt.Printf("=== %s\n%s\n", n, r.Changed[n])
		}
	}
}
