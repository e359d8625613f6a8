package analyzers

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/types/typeutil"

	"github.com/eventseries/eventseries/cmd/eventsmigrate/internal/move"
)

// fate is what a package does with a broadcaster that a variable or a field holds.
type fate struct {
	shut   bool       // it calls Shutdown
	given  bool       // other code receives the broadcaster
	field  *types.Var // the unexported field that gets the broadcaster
	leaves bool       // the function returns, stores, or passes on a recorder
}

// broadcasters reports the variables and fields with a broadcaster that only this package
// sees, and that it does not shut down.
func (l *linter) broadcasters() {
	for v, values := range l.assigned {
		i := slices.IndexFunc(values, l.newBroadcaster)
		if i < 0 || v.IsField() && v.Exported() {
			continue
		}
		f := l.fateOf(v)
		if f.given || f.shut || f.field != nil && l.fateOf(f.field).shut {
			continue
		}
		text := "add: defer " + v.Name() + ".Shutdown() (os.Exit and log.Fatal skip it)"
		switch {
		case v.IsField() || v.Parent() == l.Pkg.Scope():
			text = "call Shutdown when its last emitter has ended"
		case f.leaves:
			text = fmt.Sprintf("its recorder leaves the function: return %s.Shutdown, too, up to the function that runs the controller, and defer it there (docs/migration.md#programs-on-toolsrecord)", v.Name())
		}
		l.Report(analysis.Diagnostic{Pos: values[i].Pos(), Category: "shutdown", Message: "nothing shuts down the broadcaster: " + text})
	}
}

// newBroadcaster reports whether an expression makes a broadcaster. Those of tests and of
// generated code may stay open.
func (l *linter) newBroadcaster(e ast.Expr) bool {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return false
	}
	f, ok := typeutil.Callee(l.TypesInfo, call).(*types.Func)
	return ok && move.MakesBroadcaster(f) && !l.isTest(e) && !ast.IsGenerated(l.fileOf(e))
}

func (l *linter) isTest(n ast.Node) bool {
	return strings.HasSuffix(l.Fset.File(n.Pos()).Name(), "_test.go")
}

func (l *linter) fileOf(n ast.Node) *ast.File {
	return l.Files[slices.IndexFunc(l.Files, func(f *ast.File) bool { return f.FileStart <= n.Pos() && n.Pos() < f.FileEnd })]
}

// fateOf follows all uses of a variable or a field with a broadcaster or a recorder.
func (l *linter) fateOf(v *types.Var) (f fate) {
	for _, file := range l.Files {
		ast.PreorderStack(file, nil, func(n ast.Node, stack []ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && l.TypesInfo.Uses[id] == v {
				l.follow(v, id, stack, &f)
			}
			return true
		})
	}
	return f
}

// follow interprets one use of a variable or a field, which is in all nodes of the stack. A
// recorder of main ends with the program, and one in a function literal perhaps never.
func (l *linter) follow(v *types.Var, e ast.Expr, stack []ast.Node, f *fate) {
	d, ok := stack[1].(*ast.FuncDecl)
	isMain, isLater := ok && l.Pkg.Name() == "main" && d.Recv == nil && d.Name.Name == "main", false
	for _, n := range stack {
		if lit, ok := n.(*ast.FuncLit); ok {
			isMain = isMain && lit.Pos() > v.Pos()
			isLater = isLater || lit.Pos() > v.Pos()
		}
	}
	f.leaves = f.leaves || isLater && !isMain
	var to ast.Expr
	for _, n := range slices.Backward(stack) {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			f.shut = f.shut || n.X == e && n.Sel.Name == "Shutdown"
			e = n
			continue
		case *ast.TypeAssertExpr, *ast.ParenExpr:
			e = n.(ast.Expr)
			continue
		case *ast.CallExpr:
			adapter, ok := typeutil.Callee(l.TypesInfo, n).(*types.Func)
			if n.Fun == e || ok && adapter.Pkg() != nil && move.IsOurs(adapter.Pkg().Path()) && move.HasMethod(l.TypesInfo.TypeOf(n), "Eventf") {
				e = n
				continue
			}
		case *ast.KeyValueExpr:
			if to = n.Key; to == e {
				return
			}
		case *ast.AssignStmt:
			i := slices.Index(n.Rhs, e)
			if i < 0 {
				return
			}
			to = n.Lhs[min(i, len(n.Lhs)-1)]
		case *ast.ReturnStmt: // to callers that are in the package, too
			if l.Pkg.Name() == "main" && move.HasMethod(l.TypesInfo.TypeOf(e), "NewRecorder") {
				f.shut, f.leaves = f.shut || move.ShutsDown(l.Files, l.TypesInfo), true
				return
			}
		}
		break
	}
	target, _ := move.ObjectOf(l.TypesInfo, to).(*types.Var)
	isBroadcaster := move.HasMethod(l.TypesInfo.TypeOf(e), "NewRecorder")
	switch {
	case !isBroadcaster && !move.HasMethod(l.TypesInfo.TypeOf(e), "Eventf") || target == v:
	case target != nil && !target.IsField() && target.Pos() > v.Pos(): // of the function
		other := l.fateOf(target)
		f.shut, f.given, f.leaves = f.shut || other.shut, f.given || other.given, f.leaves || other.leaves
	case isBroadcaster && target != nil && target.IsField() && target.Pkg() == l.Pkg && !target.Exported():
		f.field, f.leaves = target, true
	default:
		f.given, f.leaves = f.given || isBroadcaster, f.leaves || !isMain
	}
}
