package move

import (
	"cmp"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// Target is where the program moves to.
type Target string

// The targets.
const (
	Record      Target = "record"
	EventSeries Target = "eventseries"
)

// Targets are all targets.
var Targets = []Target{Record, EventSeries}

// Options configure a move.
type Options struct {
	Target  Target
	Related bool              // set related objects
	Actions map[string]string // by reason
}

// Package is a type-checked package.
type Package struct {
	Path  string
	Types *types.Package
	Info  *types.Info
	Files []*ast.File
}

// File is a file of the program.
type File struct {
	Name    string
	Src     []byte
	AST     *ast.File
	Pkg     *Package
	Skip    string // the reason not to edit it, if any
	Outside bool   // its package is not among the patterns: it changes only with the others
	Test    bool   // of a test, or of a package for tests
	offset  int    // of the base of the file
}

// node is a place in the source that has a legacy type: the name of a variable, of a
// field, of a method, an occurrence of a type, or the call of a constructor. Test variants
// of a package share their syntax, and so their nodes.
type node = token.Pos

// dynamic stands for all values that lose their type, or that get it by a type argument.
const dynamic node = -1

// imports stands for the imports of client-go's package events, which change together.
const imports node = -2

// ref are the nodes that determine the type of an expression.
type ref struct {
	nodes []node
	fixed string // the code outside of the program that determines it, if any
}

func (r ref) empty() bool { return len(r.nodes) == 0 && r.fixed == "" }

func (r ref) and(o ref) ref {
	return ref{append(slices.Clip(r.nodes), o.nodes...), cmp.Or(r.fixed, o.fixed)}
}

// Reason tells why a set is left as it is.
type Reason struct {
	Pos     token.Pos
	Text    string
	Outside bool // only code outside of the program requires it, so its uses can adapt
}

// flow is an assignment of a recorder to a place that could have another type, if compat
// adapts the recorder.
type flow struct {
	dst, src ref
	expr     ast.Expr
	file     *File
	rigid    bool // compat cannot adapt it: to a *FakeRecorder, or one of several results
	fake     bool // from a *FakeRecorder
}

// place is an occurrence of a legacy type, a constructor, a call that gets a recorder, or a
// method with a legacy signature.
type place struct {
	node   node
	file   *File
	left   Item   // in the report if the place stays; without a rule, it is not
	typ    string // the legacy type that it certainly has, or ""
	origin string // the code outside of the program that makes the recorder, or managers
	given  bool   // the recorder is that of a broadcaster that the program can receive
	move   func(*planner, node)
}

type call struct {
	expr *ast.CallExpr
	sel  *ast.SelectorExpr // nil in f(g()), where f is a method value
	name string            // of the method
	recv ref
	file *File
	fun  *ast.FuncDecl // around it, or nil
	own  bool          // of a method that this program declares
}

// method is a method that the program declares with the signature of a legacy one.
type method struct {
	fn   *types.Func
	decl *ast.FuncType
	list *ast.FieldList // the methods of the interface, or nil
	file *File
}

// Program is what a move changes.
type Program struct {
	Fset  *token.FileSet
	Files []*File

	byBase map[int]*File
	parent map[node]node
	why    map[node][]Reason

	imported map[*types.Package]map[string]bool // see reached

	flows     []flow
	places    map[node]*place
	calls     map[token.Pos]*call
	methods   map[node]*method
	creations map[token.Pos]*creation
	options   map[token.Pos]*option
	gets      []get
	newCalls  []token.Pos // of recorders of events.k8s.io, apart from tests
	asserted  bool        // code outside of the program returns what must be a *FakeRecorder
	roles     map[token.Pos]*role

	sources sources

	broadcasters map[token.Pos]*File // that the program makes, apart from tests
}

// Why places stay.
const (
	Generated = "the file is generated"
	notNamed  = "the package is not among the patterns"
)

// NewProgram returns a Program without packages.
func NewProgram(fset *token.FileSet) *Program {
	return &Program{
		Fset: fset, byBase: map[int]*File{}, parent: map[node]node{}, why: map[node][]Reason{}, imported: map[*types.Package]map[string]bool{},
		places: map[node]*place{}, calls: map[token.Pos]*call{}, methods: map[node]*method{},
		creations: map[token.Pos]*creation{}, options: map[token.Pos]*option{}, roles: map[token.Pos]*role{}, broadcasters: map[token.Pos]*File{}, sources: sources{client: map[token.Pos]maker{}},
	}
}

// AddFile adds a file, and returns it. One that several packages share, such as a package and its
// test variant, is added once; the last package wins, so add the variant last.
func (p *Program) AddFile(pkg *Package, f *ast.File, src []byte) *File {
	tf := p.Fset.File(f.FileStart)
	if known, ok := p.byBase[tf.Base()]; ok {
		known.Pkg = pkg
		return known
	}
	file := &File{Name: tf.Name(), Src: src, AST: f, Pkg: pkg, offset: tf.Base()}
	switch {
	case ast.IsGenerated(f):
		file.Skip = Generated
	case strings.Contains(pkg.Path, "/vendor/"):
		file.Skip = "the file is vendored"
	}
	p.byBase[tf.Base()] = file
	p.Files = append(p.Files, file)
	return file
}

// fileOf returns the file of the program that contains pos, or nil.
func (p *Program) fileOf(pos token.Pos) *File {
	if pos <= 0 {
		return nil
	}
	tf := p.Fset.File(pos)
	if tf == nil {
		return nil
	}
	return p.byBase[tf.Base()]
}

func (p *Program) find(n node) node {
	up, ok := p.parent[n]
	if !ok {
		return n
	}
	root := p.find(up)
	p.parent[n] = root
	return root
}

func (p *Program) union(a, b node) {
	if a, b = p.find(a), p.find(b); a != b {
		p.parent[b] = a
	}
}

// block leaves the set of a node as it is.
func (p *Program) block(n node, r Reason) { p.why[n] = append(p.why[n], r) }

// link says that both have the same type.
func (p *Program) link(a, b ref, pos token.Pos) {
	all := append(slices.Clip(a.nodes), b.nodes...)
	for _, n := range all[min(1, len(all)):] {
		p.union(all[0], n)
	}
	if len(all) == 0 {
		return
	}
	if fixed := cmp.Or(a.fixed, b.fixed); fixed != "" {
		p.block(all[0], Reason{pos, fixed + " determines the type", true})
	}
}

// text returns the source of a node.
func (f *File) text(n ast.Node) string { return string(f.Src[f.at(n.Pos()):f.at(n.End())]) }

func (f *File) isTest() bool { return f.Test || strings.HasSuffix(f.Name, "_test.go") }

// at returns an offset in Src.
func (f *File) at(pos token.Pos) int { return int(pos) - f.offset }

// Imports are the packages that the result of a move can import, apart from [ManagerPath].
var Imports = []string{eventsPath, compatPath, dropInPath}

// compare orders positions by file and offset.
func (p *Program) compare(a, b token.Pos) int {
	x, y := p.fileOf(a), p.fileOf(b)
	if x == nil || y == nil || x == y {
		return int(a - b)
	}
	return strings.Compare(x.Name, y.Name)
}
