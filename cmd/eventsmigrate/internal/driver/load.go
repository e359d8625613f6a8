// Package driver runs a move on packages that it loads: it plans, applies the edits in
// memory, type-checks the packages with them, and leaves what does not compile.
package driver

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"golang.org/x/tools/go/packages"

	"github.com/eventseries/eventseries/cmd/eventsmigrate/internal/move"
)

// Config says what to load and to move.
type Config struct {
	Dir      string
	Patterns []string
	Tags     string
	Options  move.Options

	modFile string // replaces go.mod, if it is set
}

// ErrLoad is the error for packages that do not load.
var ErrLoad = errors.New("packages do not load")

// loader loads packages in the build of this platform and of the tags.
type loader struct {
	cfg   Config
	fset  *token.FileSet
	flags []string // of the go command

	roots   []*packages.Package
	outside map[string]bool // roots that are not among the patterns, by path
	byPath  map[string]*packages.Package
	missed  []Diagnostic // files that the build does not contain

	// after are the packages that the last check found to change, with the edits.
	after map[*packages.Package]*result

	// dirs are the directories of the files that are read with the bodies of their functions.
	dirs []string

	mu      sync.Mutex
	sources map[string][]byte // by name
}

func newLoader(cfg Config) *loader {
	return &loader{cfg: cfg, fset: token.NewFileSet(), flags: cfg.flags(), sources: map[string][]byte{}}
}

// flags returns the flags of the go command.
func (c Config) flags() (flags []string) {
	// With -mod=mod, which programs with a vendor directory need, the go command adds the
	// modules of missing packages to go.mod. Only the user decides about that.
	if env, err := goCommand(c, "env", "GOFLAGS"); err == nil && strings.Contains(env, "-mod=mod") {
		flags = append(flags, "-mod=readonly")
	}
	if c.Tags != "" {
		flags = append(flags, "-tags="+c.Tags)
	}
	if c.modFile != "" {
		flags = append(flags, "-modfile="+c.modFile)
	}
	return flags
}

const mode = packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedTypes |
	packages.NeedSyntax | packages.NeedTypesInfo | packages.NeedTypesSizes | packages.NeedModule | packages.NeedDeps | packages.NeedForTest

// parse keeps the source, which edits need. Of other packages, it drops the bodies of functions:
// types from source take seconds, and those of compiled packages minutes the first time.
func (l *loader) parse(fset *token.FileSet, name string, src []byte) (*ast.File, error) {
	if !l.whole(name) {
		f, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
		if f != nil {
			for _, d := range f.Decls {
				if fun, ok := d.(*ast.FuncDecl); ok && fun.Type.TypeParams == nil && fun.Name.Name != "init" && fun.Name.Name != "main" {
					fun.Body = nil
				}
			}
		}
		return f, err
	}
	l.mu.Lock()
	l.sources[name] = src
	l.mu.Unlock()
	return parser.ParseFile(fset, name, src, parser.ParseComments|parser.AllErrors)
}

// whole reports whether a load needs all of a file: it is below one of the directories, and not in a vendor directory there.
func (l *loader) whole(name string) bool {
	return slices.ContainsFunc(l.dirs, func(dir string) bool {
		return strings.HasPrefix(name, dir+string(filepath.Separator)) && !strings.Contains(filepath.ToSlash(name[len(dir):]), "/vendor/")
	})
}

func (l *loader) config(mode packages.LoadMode) *packages.Config {
	return &packages.Config{
		Mode: mode, Dir: l.cfg.Dir, Fset: l.fset, Tests: true, ParseFile: l.parse,
		BuildFlags: l.flags,
	}
}

// load loads the packages of the patterns, and those that can see their types.
func (l *loader) load() error {
	patterns := l.patterns()
	cfg := l.config(mode)
	wanted := slices.Clone(patterns)
	for _, paths := range [][]string{move.Imports, {move.ManagerPath}} {
		if (&requirements{cfg: l.cfg}).list(paths...) {
			wanted = append(wanted, paths...)
		}
	}
	all, err := packages.Load(cfg, wanted...)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrLoad, err)
	}
	l.byPath = map[string]*packages.Package{}
	packages.Visit(all, nil, func(p *packages.Package) {
		if p.ID == p.PkgPath {
			l.byPath[p.PkgPath] = p
		}
	})
	for _, p := range all {
		path := plain(p.PkgPath)
		if slices.Contains(importable, path) || strings.HasSuffix(p.ID, ".test") || l.outside[path] && len(p.Errors) > 0 {
			continue
		}
		for _, e := range p.Errors {
			return fmt.Errorf("%w: %s: %s%s", ErrLoad, p.PkgPath, oneLine(e), l.cause(cfg, e, patterns))
		}
		l.roots = append(l.roots, p)
		l.miss(p)
	}
	if len(l.roots) == 0 {
		return fmt.Errorf("%w: %s: no packages; go list tells why", ErrLoad, strings.Join(l.cfg.Patterns, " "))
	}
	return nil
}

