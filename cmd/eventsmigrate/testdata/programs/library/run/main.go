// Command run passes a manager from one package to the other one.
package main

import (
	"os"

	"example.com/testdata/programs/library/creates"
	"example.com/testdata/programs/library/inside"
)

func main() {
	mgr, err := creates.Manager()
	if err != nil {
		os.Exit(1)
	}
	inside.Emit(mgr)
}
