// Package analyzers contains the analyzers of eventsmigrate, for drivers of
// [golang.org/x/tools/go/analysis] such as go vet and golangci-lint.
//
//   - [Lint] finds mistakes in the events of a program, with any recorder.
//   - [Legacy] finds calls of the legacy recorder of client-go, which the command
//     eventsmigrate moves.
//
// An analyzer sees one package at a time. It learns about the others from facts: which
// types are cluster-scoped.
package analyzers

import "golang.org/x/tools/go/analysis"

// All are the analyzers of this package.
var All = []*analysis.Analyzer{Lint, Legacy}