// plain returns the path of a package without that of a test.
func plain(path string) string {
	return strings.TrimSuffix(strings.TrimSuffix(path, ".test"), "_test")
}

// patterns returns the patterns, and the other packages of the modules that import a package
// of the patterns with recorders, perhaps through others: a type moves with all of its uses.
func (l *loader) patterns() []string {
	out, err := goCommand(l.cfg, "list", "-m", "-f={{.Path}}\t{{.Dir}}")
	modules := strings.Fields(out)
	for line := range strings.Lines(out) {
		_, dir, _ := strings.Cut(strings.TrimSpace(line), "\t")
		l.dirs = append(l.dirs, dir)
	}
	dir, err2 := filepath.Abs(l.cfg.Dir)
	if err != nil || err2 != nil || len(modules) == 2 && modules[1] == dir && slices.Contains(l.cfg.Patterns, "./...") {
		return l.cfg.Patterns
	}
	all := slices.Clone(l.cfg.Patterns)
	for line := range strings.Lines(out) {
		path, _, _ := strings.Cut(line, "\t")
		all = append(all, path+"/...")
	}
	args := slices.Concat([]string{"list", "-e", "-test", "-f={{.ImportPath}}\t{{join .Match \" \"}}\t{{join .Imports \"\t\"}}"}, l.flags)
	out, err = goCommand(l.cfg, append(args, all...)...)
	if err != nil {
		return l.cfg.Patterns // the load tells why
	}
	named, reached, imports := map[string]bool{}, map[string]bool{}, map[string][]string{}
	for line := range strings.Lines(out) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		for i, f := range fields {
			fields[i], _, _ = strings.Cut(f, " [") // the test that a package is compiled for
		}
		path := plain(fields[0])
		imports[path] = append(imports[path], fields[2:]...)
		if slices.ContainsFunc(strings.Fields(fields[1]), func(match string) bool { return slices.Contains(l.cfg.Patterns, match) }) {
			named[path] = true
		}
	}
	for path := range named {
		reached[path] = slices.ContainsFunc(imports[path], move.IsRecorderPackage)
	}
	l.outside = map[string]bool{}
	for changed := true; changed; {
		changed = false
		for path, list := range imports {
			if !reached[path] && slices.ContainsFunc(list, func(imported string) bool { return reached[imported] }) {
				reached[path], changed = true, true
				if !named[path] {
					l.outside[path] = true
				}
			}
		}
	}
	return append(slices.Clone(l.cfg.Patterns), slices.Sorted(maps.Keys(l.outside))...)
}

var (
	emission  = regexp.MustCompile(`\.\s*(Event|Eventf|AnnotatedEventf)\(`) // a line can end after the dot
	recording = regexp.MustCompile(`/(tools|compat)/record"`)
	build     = regexp.MustCompile(`(?m)^//go:build (.*)$`)
)

// miss remembers the ignored files of a package that can use recorders.
func (l *loader) miss(p *packages.Package) {
	for _, name := range p.IgnoredFiles {
		src, err := os.ReadFile(name)
		if err != nil || filepath.Ext(name) != ".go" || !recording.Match(src) && !emission.Match(src) || slices.ContainsFunc(l.missed, func(d Diagnostic) bool { return d.Pos.Filename == name }) {
			continue
		}
		text := "this build does not contain the file: set GOOS and GOARCH, or move it by hand"
		if m := build.FindSubmatch(src); m != nil {
			text = fmt.Sprintf("this build does not contain the file: set -tags, or move it by hand (%s)", m[1])
		}
		l.missed = append(l.missed, Diagnostic{token.Position{Filename: name, Line: 1}, "types", text})
	}
}

// cause returns why an import fails, which an error of the importing package does not say.
func (l *loader) cause(cfg *packages.Config, e packages.Error, patterns []string) string {
	if !strings.Contains(e.Msg, "could not import") {
		return ""
	}
	args := append([]string{"list", "-e", "-deps", "-test", "-f={{with .Error}}{{.Err}}{{end}}"}, cfg.BuildFlags...)
	causes, err := goCommand(l.cfg, append(args, patterns...)...)
	if err != nil || causes == "" {
		return ""
	}
	first, _, _ := strings.Cut(causes, "\n")
	return ": " + first
}

func oneLine(e packages.Error) string {
	lines := strings.Split(e.Error(), "\n")
	if len(lines) > 1 && strings.HasPrefix(strings.TrimPrefix(lines[0], "-: "), "# ") {
		lines = lines[1:] // the package, before the errors of the compiler
	}
	msg := strings.Join(strings.Fields(lines[0]), " ")
	if strings.Contains(msg, "does not contain main module") {
		msg += "; run eventsmigrate in a directory below a go.mod"
	}
	return strings.TrimPrefix(msg, "-: ")
}

