// Package golangci registers the analyzers of eventsmigrate as a module plugin of
// golangci-lint with the name eventsmigrate.
package golangci

import (
	"fmt"

	"github.com/golangci/plugin-module-register/register"
	"golang.org/x/tools/go/analysis"

	"github.com/eventseries/eventseries/cmd/eventsmigrate/analyzers"
)

func init() { register.Plugin("eventsmigrate", New) }

// settings are those in .golangci.yml.
type settings struct {
	// Legacy reports calls of the legacy recorder, too. It is true by default.
	Legacy *bool `json:"legacy"`
}

type plugin struct{ settings settings }

// New returns the plugin with settings from .golangci.yml.
func New(conf any) (register.LinterPlugin, error) {
	s, err := register.DecodeSettings[settings](conf)
	if err != nil {
		return nil, fmt.Errorf("eventsmigrate: %w", err)
	}
	return &plugin{s}, nil
}

// BuildAnalyzers returns the analyzers.
func (p *plugin) BuildAnalyzers() ([]*analysis.Analyzer, error) {
	if p.settings.Legacy != nil && !*p.settings.Legacy {
		return []*analysis.Analyzer{analyzers.Lint}, nil
	}
	return analyzers.All, nil
}

// GetLoadMode returns that the analyzers need types.
func (p *plugin) GetLoadMode() string { return register.LoadModeTypesInfo }
