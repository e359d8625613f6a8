// Package analyzers contains analyzers for drivers of [golang.org/x/tools/go/analysis]: [Lint]
// for the events of a program, with any recorder, and [Legacy] for calls of the legacy recorder.
package analyzers

import "golang.org/x/tools/go/analysis"

// All are the analyzers of this package.
var All = []*analysis.Analyzer{Lint, Legacy}