// add adds the packages to a program. Test variants come last, because they
// contain more files.
func (l *loader) add(p *move.Program) {
	roots := slices.Clone(l.roots)
	slices.SortStableFunc(roots, func(x, y *packages.Package) int { return len(x.ForTest) - len(y.ForTest) })
	var added []*move.Package
	for _, r := range roots {
		pkg := &move.Package{Path: r.PkgPath, Types: r.Types, Info: r.TypesInfo, Files: r.Syntax}
		for _, f := range r.Syntax {
			name := l.fset.File(f.FileStart).Name()
			file := p.AddFile(pkg, f, l.sources[name])
			file.Test = file.Test || r.ForTest == "" && r.Imports["sigs.k8s.io/controller-runtime/pkg/envtest"] != nil ||
				r.Module != nil && testFolder.MatchString(strings.TrimPrefix(r.PkgPath, r.Module.Path))
			switch {
			case l.outside[plain(r.PkgPath)]:
				file.Outside = true
			case r.Module != nil && !r.Module.Main:
				file.Skip = "the file belongs to the module " + r.Module.Path
			case !slices.Contains(r.GoFiles, file.Name):
				file.Skip = "cgo generates the file"
			case r.Module != nil && !isBelow(name, r.Module.Dir):
				file.Skip = "the file is a link out of the module"
			}
		}
		added = append(added, pkg)
	}
	for _, pkg := range added {
		p.Collect(pkg)
	}
}

// testFolder is the name of a package for tests. Others import envtest, apart from their own tests.
var testFolder = regexp.MustCompile(`/(e2e|envtest|tests?|testing|testutils?|testhelpers?)(/|$)`)

// isBelow reports whether a file is below a directory after all links.
func isBelow(name, dir string) bool {
	file, err := filepath.EvalSymlinks(name)
	root, err2 := filepath.EvalSymlinks(dir)
	if err != nil || err2 != nil {
		return true // it is only in an overlay
	}
	rel, err := filepath.Rel(root, file)
	return err == nil && filepath.IsLocal(rel)
}

// importer imports packages for the type-check of a package with the edits.
type importer struct {
	l       *loader
	pkg     *packages.Package
	checked map[string]*types.Package // by ID
}

func (i *importer) Import(path string) (*types.Package, error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	p := i.pkg.Imports[path]
	if p == nil || p.Types == nil {
		p = i.l.byPath[path]
	}
	if p == nil || p.Types == nil {
		return nil, fmt.Errorf("no required module provides package %s", path)
	}
	if t := i.checked[p.ID]; t != nil {
		return t, nil
	}
	return p.Types, nil
}

// result is a package with the edits.
type result struct {
	types *types.Package
	info  *types.Info
	files []*ast.File
}

func newInfo() *types.Info {
	return &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
		Implicits: map[ast.Node]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}, Scopes: map[ast.Node]*types.Scope{},
		Instances: map[*ast.Ident]types.Instance{}, FileVersions: map[*ast.File]string{},
	}
}

// failure is an error of the type-check.
type failure struct {
	pkg  string
	file string
	at   int // in the file with the edits, or -1
	text string
}

// check type-checks the packages with changed files, and those that depend on them, also those
// that are compiled once more for a test of another package. It returns the first error of each
// package.
func (l *loader) check(out map[string]*move.Output) (failures []failure) {
	l.after = map[*packages.Package]*result{}
	checked := map[string]*types.Package{}                   // by ID
	packages.Visit(l.roots, nil, func(p *packages.Package) { // dependencies come first
		dirty := false
		for _, imp := range p.Imports {
			dirty = dirty || checked[imp.ID] != nil
		}
		for _, f := range p.Syntax {
			dirty = dirty || out[l.fset.File(f.FileStart).Name()] != nil
		}
		if !dirty {
			return
		}
		t, f := l.checkPackage(p, out, checked)
		checked[p.ID] = t
		if f != nil {
			failures = append(failures, *f)
		}
	})
	return failures
}

func (l *loader) checkPackage(p *packages.Package, out map[string]*move.Output, checked map[string]*types.Package) (*types.Package, *failure) {
	var first *failure
	var files []*ast.File
	for _, f := range p.Syntax {
		name := l.fset.File(f.FileStart).Name()
		if o := out[name]; o != nil {
			n, err := parser.ParseFile(l.fset, name, o.Raw, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return p.Types, &failure{pkg: p.PkgPath, file: name, at: -1, text: err.Error()}
			}
			f = n
		}
		files = append(files, f)
	}
	conf := &types.Config{
		Importer:    &importer{l, p, checked},
		Sizes:       p.TypesSizes,
		FakeImportC: true,
		GoVersion:   p.Types.GoVersion(),
		Error: func(err error) {
			var e types.Error
			if errors.As(err, &e) && first == nil {
				pos := l.fset.Position(e.Pos)
				first = &failure{pkg: p.PkgPath, file: pos.Filename, at: pos.Offset, text: e.Msg}
			}
		},
	}
	info := newInfo()
	t, _ := conf.Check(p.Types.Path(), l.fset, files, info)
	l.after[p] = &result{t, info, files}
	return t, first
}
