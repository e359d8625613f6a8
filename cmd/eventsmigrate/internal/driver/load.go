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
	"os"
	"slices"
	"strings"
	"sync"

	"golang.org/x/tools/go/gcexportdata"
	"golang.org/x/tools/go/packages"

	"github.com/eventseries/eventseries/cmd/eventsmigrate/internal/move"
)

// Config says what to load and to move.
type Config struct {
	Dir      string
	Patterns []string
	Tags     string
	Env      []string          // in addition to that of the process
	Overlay  map[string][]byte // replaces files
	Options  move.Options

	modFile string // replaces go.mod, if it is set
}

// ErrLoad is the error for packages that do not load.
var ErrLoad = errors.New("packages do not load")

// build is a configuration of the go command: build tags and a platform.
type build struct {
	tags   string
	env    []string
	roots  []*packages.Package
	byPath map[string]*packages.Package

	outside bool // the packages are not among the patterns

	// after are the packages that the last check found to change, with the edits.
	after map[*packages.Package]*result

	// baseline are the errors before the move, by package. The first build has none.
	baseline map[string]map[string]bool
}

// loader loads packages for several builds with a common file set and common syntax
// trees, so that positions mean the same in all of them.
type loader struct {
	cfg  Config
	fset *token.FileSet

	// universe are the types from export data, so that each type exists once.
	universe map[string]*types.Package

	missed []string // files that no build contains

	flags []string // of the go command

	mu    sync.Mutex
	files map[string]*parsed
}

type parsed struct {
	once sync.Once
	file *ast.File
	src  []byte
	err  error
}

func newLoader(cfg Config) *loader {
	l := &loader{cfg: cfg, fset: token.NewFileSet(), files: map[string]*parsed{}}
	// With -mod=mod, which programs with a vendor directory need, the go command adds the
	// modules of missing packages to go.mod. Only the user decides about that.
	if flags, err := goCommand(cfg, "env", "GOFLAGS"); err == nil && strings.Contains(flags, "-mod=mod") {
		l.flags = []string{"-mod=readonly"}
	}
	return l
}

const mode = packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedTypes |
	packages.NeedSyntax | packages.NeedTypesInfo | packages.NeedTypesSizes | packages.NeedModule | packages.NeedExportFile | packages.NeedForTest

// parse returns the same syntax tree in all builds.
func (l *loader) parse(fset *token.FileSet, name string, src []byte) (*ast.File, error) {
	l.mu.Lock()
	p := l.files[name]
	if p == nil {
		p = &parsed{src: src}
		l.files[name] = p
	}
	l.mu.Unlock()
	p.once.Do(func() { p.file, p.err = parser.ParseFile(fset, name, src, parser.ParseComments|parser.AllErrors) })
	return p.file, p.err
}

func (l *loader) config(b *build) *packages.Config {
	cfg := &packages.Config{
		Mode: mode, Dir: l.cfg.Dir, Fset: l.fset, Tests: true, ParseFile: l.parse, Overlay: l.cfg.Overlay,
		Env: append(append(os.Environ(), l.cfg.Env...), b.env...),
	}
	cfg.BuildFlags = slices.Clone(l.flags)
	if b.tags != "" {
		cfg.BuildFlags = append(cfg.BuildFlags, "-tags="+b.tags)
	}
	if l.cfg.modFile != "" {
		cfg.BuildFlags = append(cfg.BuildFlags, "-modfile="+l.cfg.modFile)
	}
	return cfg
}

// load loads the packages of a build, and those that the result of the move can import.
func (l *loader) load(b *build, patterns []string) error {
	cfg := l.config(b)
	extras := append(move.Imports(l.cfg.Options.Target), move.ManagerPath) // perhaps missing
	all, err := packages.Load(cfg, append(slices.Clone(patterns), extras...)...)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrLoad, err)
	}
	b.byPath = map[string]*packages.Package{}
	packages.Visit(all, nil, func(p *packages.Package) {
		if p.ID == p.PkgPath {
			b.byPath[p.PkgPath] = p
		}
	})
	// Patterns can contain the extras, as in this repository.
	for _, p := range all {
		isExtra := slices.Contains(extras, p.PkgPath) || slices.Contains(extras, strings.TrimSuffix(p.PkgPath, "_test")) ||
			slices.Contains(extras, strings.TrimSuffix(p.PkgPath, ".test"))
		if isExtra || strings.HasSuffix(p.ID, ".test") {
			continue
		}
		for _, e := range p.Errors {
			return fmt.Errorf("%w: %s: %s%s", ErrLoad, p.PkgPath, oneLine(e), l.cause(cfg, e, patterns))
		}
		b.roots = append(b.roots, p)
	}
	if len(b.roots) == 0 {
		return fmt.Errorf("%w: %s: no packages; go list tells why", ErrLoad, strings.Join(patterns, " "))
	}
	return nil
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
	msg := strings.Join(strings.Fields(e.Error()), " ")
	if strings.Contains(msg, "does not contain main module") {
		msg += "; run eventsmigrate in a directory below a go.mod"
	}
	return strings.TrimPrefix(msg, "-: ")
}

