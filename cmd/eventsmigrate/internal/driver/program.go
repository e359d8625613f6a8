package driver

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/eventseries/eventseries/cmd/eventsmigrate/internal/move"
)

// LoadProgram loads what decides about the events of a program: the packages of the
// patterns, which it returns first, and with those in their dependencies that emit events
// and those between them. It loads one build, without tests.
// All types come from one load, so that each object exists once.
func LoadProgram(cfg Config) (programs, all []*packages.Package, err error) {
	l := newLoader(cfg)
	graph := l.config(packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedDeps | packages.NeedModule)
	graph.Tests = false
	roots, err := packages.Load(graph, cfg.Patterns...)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrLoad, err)
	}
	if len(roots) == 0 {
		return nil, nil, fmt.Errorf("%w: %s: no packages; go list tells why", ErrLoad, strings.Join(cfg.Patterns, " "))
	}
	wanted := map[*packages.Package]bool{}
	patterns := slices.Clone(cfg.Patterns)
	packages.Visit(roots, nil, func(p *packages.Package) { // dependencies come first
		for _, imported := range p.Imports {
			wanted[p] = wanted[p] || wanted[imported]
		}
		switch {
		case move.IsRecorderPackage(p.PkgPath), move.IsOurs(p.PkgPath) && !slices.Contains(roots, p):
			wanted[p] = false // it emits the events of its callers
		case !wanted[p]:
			wanted[p] = emits(p)
		}
		if wanted[p] || slices.Contains(roots, p) {
			l.dirs = append(l.dirs, p.Dir)
		}
		if wanted[p] && !slices.Contains(roots, p) {
			patterns = append(patterns, p.PkgPath)
		}
	})
	full := l.config(mode)
	full.Tests = false
	all, err = packages.Load(full, patterns...)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrLoad, err)
	}
	for _, p := range all {
		for _, e := range p.Errors {
			return nil, nil, fmt.Errorf("%w: %s: %s%s", ErrLoad, p.PkgPath, oneLine(e), l.cause(full, e, cfg.Patterns))
		}
	}
	for _, p := range all {
		if slices.ContainsFunc(roots, func(r *packages.Package) bool { return r.ID == p.ID }) {
			programs = append(programs, p)
		}
	}
	return programs, all, nil
}

// emits reports whether a package may call a recorder. Only types can tell, so some
// packages do not.
func emits(p *packages.Package) bool {
	if p.Module == nil { // of the standard library
		return false
	}
	return slices.ContainsFunc(p.GoFiles, func(name string) bool {
		src, err := os.ReadFile(name)
		return err == nil && emission.Match(src)
	})
}
