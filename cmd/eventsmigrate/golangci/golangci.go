// Package golangci registers the linter of eventsmigrate as a module plugin of golangci-lint with
// the name eventsmigrate.
package golangci

import (
	"github.com/golangci/plugin-module-register/register"
	"golang.org/x/tools/go/analysis"

	"github.com/eventseries/eventseries/cmd/eventsmigrate/analyzers"
)

func init() {
	register.Plugin("eventsmigrate", func(any) (register.LinterPlugin, error) { return plugin{}, nil })
}

type plugin struct{}

func (plugin) BuildAnalyzers() ([]*analysis.Analyzer, error) {
	return []*analysis.Analyzer{analyzers.Lint}, nil
}

func (plugin) GetLoadMode() string { return register.LoadModeTypesInfo }
