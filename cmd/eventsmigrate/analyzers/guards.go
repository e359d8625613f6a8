package analyzers

import (
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/types/typeutil"

	"github.com/eventseries/eventseries/cmd/eventsmigrate/internal/move"
)

// memory is a name of what remembers events, or how many there were. The caches of informers
// contain objects.
var (
	memory   = regexp.MustCompile(`(?i)cache|lru\b|limiter|dedup|throttl`)
	informer = regexp.MustCompile(`^(k8s\.io/client-go/tools/cache|sigs\.k8s\.io/controller-runtime)\b`)
)

// guards reports a call that emits only what a cache or a rate limiter lets through. The stack
// leads to it.
func (l *linter) guards(call *ast.CallExpr, reason ast.Expr, stack []ast.Node) {
	for i, n := range stack {
		var before, after []ast.Stmt
		var list []ast.Stmt
		next := ast.Node(call)
		if i+1 < len(stack) {
			next = stack[i+1]
		}
		switch n := n.(type) {
		case *ast.IfStmt:
			if next == n.Body && l.remembers(n) && l.onlyEmits(n.Body.List) {
				l.guarded(call)
				return
			}
		case *ast.BlockStmt:
			list = n.List
		case *ast.CaseClause:
			list = n.Body
		}
		if at := slices.IndexFunc(list, func(s ast.Stmt) bool { return s == next }); at > 0 {
			before, after = list[:at], list[at:]
		}
		for _, s := range before {
			if guard, ok := s.(*ast.IfStmt); ok && leaves(guard) && l.remembers(guard) && (l.isGiven(reason) || l.onlyEmits(after)) {
				l.guarded(call)
				return
			}
		}
	}
}

func (l *linter) guarded(call *ast.CallExpr) {
	l.Reportf(call.Pos(), "a cache or a rate limiter decides what reaches the recorder: counts of the Event contain only that, so remove it (docs/migration.md#caches-and-rate-limiters-around-the-recorder)")
}

// leaves reports whether the body of a statement ends with return or continue.
func leaves(s *ast.IfStmt) bool {
	if len(s.Body.List) == 0 || s.Else != nil {
		return false
	}
	switch last := s.Body.List[len(s.Body.List)-1].(type) {
	case *ast.ReturnStmt:
		return true
	case *ast.BranchStmt:
		return last.Tok == token.CONTINUE
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
		switch s := s.(type) {
		case *ast.AssignStmt, *ast.IncDecStmt, *ast.DeclStmt:
			return false
		case *ast.ExprStmt:
			call, ok := s.X.(*ast.CallExpr)
			if !ok {
				return true
			}
			f, ok := typeutil.Callee(l.TypesInfo, call).(*types.Func)
			_, emits := move.Emission(l.TypesInfo, call)
			return !emits && (!ok || f.Pkg() == nil || !isMemory(f) && !strings.Contains(f.Pkg().Path(), "log"))
		}
		return true
	})
}

// isMemory reports whether a function is one of a cache or a rate limiter.
func isMemory(f *types.Func) bool {
	name := f.Name()
	if r := f.Signature().Recv(); r != nil {
		name = types.TypeString(r.Type(), nil)
	}
	return memory.MatchString(name) && f.Pkg() != nil && !informer.MatchString(f.Pkg().Path()) || strings.HasPrefix(f.FullName(), "(*sync.Map).Load")
}

// remembers reports whether a condition asks what remembers events: a cache, a rate limiter, a map
// that the function fills, or a function of the package that does.
func (l *linter) remembers(s *ast.IfStmt) bool {
	return l.asks(s.Cond, true) || s.Init != nil && l.asks(s.Init, true)
}

func (l *linter) asks(within ast.Node, deeper bool) bool {
	for n := range ast.Preorder(within) {
		switch n := n.(type) {
		case *ast.CallExpr:
			f, ok := typeutil.Callee(l.TypesInfo, n).(*types.Func)
			if !ok || f.Signature().Results().Len() == 0 {
				continue
			}
			answer := f.Signature().Results().At(f.Signature().Results().Len() - 1).Type()
			if !types.Identical(answer.Underlying(), types.Typ[types.Bool]) {
				continue
			}
			if isMemory(f) || deeper && f.Pkg() == l.Pkg && l.asks(l.bodyOf(f), false) {
				return true
			}
		case *ast.IndexExpr:
			if l.fills(n) {
				return true
			}
		}
	}
	return false
}

// fills reports whether the function that reads an element of a map also sets one.
func (l *linter) fills(read *ast.IndexExpr) bool {
	m := move.ObjectOf(l.TypesInfo, read.X)
	t := l.TypesInfo.TypeOf(read.X)
	if _, ok := t.Underlying().(*types.Map); !ok || m == nil {
		return false
	}
	for n := range ast.Preorder(l.fileOf(read)) {
		if a, ok := n.(*ast.AssignStmt); ok && slices.ContainsFunc(a.Lhs, func(e ast.Expr) bool {
			x, ok := e.(*ast.IndexExpr)
			return ok && move.ObjectOf(l.TypesInfo, x.X) == m
		}) {
			return true
		}
	}
	return false
}

// bodyOf returns the body of a function of the package.
func (l *linter) bodyOf(f *types.Func) ast.Node {
	for _, file := range l.Files {
		for _, d := range file.Decls {
			if fun, ok := d.(*ast.FuncDecl); ok && l.TypesInfo.Defs[fun.Name] == f && fun.Body != nil {
				return fun.Body
			}
		}
	}
	return &ast.BlockStmt{}
}
