package analyzers

import (
	"go/ast"
	"go/types"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/types/typeutil"

	"github.com/eventseries/eventseries/cmd/eventsmigrate/internal/move"
)

// memory matches the names of what remembers events, or how many there were. The caches of
// informers contain objects.
var (
	memory   = regexp.MustCompile(`(?i)cache|lru\b|limiter|dedup|throttl`)
	informer = regexp.MustCompile(`^(k8s\.io/client-go/tools/cache|sigs\.k8s\.io/controller-runtime)\b`)
)

// guards reports a call that emits only what a cache or a rate limiter lets through. The stack
// leads to it.
func (l *linter) guards(call *ast.CallExpr, reason ast.Expr, stack []ast.Node) {
	for i, n := range stack {
		var list []ast.Stmt
		switch n := n.(type) {
		case *ast.IfStmt:
			list = []ast.Stmt{n}
		case *ast.BlockStmt:
			list = n.List
		case *ast.CaseClause:
			list = n.Body
		}
		for j, s := range list {
			guard, ok := s.(*ast.IfStmt)
			if !ok || !l.asks(&ast.IfStmt{Init: guard.Init, Cond: guard.Cond, Body: new(ast.BlockStmt)}, true) {
				continue
			}
			within := i+1 < len(stack) && guard.Body == stack[i+1]
			if within && l.onlyEmits(guard.Body.List) || guard.End() < call.Pos() && leaves(guard) && (l.isGiven(reason) || l.onlyEmits(list[j+1:])) {
				l.Reportf(call.Pos(), "a cache or a rate limiter decides what reaches the recorder: counts of the Event contain only that, so remove it (docs/migration.md#caches-and-rate-limiters-around-the-recorder)")
				return
			}
		}
	}
}

// leaves reports whether what follows a statement happens only without it.
func leaves(s *ast.IfStmt) bool {
	if n := len(s.Body.List); n > 0 && s.Else == nil {
		switch s.Body.List[n-1].(type) {
		case *ast.ReturnStmt, *ast.BranchStmt:
			return true
		}
	}
	return false
}

// isGiven reports whether a reason is that of the caller: a parameter, or a part of one.
func (l *linter) isGiven(reason ast.Expr) bool {
	for n := range ast.Preorder(reason) {
		if id, ok := n.(*ast.Ident); ok {
			v, ok := l.TypesInfo.Uses[id].(*types.Var)
			return ok && v.Kind() == types.ParamVar
		}
	}
	return false
}

// onlyEmits reports whether statements do nothing but emit events, log, and remember them.
func (l *linter) onlyEmits(list []ast.Stmt) bool {
	return !slices.ContainsFunc(list, func(s ast.Stmt) bool {
		x, ok := s.(*ast.ExprStmt)
		if !ok {
			_, sets := s.(*ast.AssignStmt)
			return !sets
		}
		call, ok := x.X.(*ast.CallExpr)
		if !ok {
			return true
		}
		f, ok := typeutil.Callee(l.TypesInfo, call).(*types.Func)
		_, emits := move.Emission(l.TypesInfo, call)
		return !emits && (!ok || f.Pkg() == nil || !isMemory(f) && !strings.Contains(f.Pkg().Path(), "log"))
	})
}

// isMemory reports whether a function is one of a cache or a rate limiter.
func isMemory(f *types.Func) bool {
	name := f.Name()
	if r := f.Signature().Recv(); r != nil {
		name = types.TypeString(r.Type(), nil)
	}
	return f.Pkg() != nil && memory.MatchString(name) && !informer.MatchString(f.Pkg().Path()) || strings.HasPrefix(f.FullName(), "(*sync.Map).Load")
}

// asks reports whether a condition asks what remembers events: a cache, a rate limiter, a map of
// times, or, one step deeper, a function of the package that does.
func (l *linter) asks(within ast.Node, deeper bool) bool {
	for n := range ast.Preorder(within) {
		switch n := n.(type) {
		case *ast.CallExpr:
			f, ok := typeutil.Callee(l.TypesInfo, n).(*types.Func)
			if !ok || f.Signature().Results().Len() == 0 {
				continue
			}
			answer := f.Signature().Results().At(f.Signature().Results().Len() - 1).Type()
			if types.Identical(answer, types.Typ[types.Bool]) && (isMemory(f) || deeper && l.asks(l.declarationOf(f), false)) {
				return true
			}
		case *ast.IndexExpr:
			if t := l.TypesInfo.TypeOf(n.X); t != nil {
				if m, ok := t.Underlying().(*types.Map); ok && types.TypeString(m.Elem(), nil) == "time.Time" {
					return true
				}
			}
		}
	}
	return false
}

// declarationOf returns the declaration of a function of the package, or an empty node.
func (l *linter) declarationOf(f *types.Func) ast.Node {
	for _, file := range l.Files {
		for _, d := range file.Decls {
			if fun, ok := d.(*ast.FuncDecl); ok && l.TypesInfo.Defs[fun.Name] == f {
				return fun
			}
		}
	}
	return &ast.BadDecl{}
}
