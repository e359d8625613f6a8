package move

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// newRecorder takes the structured recorder of a broadcaster of compat/record. Broadcasters
// stay: with the import of compat/record, they write to the same sink with the same role, and
// have recorders of both kinds, with the same source.
func (pl *planner) newRecorder(f *File, call *ast.CallExpr, set node) {
	pl.edit(f, call.Pos(), call.Pos(), set, qualify(compatPath)+"NewStructuredRecorder(")
	pl.edit(f, call.End(), call.End(), set, ")")
	pl.note(call.Pos(), "types", Moved, "NewRecorder")
}

// newSink makes a sink for events.k8s.io one for both groups, if the program has a clientset, and the
// broadcaster one with heartbeats as frequent as their readers need.
func (pl *planner) newSink(f *File, m maker) {
	arg, info := m.call.Args[0], f.Pkg.Info
	if v, ok := info.Uses[identOf(arg)].(*types.Var); ok && m.fun != nil {
		value, begins := assigned(info, m.fun, v)
		n := 0
		for _, o := range info.Uses {
			if o == v {
				n++
			}
		}
		if begins && value != nil && n == 1 {
			arg = value
		}
	}
	if !isOneOf(info.TypeOf(arg), clientPath, "EventSinkImpl") {
		return
	}
	var clientset ast.Expr
	if sink, ok := ast.Unparen(arg).(*ast.UnaryExpr); ok && pl.blocked[arg.Pos()] == "" && !f.hasComment(arg) {
		if lit, ok := ast.Unparen(sink.X).(*ast.CompositeLit); ok && len(lit.Elts) == 1 {
			if client, ok := ast.Unparen(valueOf(lit.Elts[0])).(*ast.CallExpr); ok {
				if get, ok := ast.Unparen(client.Fun).(*ast.SelectorExpr); ok && get.Sel.Name == "EventsV1" && HasMethod(info.TypeOf(get.X), "CoreV1") {
					clientset = get.X
				}
			}
		}
	}
	if clientset == nil {
		pl.note(arg.Pos(), "recorder", Decide, "through events.k8s.io alone, readers of Events show slow loops late or not at all: use compat.NewBroadcaster with compat.NewSink of a clientset")
		return
	}
	pl.edit(f, arg.Pos(), clientset.Pos(), arg.Pos(), qualify(compatPath)+"NewSink(")
	pl.edit(f, clientset.End(), arg.End(), arg.Pos(), ")")
	pl.edit(f, m.call.Pos(), m.call.Lparen, arg.Pos(), qualify(compatPath)+"NewBroadcaster")
	pl.edit(f, m.call.End(), m.call.End(), arg.Pos(), ".Events()")
	pl.note(arg.Pos(), "recorder", Moved, "compat.NewSink")
}

func (f *File) hasComment(n ast.Node) bool {
	return slices.ContainsFunc(f.AST.Comments, func(g *ast.CommentGroup) bool { return n.Pos() <= g.Pos() && g.End() <= n.End() })
}

// assigned returns the only expression that a declaration assigns to a variable, or nil. It
// reports whether the variable begins with it.
func assigned(info *types.Info, within ast.Node, v *types.Var) (value ast.Expr, begins bool) {
	var found []ast.Expr
	for n := range ast.Preorder(within) {
		switch n := n.(type) {
		case *ast.UnaryExpr:
			if n.Op == token.AND && ObjectOf(info, n.X) == v {
				found = append(found, nil)
			}
		case *ast.RangeStmt:
			for _, e := range []ast.Expr{n.Key, n.Value} {
				if e != nil && ObjectOf(info, e) == v {
					found = append(found, nil)
				}
			}
		case *ast.KeyValueExpr:
			if id, ok := n.Key.(*ast.Ident); ok && info.Uses[id] == v {
				found = append(found, n.Value)
			}
		case *ast.AssignStmt:
			for i, l := range n.Lhs {
				if ObjectOf(info, l) == v {
					begins = begins || info.Defs[identOf(l)] == v
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
					found, begins = append(found, n.Values[i]), true
				}
			}
		}
	}
	if len(found) != 1 {
		return nil, false
	}
	return found[0], begins
}

func identOf(e ast.Expr) *ast.Ident {
	id, _ := e.(*ast.Ident)
	return id
}

// ConstantOf returns the value of a constant string, or of a variable of a declaration whose
// only value is one. It returns "" for any other expression.
func ConstantOf(info *types.Info, within ast.Node, e ast.Expr) string {
	if s := StringOf(info, e); s != "" {
		return s
	}
	v, ok := info.Uses[identOf(ast.Unparen(e))].(*types.Var)
	if !ok || v.Pos() < within.Pos() || v.Pos() > within.End() {
		return ""
	}
	if value, begins := assigned(info, within, v); begins && value != nil {
		return StringOf(info, value)
	}
	return ""
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
