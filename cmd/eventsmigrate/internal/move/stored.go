package move

import (
	"go/ast"
	"go/types"
	"regexp"
	"strings"

	"golang.org/x/tools/go/types/typeutil"
)

// builder matches names of functions that return objects that no server has seen.
var builder = regexp.MustCompile(`(?i)^(build|new|make|construct|generate|expected|desired|template)`)

// writer matches names of functions that write or read objects.
var writer = regexp.MustCompile(`(?i)create|apply|ensure|patch|update|get|save|submit`)

// stored returns a variable with what the API server returned for an object that the
// program has built, or nil if the object itself has a UID. It returns false if there is no
// such variable: clients return what they create, and do not change their argument, except
// for those of controller-runtime.
func (pl *planner) stored(c *call, x ast.Expr) (variable *ast.Ident, ok bool) {
	info := c.file.Pkg.Info
	id, isIdent := ast.Unparen(x).(*ast.Ident)
	if !isIdent || c.fun == nil {
		return nil, true
	}
	o, isVar := info.Uses[id].(*types.Var)
	if !isVar {
		return nil, true
	}
	unknown := pl.built(c, o)
	ast.Inspect(c.fun, func(n ast.Node) bool {
		call, isCall := n.(*ast.CallExpr)
		if !isCall || call.Pos() >= c.expr.Pos() || !passes(info, call, o) {
			return true
		}
		fn, _ := typeutil.Callee(info, call).(*types.Func)
		if fn == nil {
			return true
		}
		results := fn.Signature().Results()
		returns := results.Len() == 2 && sameType(info.TypeOf(call).(*types.Tuple).At(0).Type(), o.Type())
		switch {
		case returns && strings.HasPrefix(fn.Name(), "Create"):
			unknown = true
		case !returns && writer.MatchString(fn.Name()):
			unknown = false // perhaps it changes its argument
		}
		return true
	})
	if !unknown {
		return nil, true
	}
	ast.Inspect(c.fun, func(n ast.Node) bool {
		a, isAssign := n.(*ast.AssignStmt)
		if !isAssign || len(a.Rhs) != 1 || len(a.Lhs) != 2 || a.Pos() >= c.expr.Pos() || !finds(info, a.Rhs[0], o) {
			return true
		}
		if v, isIdent := a.Lhs[0].(*ast.Ident); isIdent && v.Name != "_" && v.Name != id.Name && types.Identical(info.TypeOf(v), o.Type()) {
			if _, at := scopeAt(c.file.Pkg.Types, c.expr.Pos()).LookupParent(v.Name, c.expr.Pos()); at != nil && at == ObjectOf(info, v) {
				variable = v
			}
		}
		return true
	})
	return variable, variable != nil
}

// built reports whether a variable holds an object that the program has built: a literal
// without a UID, or what a function with such a name returns.
func (pl *planner) built(c *call, o *types.Var) (yes bool) {
	info := c.file.Pkg.Info
	ast.Inspect(c.fun, func(n ast.Node) bool {
		a, ok := n.(*ast.AssignStmt)
		if !ok || len(a.Rhs) != 1 || ObjectOf(info, a.Lhs[0]) != o {
			return true
		}
		e := ast.Unparen(a.Rhs[0])
		if u, ok := e.(*ast.UnaryExpr); ok {
			e = u.X
		}
		switch e := e.(type) {
		case *ast.CompositeLit:
			yes = len(e.Elts) > 0 && !strings.Contains(c.file.text(e), "UID")
		case *ast.CallExpr:
			fn, _ := typeutil.Callee(info, e).(*types.Func)
			yes = fn != nil && pl.fileOf(fn.Pos()) != nil && builder.MatchString(fn.Name())
		default:
			yes = false
		}
		return true
	})
	return yes
}

// passes reports whether a variable is an argument of a call.
func passes(info *types.Info, call *ast.CallExpr, o *types.Var) bool {
	for _, a := range call.Args {
		if rootOf(info, a) == o {
			return true
		}
	}
	return false
}

// finds reports whether an expression is a call that creates an object, or reads it by its
// name.
func finds(info *types.Info, e ast.Expr, o *types.Var) (yes bool) {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return false
	}
	for _, a := range call.Args {
		if m, ok := nameIn(info, a); ok && rootOf(info, m.x) == o || rootOf(info, a) == o {
			yes = true
		}
	}
	return yes
}
