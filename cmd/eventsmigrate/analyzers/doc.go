// Package analyzers contains the analyzers of eventsmigrate, for drivers of
// [golang.org/x/tools/go/analysis] such as go vet and golangci-lint.
//
//   - [Lint] finds mistakes in the events of a program, with any recorder.
//   - [Legacy] finds calls of the legacy recorder of client-go, and moves what a package
//     keeps to itself. The command eventsmigrate moves whole programs.
//
// An analyzer sees one package at a time. It learns about the others from facts: which
// types are cluster-scoped.
//
// # Limitations
//
//   - Legacy cannot type-check its fixes, because the driver does not load the packages
//     that they import. The command does.
package analyzers

import "golang.org/x/tools/go/analysis"

// All are the analyzers of this package.
var All = []*analysis.Analyzer{Lint, Legacy}
