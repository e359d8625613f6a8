package driver

import (
	"errors"
	"fmt"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/eventseries/eventseries/cmd/eventsmigrate/internal/move"
)

// maxBuilds bounds how many configurations a run loads.
const maxBuilds = 6

// platforms are those that a run tries for files that the first build ignores.
var platforms = []string{"linux", "windows", "darwin", "freebsd"}

var knownOS = strings.Fields("aix android darwin dragonfly freebsd hurd illumos ios js linux nacl netbsd openbsd plan9 solaris wasip1 windows zos")

var knownArch = strings.Fields("386 amd64 arm arm64 loong64 mips mips64 mips64le mipsle ppc64 ppc64le riscv64 s390x wasm")

// others returns builds for the files that the first one ignores: those of the packages
// that use a recorder, in which a type would otherwise move without all of its uses.
func (l *loader) others(first *build) (builds []*build, err error) {
	type key struct{ platform, tags string }
	dirs := map[key][]string{}
	names := map[key][]string{}
	var order []key
	for _, p := range first.roots {
		if !usesRecorders(p) && len(p.GoFiles) > 0 {
			continue
		}
		for _, name := range p.IgnoredFiles {
			if filepath.Ext(name) != ".go" || !l.relevant(name) {
				continue
			}
			on, tags, ok := satisfy(name, l.cfg.Tags)
			if !ok {
				l.miss(name)
				continue
			}
			k := key{strings.Join(on.env(), " "), tags}
			if dirs[k] == nil {
				order = append(order, k)
			}
			names[k] = append(names[k], name)
			if dir := filepath.Dir(name); !slices.Contains(dirs[k], dir) {
				dirs[k] = append(dirs[k], dir)
			}
		}
	}
	for i, k := range order {
		if i >= maxBuilds {
			for _, name := range names[k] {
				l.miss(name)
			}
			continue
		}
		b := &build{tags: k.tags, env: strings.Fields(k.platform), byPath: first.byPath, baseline: map[string]map[string]bool{}}
		if err := l.loadSyntax(b, first, dirs[k]); err != nil {
			return nil, err
		}
		builds = append(builds, b)
	}
	return builds, nil
}

// loadSyntax loads the packages of another build without compiling their dependencies:
// those have the types of the first build. What these types do not explain is an error
// before the move, too, so it does not count afterwards.
func (l *loader) loadSyntax(b, first *build, dirs []string) error {
	cfg := l.config(b)
	cfg.Mode = packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedForTest | packages.NeedModule
	all, err := packages.Load(cfg, dirs...)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrLoad, err)
	}
	roots := map[*packages.Package]bool{}
	for _, p := range all {
		roots[p] = !strings.HasSuffix(p.ID, ".test")
	}
	packages.Visit(all, nil, func(p *packages.Package) {
		if !roots[p] {
			return
		}
		for _, name := range p.CompiledGoFiles {
			var src []byte
			if src, err = read(l.cfg, name); err != nil {
				return
			}
			if f, _ := l.parse(l.fset, name, src); f != nil {
				p.Syntax = append(p.Syntax, f)
			}
		}
		p.TypesInfo = newInfo()
		known := map[string]bool{}
		conf := &types.Config{
			Importer: &importer{l, b, p, map[string]*types.Package{}}, FakeImportC: true, Sizes: first.roots[0].TypesSizes,
			Error: func(err error) {
				var e types.Error
				if errors.As(err, &e) {
					known[e.Msg] = true
				}
			},
		}
		p.Types, _ = conf.Check(p.PkgPath, l.fset, p.Syntax, p.TypesInfo)
		b.baseline[p.ID] = known
		b.roots = append(b.roots, p)
	})
	return err
}

// usesRecorders reports whether a package imports a package of recorders, or one of the
// same module that does.
func usesRecorders(p *packages.Package) bool {
	found := false
	packages.Visit([]*packages.Package{p}, func(q *packages.Package) bool {
		if strings.HasSuffix(q.PkgPath, "client-go/tools/record") || strings.HasSuffix(q.PkgPath, "eventseries/compat/record") {
			found = true
		}
		return !found && (q == p || len(q.Syntax) > 0)
	}, nil)
	return found
}

