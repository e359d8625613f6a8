package move

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// Import paths of what tests read Events with.
const (
	informersPath = "k8s.io/client-go/informers/core/v1"
	testingPath   = "k8s.io/client-go/testing"
	schemaPath    = "k8s.io/apimachinery/pkg/runtime/schema"
	corePath      = "k8s.io/api/core/v1"
)

// fakePaths are the packages with fake clients, which keep the Events of both groups apart,
// unlike the API server.
var fakePaths = []string{clientset + "/fake", typedPath + "/fake", testingPath}

// reads reports tests that expect Events of the core group from a fake clientset, although
// the broadcaster that emits them moves to events.k8s.io.
func (pl *planner) reads() {
	all, own := pl.writers()
	for _, f := range pl.Files {
		dir := strings.TrimSuffix(f.Pkg.Types.Path(), "_test")
		if !f.isTest() || f.Skip != "" || !slices.Contains(own, dir) && !reaches(f.Pkg.Types, all) || !reaches(f.Pkg.Types, fakePaths) {
			continue
		}
		events := false // the function mentions the resource
		ast.Inspect(f.AST, func(n ast.Node) bool {
			if d, ok := n.(*ast.FuncDecl); ok {
				events = namesEvents(f.Pkg.Info, d)
			}
			if pos := coreRead(f, n, events); pos.IsValid() {
				pl.note(pos, "tests", Decide, "the test expects Events of the core group, but the broadcaster writes to events.k8s.io, and a fake clientset keeps the groups apart")
			}
			return true
		})
	}
}

// writers returns the packages with a broadcaster that moves: those that importers run, and
// those with one in their tests.
func (pl *planner) writers() (all, own []string) {
	for _, c := range pl.constructors {
		if _, ok := pl.moves(ref{nodes: []node{c.node}}); !ok || c.kind != broadcaster {
			continue
		}
		own = append(own, strings.TrimSuffix(c.file.Pkg.Types.Path(), "_test"))
		if !c.file.isTest() {
			all = append(all, c.file.Pkg.Types.Path())
		}
	}
	return all, own
}

// reaches reports whether a package imports one of several packages, or imports one that
// does.
func reaches(pkg *types.Package, paths []string) bool {
	seen := map[string]bool{}
	var visit func(p *types.Package) bool
	visit = func(p *types.Package) bool {
		if seen[p.Path()] || isStandard(p.Path()) {
			return false
		}
		seen[p.Path()] = true
		return slices.Contains(paths, p.Path()) || slices.ContainsFunc(p.Imports(), visit)
	}
	return slices.ContainsFunc(pkg.Imports(), visit)
}

// coreRead returns the position of an expression that reads Events of the core group, or
// selects the actions on them. Events reports whether the function names the resource.
func coreRead(f *File, n ast.Node, events bool) token.Pos {
	info := f.Pkg.Info
	switch n := n.(type) {
	case *ast.SelectorExpr:
		if fn, ok := info.Uses[n.Sel].(*types.Func); ok && readsEvents(fn) {
			return n.Sel.Pos()
		}
	case *ast.CompositeLit:
		if isResource(info.TypeOf(n)) && fieldOf(info, n, "Resource") == "events" && fieldOf(info, n, "Group") == "" {
			return n.Pos()
		}
	case *ast.CallExpr:
		sel, ok := ast.Unparen(n.Fun).(*ast.SelectorExpr)
		if !ok || len(n.Args) != 1 || StringOf(info, n.Args[0]) != "events" {
			return token.NoPos
		}
		fn, ok := info.Uses[sel.Sel].(*types.Func)
		if ok && (fn.FullName() == corePath+".Resource" || fn.FullName() == "("+schemaPath+".GroupVersion).WithResource" && isCoreVersion(info, sel.X)) {
			return n.Pos()
		}
	case *ast.BinaryExpr:
		for _, pair := range [][2]ast.Expr{{n.X, n.Y}, {n.Y, n.X}} {
			sel, ok := ast.Unparen(pair[0]).(*ast.SelectorExpr)
			if ok && events && (n.Op == token.EQL || n.Op == token.NEQ) && sel.Sel.Name == "Group" && info.Types[pair[1]].Value != nil && StringOf(info, pair[1]) == "" &&
				isResource(info.TypeOf(sel.X)) {
				return n.Pos()
			}
		}
	case *ast.TypeAssertExpr:
		if n.Type != nil && isObject(info.TypeOf(n.X)) && isCoreEvent(info.TypeOf(n.Type)) && f.imports(testingPath) {
			return n.Type.Pos()
		}
	}
	return token.NoPos
}

// readsEvents reports whether a method of a client or of an informer reads Events of the
// core group.
func readsEvents(fn *types.Func) bool {
	sig := fn.Signature()
	if fn.Pkg() == nil || sig.Recv() == nil {
		return false
	}
	t := named(sig.Recv().Type())
	switch fn.Pkg().Path() {
	case typedPath:
		return t != nil && slices.Contains([]string{"EventInterface", "EventExpansion"}, t.Name()) && slices.Contains([]string{"Get", "List", "Watch", "Search"}, fn.Name())
	case informersPath:
		return t != nil && strings.HasSuffix(t.Name(), "EventInformer")
	}
	return false
}

// isResource reports whether a type is that of a resource with its group.
func isResource(t types.Type) bool {
	return isOneOf(t, schemaPath, "GroupVersionResource", "GroupResource")
}

func isCoreEvent(t types.Type) bool {
	p, ok := types.Unalias(t).(*types.Pointer)
	return ok && isNamed(p.Elem(), corePath, "Event")
}

func isObject(t types.Type) bool { return t != nil && isNamed(t, runtimePath, "Object") }

// isCoreVersion reports whether an expression is the version of the core group.
func isCoreVersion(info *types.Info, e ast.Expr) bool {
	if lit, ok := ast.Unparen(e).(*ast.CompositeLit); ok {
		return fieldOf(info, lit, "Group") == ""
	}
	o := ObjectOf(info, e)
	return o != nil && o.Name() == "SchemeGroupVersion" && o.Pkg() != nil && o.Pkg().Path() == corePath
}

// fieldOf returns the constant string of a field in a literal of a struct, or "" if it has
// none.
func fieldOf(info *types.Info, lit *ast.CompositeLit, name string) string {
	s, ok := under(info.TypeOf(lit)).(*types.Struct)
	if !ok {
		return ""
	}
	for i, e := range lit.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if id, ok := kv.Key.(*ast.Ident); !ok || id.Name != name {
				continue
			}
		} else if i >= s.NumFields() || s.Field(i).Name() != name {
			continue
		}
		if v := valueOf(e); info.Types[v].Value != nil {
			return StringOf(info, v)
		}
		return "\x00" // variable
	}
	return ""
}

// namesEvents reports whether a function contains the name of the resource.
func namesEvents(info *types.Info, d *ast.FuncDecl) (found bool) {
	ast.Inspect(d, func(n ast.Node) bool {
		if e, ok := n.(ast.Expr); ok && StringOf(info, e) == "events" {
			found = true
		}
		return !found
	})
	return found
}
