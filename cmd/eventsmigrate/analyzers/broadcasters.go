package analyzers

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/types/typeutil"

	"github.com/eventseries/eventseries/cmd/eventsmigrate/internal/move"
)

// holders are the variables and fields that hold the broadcasters of a package, and what
// the package does with them.
type holders struct {
	*linter

	made  map[*types.Var]token.Pos  // where each broadcaster is made
	shut  map[*types.Var]bool       // Shutdown is called
	given map[*types.Var]bool       // other code receives the broadcaster
	field map[*types.Var]*types.Var // the unexported field that gets the variable
	local map[*types.Var]bool       // no recorder of the variable outlives its function
}

// broadcasters reports local variables and fields that nobody shuts down, unless other
// code receives them.
func (l *linter) broadcasters() {
	h := &holders{l, map[*types.Var]token.Pos{}, map[*types.Var]bool{}, map[*types.Var]bool{}, map[*types.Var]*types.Var{}, map[*types.Var]bool{}}
	h.collect()
	if len(h.made) == 0 {
		return
	}
	h.follow()
	h.report()
}

// collect finds the variables and fields that get a new broadcaster. A broadcaster of a
// test or of generated code may stay open.
func (h *holders) collect() {
	open := map[*token.File]bool{}
	for _, f := range h.Files {
		file := h.Fset.File(f.FileStart)
		open[file] = ast.IsGenerated(f) || strings.HasSuffix(file.Name(), "_test.go")
	}
	for o, values := range h.assigned {
		for _, e := range values {
			if h.newBroadcaster(e) && !open[h.Fset.File(e.Pos())] {
				h.made[o] = e.Pos()
			}
		}
	}
}

// follow finds what the package does with variables and fields.
func (h *holders) follow() {
	for _, f := range h.Files {
		ast.PreorderStack(f, nil, func(n ast.Node, stack []ast.Node) bool {
			if e, ok := n.(ast.Expr); ok && len(stack) > 0 {
				if v, ok := h.use(e).(*types.Var); ok {
					h.see(v, e, stack[len(stack)-1])
				}
			}
			return true
		})
	}
}

// see interprets one use of a variable or field, whose parent says what it is.
func (h *holders) see(v *types.Var, e ast.Expr, parent ast.Node) {
	var target ast.Expr
	switch p := parent.(type) {
	case *ast.TypeAssertExpr:
		return // to take its structured recorders
	case *ast.SelectorExpr:
		if p.X == e && p.Sel.Name == "Shutdown" {
			h.shut[v] = true
		}
		return
	case *ast.KeyValueExpr:
		if p.Key == e {
			return
		}
		target = p.Key
	case *ast.AssignStmt:
		if slices.Contains(p.Lhs, e) {
			return
		}
		if i := slices.Index(p.Rhs, e); i >= 0 && i < len(p.Lhs) {
			target = p.Lhs[i]
		}
	}
	if field, ok := move.ObjectOf(h.TypesInfo, target).(*types.Var); ok && field.IsField() && field.Pkg() == h.Pkg && !field.Exported() {
		h.field[v] = field
		return
	}
	h.given[v] = true
}

// report reports the broadcasters that only this package sees, and that it does not shut
// down.
func (h *holders) report() {
	for v, pos := range h.made {
		if v.IsField() && v.Exported() || h.given[v] || h.shut[v] || h.shut[h.field[v]] {
			continue
		}
		text := "nothing shuts down the broadcaster: "
		switch {
		case v.IsField() || v.Parent() == h.Pkg.Scope():
			text += "call Shutdown when its last emitter has ended"
		case h.leaves(v):
			text += fmt.Sprintf("its recorder leaves the function: return %s.Shutdown, too, and defer it in the caller, before the controller runs (docs/migration.md#programs-on-toolsrecord)", v.Name())
		default:
			text += fmt.Sprintf("add: defer %s.Shutdown() (os.Exit and log.Fatal skip it)", v.Name())
		}
		h.Report(analysis.Diagnostic{Pos: pos, Category: "shutdown", Message: text})
	}
}

// leaves reports whether the broadcaster or a recorder that a local variable holds can outlive
// the function, because this returns it, stores it, or passes it on. The end of main is that of all.
func (h *holders) leaves(v *types.Var) (found bool) {
	for _, f := range h.Files {
		ast.PreorderStack(f, nil, func(n ast.Node, stack []ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && h.TypesInfo.Uses[id] == v && !found {
				found = h.leavesAt(v, id, stack)
			}
			return !found
		})
	}
	return found
}

// leavesAt does this for one use, which is a part of the nodes of a stack.
func (h *holders) leavesAt(v *types.Var, e ast.Expr, stack []ast.Node) bool {
	d, ok := stack[1].(*ast.FuncDecl)
	main, within := ok && h.Pkg.Name() == "main" && d.Recv == nil && d.Name.Name == "main", false
	for _, n := range stack {
		if lit, ok := n.(*ast.FuncLit); ok {
			main = main && lit.Pos() > v.Pos()
			within = within || lit.Pos() > v.Pos() // perhaps of a goroutine
		}
	}
	if main || within {
		return !main
	}
	for _, n := range slices.Backward(stack) {
		switch n := n.(type) {
		case *ast.SelectorExpr, *ast.TypeAssertExpr, *ast.ParenExpr:
			e = n.(ast.Expr)
			continue
		case *ast.CallExpr:
			if n.Fun == e {
				e = n
				continue
			}
		case *ast.ExprStmt, *ast.DeferStmt:
			return false
		case *ast.AssignStmt:
			i := slices.Index(n.Rhs, e)
			if i < 0 {
				return false
			}
			if to, ok := move.ObjectOf(h.TypesInfo, n.Lhs[min(i, len(n.Lhs)-1)]).(*types.Var); ok && to != v && !to.IsField() && to.Parent() != h.Pkg.Scope() {
				return move.Emits(h.TypesInfo.TypeOf(e)) && h.leaves(to)
			}
		}
		return move.Emits(h.TypesInfo.TypeOf(e))
	}
	return false
}

// use returns the object that an identifier or a selector uses.
func (l *linter) use(e ast.Expr) types.Object {
	switch e := e.(type) {
	case *ast.Ident:
		return l.TypesInfo.Uses[e]
	case *ast.SelectorExpr:
		return l.TypesInfo.Uses[e.Sel]
	}
	return nil
}

// newBroadcaster reports whether an expression makes a broadcaster.
func (l *linter) newBroadcaster(e ast.Expr) bool {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return false
	}
	f, ok := typeutil.Callee(l.TypesInfo, call).(*types.Func)
	return ok && f.Pkg() != nil && strings.HasPrefix(f.Name(), "NewBroadcaster") && move.IsRecorderPackage(f.Pkg().Path())
}