// relevant reports whether an ignored file can mention a recorder: by an import, or by the
// name of a method. A type-check would need the build that this decides about.
func (l *loader) relevant(name string) bool {
	src, err := read(l.cfg, name)
	text := string(src)
	return err == nil && (strings.Contains(text, "tools/record\"") || strings.Contains(text, "compat/record\"") ||
		strings.Contains(text, ".Event(") || strings.Contains(text, ".Eventf(") || strings.Contains(text, ".AnnotatedEventf(") || strings.Contains(text, "ecorder"))
}

// miss remembers a file with legacy recorders that no build contains.
func (l *loader) miss(name string) {
	src, err := read(l.cfg, name)
	if err == nil && strings.Contains(string(src), `"k8s.io/client-go/tools/record"`) && !slices.Contains(l.missed, name) {
		l.missed = append(l.missed, name)
	}
}

// platform is what the go command builds for.
type platform struct{ goos, goarch string }

var host = platform{runtime.GOOS, runtime.GOARCH}

// env returns the environment of the go command, which is empty for this machine.
func (p platform) env() []string {
	if p == host {
		return nil
	}
	return []string{"GOOS=" + p.goos, "GOARCH=" + p.goarch, "CGO_ENABLED=0"}
}

// satisfy returns a platform and tags under which the go command builds a file.
func satisfy(name, tags string) (on platform, all string, ok bool) {
	f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly|parser.ParseComments)
	if err != nil {
		return host, "", false
	}
	var expr constraint.Expr
	for _, g := range f.Comments {
		for _, c := range g.List {
			if constraint.IsGoBuild(c.Text) && c.Pos() < f.Package {
				if expr, err = constraint.Parse(c.Text); err != nil {
					return host, "", false
				}
			}
		}
	}
	custom := strings.FieldsFunc(tags, func(r rune) bool { return r == ',' })
	var free []string
	if expr != nil {
		collectTags(expr, &free)
	}
	for _, on := range candidates(name, expr) {
		for n := range 1 << min(len(free), 6) {
			with := slices.Clone(custom)
			for i, tag := range free[:min(len(free), 6)] {
				if n&(1<<i) != 0 && !slices.Contains(with, tag) {
					with = append(with, tag)
				}
			}
			if expr == nil || expr.Eval(func(tag string) bool { return isOn(tag, on, with) }) {
				return on, strings.Join(with, ","), true
			}
		}
	}
	return host, "", false
}

// candidates returns the platforms for a file: those that its name or its constraint
// names, this machine first.
func candidates(name string, expr constraint.Expr) (list []platform) {
	systems, archs := append([]string{host.goos}, platforms...), []string{host.goarch}
	if expr != nil {
		for _, tag := range strings.FieldsFunc(expr.String(), func(r rune) bool { return strings.ContainsRune("!&|() ", r) }) {
			if slices.Contains(knownOS, tag) {
				systems = append(systems, tag)
			}
			if slices.Contains(knownArch, tag) {
				archs = append(archs, tag)
			}
		}
	}
	if !slices.Contains(archs, "amd64") || !slices.Contains(archs, "arm64") {
		archs = append(archs, "amd64", "arm64") // for !amd64 and the like
	}
	parts := strings.Split(strings.TrimSuffix(strings.TrimSuffix(filepath.Base(name), ".go"), "_test"), "_")[1:]
	if n := len(parts); n > 0 && slices.Contains(knownArch, parts[n-1]) {
		archs, parts = []string{parts[n-1]}, parts[:n-1]
	}
	if n := len(parts); n > 0 && slices.Contains(knownOS, parts[n-1]) {
		systems = []string{parts[n-1]}
	}
	for _, arch := range archs {
		for _, goos := range systems {
			list = append(list, platform{goos, arch})
		}
	}
	return list
}

// collectTags adds the tags of an expression that are no platforms.
func collectTags(e constraint.Expr, tags *[]string) {
	switch e := e.(type) {
	case *constraint.AndExpr:
		collectTags(e.X, tags)
		collectTags(e.Y, tags)
	case *constraint.OrExpr:
		collectTags(e.X, tags)
		collectTags(e.Y, tags)
	case *constraint.NotExpr:
		collectTags(e.X, tags)
	case *constraint.TagExpr:
		known := slices.Concat(knownOS, knownArch, []string{"cgo", "unix", "gc", "gccgo", "ignore"})
		if !slices.Contains(known, e.Tag) && !strings.HasPrefix(e.Tag, "go1.") && !slices.Contains(*tags, e.Tag) {
			*tags = append(*tags, e.Tag)
		}
	}
}

