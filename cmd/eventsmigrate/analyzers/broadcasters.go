package analyzers

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ast/astutil"
	"golang.org/x/tools/go/types/typeutil"

	"github.com/eventseries/eventseries/cmd/eventsmigrate/internal/move"
)

// holders are the variables and fields that hold the broadcasters of a package, and what
// the package does with them.
type holders struct {
	*linter

	made  map[types.Object]token.Pos    // where each broadcaster is made
	shut  map[types.Object]bool         // Shutdown is called
	given map[types.Object]bool         // other code receives the broadcaster
	field map[types.Object]types.Object // the unexported field that gets the variable
}

// broadcasters reports local variables and fields that nobody shuts down, unless other
// code receives them.
func (l *linter) broadcasters() {
	h := &holders{linter: l, made: map[types.Object]token.Pos{}, shut: map[types.Object]bool{},
		given: map[types.Object]bool{}, field: map[types.Object]types.Object{}}
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
	for _, f := range h.Files {
		if ast.IsGenerated(f) || strings.HasSuffix(h.Fset.File(f.FileStart).Name(), "_test.go") {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			h.assign(n)
			return true
		})
	}
}

// assign adds the objects to which a node assigns a new broadcaster.
func (h *holders) assign(n ast.Node) {
	switch n := n.(type) {
	case *ast.AssignStmt:
		for i, r := range n.Rhs {
			if len(n.Lhs) == len(n.Rhs) && h.newBroadcaster(r) {
				if o := move.ObjectOf(h.TypesInfo, n.Lhs[i]); o != nil {
					h.made[o] = r.Pos()
				}
			}
		}
	case *ast.ValueSpec:
		for i, r := range n.Values {
			if len(n.Names) == len(n.Values) && h.newBroadcaster(r) {
				h.made[h.TypesInfo.Defs[n.Names[i]]] = r.Pos()
			}
		}
	case *ast.KeyValueExpr:
		if id, ok := n.Key.(*ast.Ident); ok && h.newBroadcaster(n.Value) {
			if v, ok := h.TypesInfo.Uses[id].(*types.Var); ok && v.IsField() {
				h.made[v] = n.Value.Pos()
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
	switch p := parent.(type) {
	case *ast.TypeAssertExpr:
		return // to take its structured recorders
	case *ast.SelectorExpr:
		if p.X == e && p.Sel.Name == "Shutdown" {
			h.shut[v] = true
		}
		return
	case *ast.KeyValueExpr:
		if id, ok := p.Key.(*ast.Ident); ok && p.Value == e {
			if field, ok := h.TypesInfo.Uses[id].(*types.Var); ok && h.hidden(field) {
				h.field[v] = field
				return
			}
		}
		if p.Key == e {
			return
		}
	case *ast.AssignStmt:
		for i, left := range p.Lhs {
			if left == e {
				return
			}
			if i < len(p.Rhs) && p.Rhs[i] == e {
				if field, ok := move.ObjectOf(h.TypesInfo, left).(*types.Var); ok && field.IsField() && h.hidden(field) {
					h.field[v] = field
					return
				}
			}
		}
	}
	h.given[v] = true
}

// hidden reports whether only this package sees a field.
func (h *holders) hidden(field *types.Var) bool { return field.Pkg() == h.Pkg && !field.Exported() }

// report reports the broadcasters that only this package sees, and that it does not shut
// down.
func (h *holders) report() {
	for o, pos := range h.made {
		v, ok := o.(*types.Var)
		if !ok || v.IsField() && v.Exported() || h.given[v] {
			continue
		}
		if h.shut[v] || h.shut[h.field[v]] {
			continue
		}
		h.Report(analysis.Diagnostic{Pos: pos, Category: "shutdown", Message: noShutdown + h.line(v, pos)})
	}
}

const noShutdown = "nothing shuts down the broadcaster: call Shutdown when its last emitter has ended"

// line returns the line to add for a local variable, if its function outlives the emitters,
// and the calls after it that skip deferred functions.
func (h *holders) line(v *types.Var, pos token.Pos) string {
	if v.IsField() || v.Parent() == h.Pkg.Scope() {
		return ""
	}
	text := fmt.Sprintf(". If that is here, add: defer %s.Shutdown()", v.Name())
	for _, f := range h.Files {
		path, _ := astutil.PathEnclosingInterval(f, pos, pos)
		for _, n := range path {
			d, ok := n.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(d, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok && call.Pos() > pos && isExit(h.TypesInfo, call) {
					text = fmt.Sprintf("%s, and call it before %s, which does not run deferred functions", text, types.ExprString(call.Fun))
					return false
				}
				return !strings.Contains(text, "before")
			})
		}
	}
	return text
}

// isExit reports whether a call ends the program without deferred functions.
func isExit(info *types.Info, c *ast.CallExpr) bool {
	f, ok := move.ObjectOf(info, c.Fun).(*types.Func)
	if !ok || f.Pkg() == nil {
		return false
	}
	switch f.Pkg().Path() {
	case "os":
		return f.Name() == "Exit"
	case "log", "k8s.io/klog/v2":
		return strings.HasPrefix(f.Name(), "Fatal") || strings.HasPrefix(f.Name(), "Exit") || f.Name() == "FlushAndExit"
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
