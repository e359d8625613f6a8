package driver

import (
	"errors"
	"fmt"
	"go/token"
	"go/types"
	"maps"
	"os"
	"slices"

	"github.com/eventseries/eventseries/cmd/eventsmigrate/analyzers"
	"github.com/eventseries/eventseries/cmd/eventsmigrate/internal/move"
)

// Result is what a run found, and the changed files.
type Result struct {
	Fset    *token.FileSet
	Plan    *move.Plan
	Changed map[string][]byte
	Source  map[string][]byte // the changed files before

	Manifests []Finding
	Lint      []Diagnostic
	Missed    []string // files with legacy recorders that no build contains

	// Broken are the first errors of packages outside of the patterns that do not compile
	// after the move.
	Broken []Diagnostic
}

// Finding is a place in a YAML file.
type Finding struct {
	File         string
	Line         int
	Status, Text string
}

// maxRounds bounds how often a run leaves a set and tries again.
const maxRounds = 25

// Run loads the packages, plans the move, and type-checks its result. It writes nothing.
//
// If the module does not require what the result imports, Run lets the go command add it
// to copies of go.mod and go.sum, which are then among the changed files.
func Run(cfg Config) (*Result, error) {
	var mod *modFiles
	for {
		r, err := run(cfg)
		var missing *missingError
		switch {
		case errors.As(err, &missing) && (mod == nil || mod.tried < maxModules):
		case err != nil || mod == nil:
			return r, err
		default:
			return r, mod.add(r)
		}
		if mod == nil {
			dir, err := os.MkdirTemp("", "eventsmigrate")
			if err != nil {
				return nil, err
			}
			defer os.RemoveAll(dir)
			if mod, err = copyModFiles(cfg, dir); err != nil {
				return nil, errors.Join(missing, err)
			}
			cfg.modFile = mod.file
		}
		if err := mod.require(cfg, missing); err != nil {
			return nil, err
		}
	}
}

func run(cfg Config) (_ *Result, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("internal error: %v; leave out packages to find out which one causes it, and report it", r)
		}
	}()
	l := newLoader(cfg)
	first := &build{tags: cfg.Tags}
	if err := l.load(first, cfg.Patterns); err != nil {
		return nil, err
	}
	builds := []*build{first}
	others, err := l.others(first)
	if err != nil {
		return nil, err
	}
	builds = append(builds, others...)
	if err := available(cfg, first); err != nil {
		return nil, err
	}
	p := move.NewProgram(l.fset)
	p.Annotated = cfg.Options.Target == move.EventSeries || annotated(first)
	p.FakeAnnotated = annotated(first)
	for _, b := range builds {
		l.add(p, b)
	}
	// Other packages can only hold back what would move without them.
	outside, err := l.outsiders(first, p.Plan(cfg.Options, nil))
	if err != nil {
		return nil, err
	}
	if outside != nil {
		builds = append(builds, outside)
		l.add(p, outside)
	}
	blocked := map[token.Pos]string{}
	for round := range maxRounds {
		plan := p.Plan(cfg.Options, blocked)
		if plan.NeedsManagers() {
			if err := provides(cfg, first, move.ManagerPath); err != nil {
				return nil, err
			}
		}
		out := p.Outputs(plan, cfg.Options.Target)
		var failures []failure
		for _, name := range slices.Sorted(maps.Keys(out)) {
			if o := out[name]; o.Err != nil {
				failures = append(failures, failure{pkg: o.File.Pkg.Path, file: name, at: -1, text: o.Err.Error()})
			}
		}
		if len(failures) > 0 {
			if !block(blocked, failures, out, round) {
				return nil, fmt.Errorf("the result is not valid: %s", failures[0].text)
			}
			continue
		}
		checked := map[string]*types.Package{}
		for _, b := range builds {
			failures = append(failures, l.check(b, out, checked)...)
		}
		failures, broken := l.explain(plan, blocked, failures)
		if len(failures) == 0 {
			r := &Result{Fset: l.fset, Plan: plan, Changed: map[string][]byte{}, Source: map[string][]byte{}, Missed: l.missed, Broken: broken}
			for name, o := range out {
				if string(o.Src) != string(o.File.Src) {
					r.Changed[name], r.Source[name] = o.Src, o.File.Src
				}
			}
			if err := l.manifests(first, plan.Needs, r); err != nil {
				return nil, err
			}
			r.Lint, err = l.lint(analyzers.Lint, first, out)
			r.Lint = slices.DeleteFunc(r.Lint, func(d Diagnostic) bool {
				return slices.ContainsFunc(plan.Items, func(i move.Item) bool {
					return i.Rule == d.Rule && i.Text == d.Text && l.fset.Position(i.Pos) == d.Pos
				})
			})
			return r, err
		}
		if !block(blocked, failures, out, round) {
			return nil, fmt.Errorf("the result does not compile: %s", failures[0].text)
		}
	}
	return nil, fmt.Errorf("the result does not compile after %d rounds", maxRounds)
}