// add adds the packages of a build to a program. Test variants come last, because they
// contain more files.
func (l *loader) add(p *move.Program, b *build) {
	roots := slices.Clone(b.roots)
	slices.SortStableFunc(roots, func(x, y *packages.Package) int { return len(x.ForTest) - len(y.ForTest) })
	var added []*move.Package
	for _, r := range roots {
		if r.TypesInfo == nil {
			continue
		}
		pkg := &move.Package{Path: r.PkgPath, Types: r.Types, Info: r.TypesInfo, Files: r.Syntax}
		for _, f := range r.Syntax {
			name := l.fset.File(f.FileStart).Name()
			file := p.AddFile(pkg, f, l.files[name].src)
			switch {
			case b.outside:
				file.Outside = true
			case r.Module != nil && !r.Module.Main:
				file.Skip = "the file belongs to the module " + r.Module.Path
			case !slices.Contains(r.GoFiles, file.Name):
				file.Skip = "cgo generates the file"
			}
		}
		added = append(added, pkg)
	}
	for _, pkg := range added {
		p.Collect(pkg)
		if b.outside {
			p.BlockExported(pkg)
		}
	}
}

// importer imports packages for the type-check of a package with the edits.
type importer struct {
	l       *loader
	b       *build
	pkg     *packages.Package
	checked map[string]*types.Package // by ID
}

func (i *importer) Import(path string) (*types.Package, error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	p := i.pkg.Imports[path]
	if p != nil {
		if t := i.checked[p.ID]; t != nil {
			return t, nil
		}
	}
	if p == nil || p.Types == nil {
		p = i.b.byPath[path]
	}
	if p == nil {
		return nil, fmt.Errorf("no required module provides package %s", path)
	}
	if t := i.checked[p.ID]; t != nil {
		return t, nil
	}
	if p.Types != nil && p.Types.Complete() {
		return p.Types, nil
	}
	if p.ExportFile == "" {
		return nil, fmt.Errorf("package %s has no export data", path)
	}
	file, err := os.Open(p.ExportFile)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	r, err := gcexportdata.NewReader(file) //nolint:staticcheck // go list writes archives
	if err != nil {
		return nil, err
	}
	if i.l.universe == nil {
		i.l.universe = map[string]*types.Package{}
		for path, p := range i.b.byPath {
			if p.Types != nil {
				i.l.universe[path] = p.Types
			}
		}
	}
	return gcexportdata.Read(r, i.l.fset, i.l.universe, path)
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

	// outside is the package of an error outside of the patterns on a line without edits.
	// Its position in the file before is pos.
	outside *packages.Package
	pos     token.Pos
}

// check type-checks the packages of a build with changed files, and those that depend on
// them. It returns the first error of each package.
// checked are the new types of packages, which grow.
func (l *loader) check(b *build, out map[string]*move.Output, checked map[string]*types.Package) (failures []failure) {
	b.after = map[*packages.Package]*result{}
	dirty := map[*packages.Package]bool{}
	state := map[*packages.Package]int{}
	roots := map[*packages.Package]bool{}
	for _, r := range b.roots {
		roots[r] = true
	}
	var visit func(p *packages.Package) bool
	visit = func(p *packages.Package) bool {
		if state[p] != 0 {
			return dirty[p]
		}
		state[p] = 1
		d := false
		for _, imp := range p.Imports {
			if visit(imp) {
				d = true
			}
		}
		if !roots[p] && (!d || len(p.Syntax) == 0) {
			// Packages outside of the patterns have their old dependencies. In another
			// build, the first one has checked the dependencies.
			dirty[p] = checked[p.ID] != nil
			return dirty[p]
		}
		for _, f := range p.Syntax {
			if out[l.fset.File(f.FileStart).Name()] != nil {
				d = true
			}
		}
		dirty[p] = d
		if d {
			t, f := l.checkPackage(b, p, out, checked)
			checked[p.ID] = t
			if f != nil {
				failures = append(failures, *f)
			}
		}
		return d
	}
	for _, r := range b.roots {
		visit(r)
	}
	return failures
}

func (l *loader) checkPackage(b *build, p *packages.Package, out map[string]*move.Output, checked map[string]*types.Package) (*types.Package, *failure) {
	var first *failure
	fset := l.fset
	var files []*ast.File
	for _, f := range p.Syntax {
		name := fset.File(f.FileStart).Name()
		if o := out[name]; o != nil {
			n, err := parser.ParseFile(fset, name, o.Raw, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return p.Types, &failure{pkg: p.PkgPath, file: name, at: -1, text: err.Error()}
			}
			f = n
		}
		files = append(files, f)
	}
	conf := &types.Config{
		Importer:    &importer{l, b, p, checked},
		Sizes:       b.roots[0].TypesSizes,
		FakeImportC: true,
		Error: func(err error) {
			var e types.Error
			if !errors.As(err, &e) || b.baseline[p.ID][e.Msg] || first != nil && first.outside == nil {
				return
			}
			pos := fset.Position(e.Pos)
			f := &failure{pkg: p.PkgPath, file: pos.Filename, at: pos.Offset, text: e.Msg}
			if o := out[pos.Filename]; b.outside && (o == nil || len(o.SetsOnLine(pos.Offset)) == 0) {
				if first != nil {
					return
				}
				f.outside, f.pos = p, l.origin(e.Pos, o != nil, out)
			}
			first = f
		},
	}
	if p.Module != nil && p.Module.GoVersion != "" {
		conf.GoVersion = "go" + p.Module.GoVersion
	}
	if p.Types != nil && p.Types.GoVersion() != "" {
		conf.GoVersion = p.Types.GoVersion()
	}
	info := newInfo()
	t, _ := conf.Check(p.Types.Path(), fset, files, info)
	b.after[p] = &result{t, info, files}
	return t, first
}