func isOn(tag string, on platform, tags []string) bool {
	switch {
	case tag == on.goos, tag == on.goarch, tag == "gc", strings.HasPrefix(tag, "go1."):
		return true
	case tag == "unix":
		return on.goos != "windows"
	case slices.Contains(knownOS, tag), slices.Contains(knownArch, tag), tag == "cgo":
		return false
	}
	return slices.Contains(tags, tag)
}

// inWorkspace reports whether the go command uses a go.work file.
func (l *loader) inWorkspace() bool {
	name, err := goCommand(l.cfg, "env", "GOWORK")
	return err == nil && name != "" && name != "off"
}

// outsiders returns a build with the packages of the modules that are not among the
// patterns, but can use what moves: they must change with it. They import a package in
// which something moves, or get its types from another package of the build.
func (l *loader) outsiders(first *build, plan *move.Plan) (*build, error) {
	inside := map[string]bool{}
	var modules []string
	for _, p := range first.roots {
		inside[p.PkgPath] = true
		if p.Module != nil && p.Module.Main && !slices.Contains(modules, p.Module.Path+"/...") {
			modules = append(modules, p.Module.Path+"/...")
		}
	}
	workspace := l.inWorkspace()
	if len(plan.Seen) == 0 || len(modules) == 0 || slices.Contains(l.cfg.Patterns, "./...") && l.atRoot(first) && !workspace {
		return nil, nil
	}
	if workspace {
		modules = []string{"work"} // the packages of all modules
	}
	cfg := l.config(first)
	cfg.Mode = packages.NeedName | packages.NeedImports
	all, err := packages.Load(cfg, modules...)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLoad, err)
	}
	known := map[string]*packages.Package{}
	for _, p := range all {
		if p.ID == p.PkgPath {
			known[p.PkgPath] = p
		}
	}
	var outside []string
	loaded := map[string]bool{}
	add := func(path string) {
		path = strings.TrimSuffix(strings.TrimSuffix(path, ".test"), "_test")
		if !inside[path] && !loaded[path] {
			loaded[path] = true
			outside = append(outside, path)
		}
	}
	seen := maps.Clone(plan.Seen)
	// see adds the packages from which others get what moves.
	see := func(list []*packages.Package) {
		for _, p := range list {
			if p.ID == p.PkgPath && !seen[p.PkgPath] && plan.Reaches(p.Types, func(path string) bool { return known[path] != nil }) {
				seen[p.PkgPath] = true
			}
		}
	}
	see(first.roots)
	for {
		for _, p := range all {
			for imp := range p.Imports {
				if seen[imp] {
					add(p.PkgPath)
					break
				}
			}
		}
		// These packages can pass a recorder to others, of which the first build does not
		// have the types.
		for _, p := range all {
			if !loaded[strings.TrimSuffix(p.PkgPath, "_test")] {
				continue
			}
			for path := range p.Imports {
				if q := known[path]; q != nil && first.byPath[path] == nil && importsRecorders(q) {
					add(path)
				}
			}
		}
		if len(outside) == 0 {
			return nil, nil
		}
		b := &build{tags: first.tags, byPath: first.byPath, baseline: map[string]map[string]bool{}, outside: true}
		if err := l.loadSyntax(b, first, outside); err != nil {
			return nil, err
		}
		n := len(seen)
		if see(b.roots); len(seen) == n {
			return b, nil
		}
	}
}

// importsRecorders reports whether a package imports one of recorders.
func importsRecorders(p *packages.Package) bool {
	for path := range p.Imports {
		if move.IsRecorderPackage(path) {
			return true
		}
	}
	return false
}

// atRoot reports whether the run starts in the directory of the only module.
func (l *loader) atRoot(first *build) bool {
	dir, err := filepath.Abs(l.cfg.Dir)
	if err != nil {
		return false
	}
	for _, p := range first.roots {
		if p.Module == nil || p.Module.Dir != dir {
			return false
		}
	}
	return true
}
