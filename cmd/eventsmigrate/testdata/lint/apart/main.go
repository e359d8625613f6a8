// Command apart creates the manager in another package. // want package:`.`
package main // want `has no effect: use NewManager of package controllerruntime \(example.com/testdata/lint/apart/make/make.go:7\)`

import (
	"example.com/testdata/lint/apart/make"
	"example.com/testdata/lint/swapped/controllers"
)

func main() {
	mgr, err := make.Manager()
	if err == nil {
		controllers.Recorder(mgr)
	}
}
