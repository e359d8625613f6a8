package driver

import (
	"cmp"
	"errors"
	"fmt"
	"go/token"
	"maps"
	"os"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/eventseries/eventseries/cmd/eventsmigrate/analyzers"
	"github.com/eventseries/eventseries/cmd/eventsmigrate/internal/move"
)

// Result is what a run found, and the changed files.
type Result struct {
	Fset    *token.FileSet
	Plan    *move.Plan
	Changed map[string][]byte
	Source  map[string][]byte // the changed files before

	Manifests []Diagnostic // what roles lack
	Lint      []Diagnostic
	Missed    []Diagnostic // files that the build does not contain
}

// maxRounds bounds how often a run leaves a set and tries again.
const maxRounds = 25

// Run loads the packages, plans the move, and type-checks its result. It writes nothing.
//
// If the module does not require what the result imports, Run lets the go command add it
// to copies of go.mod and go.sum, which are then among the changed files.
func Run(cfg Config) (*Result, error) {
	q := &requirements{cfg: cfg, have: map[string]bool{}}
	defer func() { _ = os.RemoveAll(q.dir) }()
	need := move.Imports
	for {
		if err := q.require(need); err != nil {
			return nil, cmp.Or(newLoader(cfg).load(), err) // what is wrong without the requirements is more important
		}
		var r *Result
		p, err := Load(q.cfg)
		if err == nil {
			r, err = p.Move(cfg.Options, "")
		}
		var missing *missingError
		if errors.As(err, &missing) && !q.have[missing.path] {
			need = []string{missing.path}
			continue
		}
		if err != nil && q.dir != "" {
			err = cmp.Or(newLoader(cfg).load(), fmt.Errorf("with what the result needs in go.mod: %w", err))
		}
		if err != nil || len(r.Changed) == 0 || q.dir == "" {
			return r, err
		}
		return r, q.add(r)
	}
}

// Packages are those of the patterns, and those that can see their types.
type Packages struct{ l *loader }

// Load loads packages, of which several moves can each plan some. It adds no requirements.
func Load(cfg Config) (*Packages, error) {
	l := newLoader(cfg)
	return &Packages{l}, l.load()
}

// Move plans a move of the packages whose paths begin with a prefix, and type-checks its result.
func (p *Packages) Move(opts move.Options, prefix string) (_ *Result, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("internal error: %v; leave out packages to find out which one causes it, and report it", r)
		}
	}()
	all := p.l.roots
	p.l.roots = slices.DeleteFunc(slices.Clone(all), func(r *packages.Package) bool { return !strings.HasPrefix(r.PkgPath, prefix) })
	defer func() { p.l.roots = all }()
	p.l.cfg.Options = opts
	return p.l.move()
}

func (l *loader) move() (*Result, error) {
	p := move.NewProgram(l.fset)
	l.add(p)
	blocked := map[token.Pos]string{}
	for round := range maxRounds {
		plan := p.Plan(l.cfg.Options, blocked)
		if plan.Managers {
			if err := l.provides(move.ManagerPath); err != nil {
				return nil, err
			}
		}
		out := p.Outputs(plan, l.cfg.Options.Target)
		var failures []failure
		for _, name := range slices.Sorted(maps.Keys(out)) {
			if o := out[name]; o.Err != nil {
				failures = append(failures, failure{pkg: o.File.Pkg.Path, file: name, at: -1, text: o.Err.Error()})
			}
		}
		if len(failures) == 0 {
			failures = l.check(out)
		}
		if len(failures) == 0 {
			return l.result(plan, out)
		}
		if !block(blocked, failures, out, round) {
			return nil, fmt.Errorf("the result does not compile: %s", failures[0].text)
		}
	}
	return nil, fmt.Errorf("the result does not compile after %d rounds", maxRounds)
}

func (l *loader) result(plan *move.Plan, out map[string]*move.Output) (*Result, error) {
	r := &Result{Fset: l.fset, Plan: plan, Changed: map[string][]byte{}, Source: map[string][]byte{}, Missed: l.missed}
	for name, o := range out {
		if string(o.Src) != string(o.File.Src) {
			r.Changed[name], r.Source[name] = o.Src, o.File.Src
		}
	}
	if err := l.manifests(plan.Group, r); err != nil {
		return nil, err
	}
	var err error
	r.Lint, err = l.lint(analyzers.Lint, out)
	return r, err
}

// block leaves the sets that change the lines with errors: those of the file if the line has
// none, and all of the package if the file has none. It reports whether it left any.
func block(blocked map[token.Pos]string, failures []failure, out map[string]*move.Output, round int) bool {
	n := len(blocked)
	for _, f := range failures {
		var sets []token.Pos
		if o := out[f.file]; o != nil {
			sets = o.Sets(f.at)
		}
		for _, name := range slices.Sorted(maps.Keys(out)) {
			if len(sets) == 0 && out[name].File.Pkg.Path == f.pkg || round > 5 {
				sets = append(sets, out[name].Sets(-1)...)
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

// provides returns an error if the module does not require a package.
func (l *loader) provides(path string) error {
	if (&requirements{cfg: l.cfg}).list(path) {
		return nil
	}
	return &missingError{path, (&requirements{cfg: l.cfg}).query(path)}
}