// explain finds what causes errors in packages outside of the patterns on lines that do not
// change, and blocks it. It returns the failures that are left for [block], and the errors
// without a cause that can stay.
func (l *loader) explain(plan *move.Plan, blocked map[token.Pos]string, failures []failure) (left []failure, broken []Diagnostic) {
	for _, f := range failures {
		if f.outside == nil {
			left = append(left, f)
			continue
		}
		pos := l.fset.Position(f.pos)
		found := false
		for _, file := range f.outside.Syntax {
			if file.FileStart > f.pos || f.pos >= file.FileEnd {
				continue
			}
			for _, n := range plan.On(l.fset, f.outside.TypesInfo, file, pos.Line) {
				if _, ok := blocked[n]; !ok {
					blocked[n], found = "does not compile: "+f.text, true
				}
			}
		}
		if found {
			left = append(left, f)
		} else {
			broken = append(broken, Diagnostic{pos, "types", "does not compile after the move: " + f.text})
		}
	}
	return left, broken
}

// block leaves the sets that change the files with errors: those of the package if the
// file has none, and all if the package has none. It reports whether it left any.
func block(blocked map[token.Pos]string, failures []failure, out map[string]*move.Output, round int) bool {
	n := len(blocked)
	for _, f := range failures {
		if f.outside != nil {
			n-- // explain has left its sets
			continue
		}
		var sets []token.Pos
		if o := out[f.file]; o != nil {
			sets = o.Sets(f.at)
		}
		if len(sets) == 0 {
			for _, name := range slices.Sorted(maps.Keys(out)) {
				if out[name].File.Pkg.Path == f.pkg || round > 5 {
					sets = append(sets, out[name].Sets(-1)...)
				}
			}
		}
		for _, s := range sets {
			if _, ok := blocked[s]; !ok {
				blocked[s] = "does not compile: " + f.text
			}
		}
	}
	if len(blocked) == n {
		for _, o := range out {
			for _, s := range o.Sets(-1) {
				blocked[s] = "does not compile: " + failures[0].text
			}
		}
	}
	return len(blocked) > n
}

// available returns an error if the module does not require what the result imports.
func available(cfg Config, b *build) error {
	for _, path := range move.Imports(cfg.Options.Target) {
		if err := provides(cfg, b, path); err != nil {
			return err
		}
	}
	return nil
}

// provides returns an error if the module does not require a package.
func provides(cfg Config, b *build, path string) error {
	p := b.byPath[path]
	if p != nil && len(p.Errors) == 0 && p.Types != nil {
		return nil
	}
	text := ""
	if p != nil && len(p.Errors) > 0 {
		text = oneLine(p.Errors[0])
	}
	return &missingError{cfg.Options.Target, path, text, readModFile(cfg)}
}

// annotated reports whether the recorders of client-go can emit annotations.
func annotated(b *build) bool {
	for _, path := range move.Imports(move.ClientGo) {
		if p := b.byPath[path]; p != nil && p.Types != nil && p.Types.Scope().Lookup("AnnotatedEventRecorder") != nil {
			return true
		}
	}
	return false
}
