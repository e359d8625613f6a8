package move

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
)

// leaveRecorders leaves the recorders of broadcasters that have no structured ones.
// Broadcasters stay: with the import of compat/record, they write to the same sink with the
// same role, and have recorders of both kinds.
func (pl *planner) leaveRecorders() {
	for _, u := range sorted(pl.Program, pl.uses) {
		foreign := u.foreign
		if foreign == "" && !u.local && !u.concrete {
			foreign = pl.foreign
		}
		switch {
		case foreign != "":
			pl.leave(u.node, Reason{u.call.Pos(), fmt.Sprintf("%s makes the broadcaster", foreign), true, true})
		case len(u.call.Args) != 2:
			pl.leave(u.node, Reason{u.call.Pos(), "NewRecorder receives the results of a call", true, true})
		}
	}
}

// newRecorders takes the structured recorders of broadcasters of compat/record.
func (pl *planner) newRecorders() {
	for _, u := range sorted(pl.Program, pl.uses) {
		set, ok := pl.moves(ref{nodes: []node{u.node}})
		if !ok || u.file.Skip != "" {
			continue
		}
		events := ".Events()"
		if !u.concrete {
			events = ".(*" + qualify(dropInPath) + "Broadcaster)" + events
		}
		pl.edit(u.file, u.sel.X.End(), u.sel.X.End(), set, events)
		pl.source(u, set)
		pl.note(u.call.Pos(), "types", Moved, "NewRecorder")
	}
}

// source replaces an EventSource by its component.
func (pl *planner) source(u *newRecorder, set node) {
	arg := u.call.Args[1]
	lit, ok := ast.Unparen(arg).(*ast.CompositeLit)
	if !ok {
		pl.edit(u.file, arg.End(), arg.End(), set, ".Component")
		return
	}
	var component ast.Expr
	for i, e := range lit.Elts {
		kv, ok := e.(*ast.KeyValueExpr)
		switch {
		case !ok && i == 0:
			component = e
		case ok && kv.Key.(*ast.Ident).Name == "Component":
			component = kv.Value
		default:
			pl.note(e.Pos(), "types", Decide, "the reporting instance was the host %s; now it is the name of the controller and of the host", u.file.text(valueOf(e)))
		}
	}
	if component == nil {
		pl.edit(u.file, arg.Pos(), arg.End(), set, `""`)
		pl.note(arg.Pos(), "types", Decide, "the recorder has no component, but the API server requires a reporting controller")
		return
	}
	pl.edit(u.file, arg.Pos(), component.Pos(), set, "")
	pl.edit(u.file, component.End(), arg.End(), set, "")
	pl.checkName(u.file, component, "types")
}

func (pl *planner) hasType(n node, k kind) bool {
	for _, o := range pl.occurrences {
		if o.kind == k && pl.find(o.expr.Pos()) == n {
			return true
		}
	}
	return false
}

func scopeAt(pkg *types.Package, pos token.Pos) *types.Scope {
	return pkg.Scope().Innermost(pos)
}

// assigned returns the only expression that a function assigns to a variable, or nil.
func assigned(info *types.Info, fun *ast.FuncDecl, v *types.Var) ast.Expr {
	var found []ast.Expr
	ast.Inspect(fun, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			if id, ok := n.Key.(*ast.Ident); ok && info.Uses[id] == v {
				found = append(found, n.Value)
			}
		case *ast.AssignStmt:
			for i, l := range n.Lhs {
				if ObjectOf(info, l) == v {
					if len(n.Lhs) == len(n.Rhs) {
						found = append(found, n.Rhs[i])
					} else {
						found = append(found, nil)
					}
				}
			}
		case *ast.ValueSpec:
			for i, l := range n.Names {
				if info.Defs[l] == v && i < len(n.Values) {
					found = append(found, n.Values[i])
				}
			}
		}
		return true
	})
	if len(found) != 1 {
		return nil
	}
	return found[0]
}

// ObjectOf returns the object of an identifier or of the field that a selector selects.
func ObjectOf(info *types.Info, e ast.Expr) types.Object {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		if o := info.Defs[e]; o != nil {
			return o
		}
		return info.Uses[e]
	case *ast.SelectorExpr:
		return info.Uses[e.Sel]
	}
	return nil
}

// visible reports whether an expression of names has the same meaning at pos.
func (pl *planner) visible(info *types.Info, pkg *types.Package, e ast.Expr, pos token.Pos) bool {
	ok := true
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			ok = ok && pl.visible(info, pkg, n.X, pos)
			return false
		case *ast.Ident:
			o := info.Uses[n]
			scope := scopeAt(pkg, pos)
			if o == nil || scope == nil {
				ok = false
				return false
			}
			if _, at := scope.LookupParent(n.Name, pos); at != o {
				ok = false
			}
		case *ast.CallExpr, *ast.FuncLit, *ast.CompositeLit:
			ok = false
		}
		return ok
	})
	return ok
}
