package move

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// candidate is an object that the arguments of a message name.
type candidate struct {
	expr    string // "" if there is none
	unnamed string // an object that is not it, because it has no UID
}

// naming is a name of an object in an argument.
type naming struct {
	x       ast.Expr // the object
	nilable bool     // the expression accepts nil
}

// relatedOf returns the related object that the message of a call names.
func (pl *planner) relatedOf(c *call, message int) candidate {
	info, pkg := c.file.Pkg.Info, c.file.Pkg.Types
	args := parts(info, c, message)
	roots := pl.origins(info, c.fun, c.expr.Args[0])
	regarding := types.Unalias(info.TypeOf(c.expr.Args[0]))
	var found []naming
	seen := map[string]bool{}
	for _, a := range args {
		m, ok := nameIn(info, a)
		if !ok {
			continue
		}
		text := c.file.text(m.x)
		if seen[text] {
			continue
		}
		o := rootOf(info, m.x)
		if o == nil || roots[o] && text == rootText(m.x) && !distinct(o.Type(), regarding) || c.file.text(c.expr.Args[0]) == text {
			continue
		}
		if overlap(roots, pl.origins(info, c.fun, m.x), o, regarding) {
			continue
		}
		seen[text] = true
		found = append(found, m)
	}
	if len(found) != 1 {
		return candidate{}
	}
	m := found[0]
	if hasCall(m.x) || !pl.visible(info, pkg, m.x, c.expr.Pos()) {
		return candidate{}
	}
	t := types.Unalias(info.TypeOf(m.x))
	expr := c.file.text(m.x)
	switch {
	case pl.isObject(t, pkg):
	case pl.isObject(types.NewPointer(t), pkg) && addressable(info, m.x):
		t = types.NewPointer(t)
		expr = "&" + expr
	default:
		return candidate{}
	}
	if sameType(t, regarding) && maybeCopy(c.file.text(c.expr.Args[0]), c.file.text(m.x)) {
		return candidate{}
	}
	if m.nilable && !pl.surelySet(c, m.x) {
		return candidate{}
	}
	if failed(info, c, m.x, args) || isNilAt(info, c, m.x) {
		return candidate{}
	}
	stored, ok := pl.stored(c, m.x)
	switch {
	case !ok:
		return candidate{unnamed: expr}
	case stored == nil:
	case failed(info, c, stored, args) || isNilAt(info, c, stored):
		return candidate{unnamed: expr}
	default:
		expr = stored.Name
	}
	return candidate{expr: expr}
}

// parts returns the arguments of a message: those of the format, and the operands of a
// concatenation.
func parts(info *types.Info, c *call, message int) (list []ast.Expr) {
	var add func(e ast.Expr, format bool)
	add = func(e ast.Expr, format bool) {
		if s := sprintf(info, e); s != nil {
			list = append(list, s.Args[1:]...)
			return
		}
		switch x := ast.Unparen(e).(type) {
		case *ast.BinaryExpr:
			if x.Op == token.ADD && info.Types[x].Value == nil {
				add(x.X, true)
				add(x.Y, true)
				return
			}
		case *ast.Ident:
			v, ok := info.Uses[x].(*types.Var)
			if !ok || c.fun == nil || !isString(v.Type()) {
				break
			}
			if value := assigned(info, c.fun, v); value != nil {
				if _, concatenation := ast.Unparen(value).(*ast.BinaryExpr); concatenation || sprintf(info, value) != nil {
					add(value, true)
					return
				}
			}
		}
		if format {
			list = append(list, e)
		}
	}
	for i := message; i < len(c.expr.Args); i++ {
		add(c.expr.Args[i], i > message || c.shape == shapeEvent)
	}
	return list
}

func isString(t types.Type) bool {
	b, ok := types.Unalias(t).Underlying().(*types.Basic)
	return ok && b.Kind() == types.String
}

// nameIn returns the object whose name is an argument: x.Name, x.GetName(),
// klog.KObj(x), client.ObjectKeyFromObject(x).
func nameIn(info *types.Info, a ast.Expr) (naming, bool) {
	switch e := ast.Unparen(a).(type) {
	case *ast.SelectorExpr:
		if e.Sel.Name != "Name" {
			return naming{}, false
		}
		v, ok := info.Uses[e.Sel].(*types.Var)
		if !ok || !v.IsField() || v.Pkg() == nil || v.Pkg().Path() != "k8s.io/apimachinery/pkg/apis/meta/v1" {
			return naming{}, false
		}
		x := e.X
		if m, ok := ast.Unparen(x).(*ast.SelectorExpr); ok && m.Sel.Name == "ObjectMeta" {
			x = m.X
		}
		return naming{x: x}, true
	case *ast.CallExpr:
		fun, ok := ast.Unparen(e.Fun).(*ast.SelectorExpr)
		if !ok {
			return naming{}, false
		}
		if fun.Sel.Name == "GetName" && len(e.Args) == 0 {
			return naming{x: fun.X}, true
		}
		if f, ok := info.Uses[fun.Sel].(*types.Func); ok && len(e.Args) == 1 {
			switch f.FullName() {
			case klogPath + ".KObj":
				return naming{x: e.Args[0], nilable: true}, true
			case "sigs.k8s.io/controller-runtime/pkg/client.ObjectKeyFromObject":
				return naming{x: e.Args[0]}, true
			}
		}
	}
	return naming{}, false
}

// isObject reports whether t implements runtime.Object.
func (pl *planner) isObject(t types.Type, pkg *types.Package) bool {
	for _, name := range []string{"GetObjectKind", "DeepCopyObject"} {
		o, _, _ := types.LookupFieldOrMethod(t, false, pkg, name)
		f, ok := o.(*types.Func)
		if !ok {
			return false
		}
		if s := f.Type().(*types.Signature); s.Params().Len() != 0 || s.Results().Len() != 1 {
			return false
		}
	}
	return true
}

func addressable(info *types.Info, e ast.Expr) bool { return info.Types[e].Addressable() }

// rootOf returns the variable or field that an expression denotes.
func rootOf(info *types.Info, e ast.Expr) types.Object {
	switch e := ast.Unparen(e).(type) {
	case *ast.UnaryExpr:
		return rootOf(info, e.X)
	case *ast.StarExpr:
		return rootOf(info, e.X)
	case *ast.IndexExpr:
		return rootOf(info, e.X)
	}
	return ObjectOf(info, e)
}

func rootText(e ast.Expr) string {
	if id, ok := ast.Unparen(e).(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

// origins returns the variables from which a function computes an expression: its aliases.
func (pl *planner) origins(info *types.Info, fun *ast.FuncDecl, e ast.Expr) map[types.Object]bool {
	found := map[types.Object]bool{}
	var visit func(e ast.Expr, depth int)
	visit = func(e ast.Expr, depth int) {
		if e == nil || depth > 6 {
			return
		}
		ast.Inspect(e, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncLit:
				return false
			case *ast.SelectorExpr:
				// x.field: an object of its own, not an alias of x
				if v, ok := info.Uses[n.Sel].(*types.Var); ok && v.IsField() && !isNameField(v) {
					add(info, fun, found, v, depth, visit)
					return false
				}
			case *ast.CallExpr:
				// The object is an argument or the receiver: DeepCopy, GetReference, Update.
				return true
			case *ast.Ident:
				if v, ok := ObjectOf(info, n).(*types.Var); ok && !v.IsField() {
					add(info, fun, found, v, depth, visit)
				}
			}
			return true
		})
	}
	visit(e, 0)
	return found
}

func isNameField(v *types.Var) bool {
	return v.Pkg() != nil && v.Pkg().Path() == "k8s.io/apimachinery/pkg/apis/meta/v1"
}

func add(info *types.Info, fun *ast.FuncDecl, found map[types.Object]bool, v *types.Var, depth int, visit func(ast.Expr, int)) {
	if found[v] || !interesting(v.Type()) {
		return
	}
	found[v] = true
	if fun == nil {
		return
	}
	ast.Inspect(fun, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i, l := range n.Lhs {
				if ObjectOf(info, l) == v {
					if len(n.Lhs) == len(n.Rhs) {
						visit(n.Rhs[i], depth+1)
					} else {
						visit(n.Rhs[0], depth+1)
					}
				}
			}
		case *ast.ValueSpec:
			for i, l := range n.Names {
				if info.Defs[l] == v && i < len(n.Values) {
					visit(n.Values[i], depth+1)
				}
			}
		}
		return true
	})
}

// interesting reports whether a variable can be an object or contain its name.
func interesting(t types.Type) bool {
	t = types.Unalias(t)
	if n := named(t); n != nil && n.Pkg() != nil {
		switch n.Pkg().Path() {
		case "context", "github.com/go-logr/logr", klogPath, "k8s.io/client-go/kubernetes", "sync", "time":
			return false
		}
	}
	if isString(t) {
		return true
	}
	switch u := t.Underlying().(type) {
	case *types.Pointer:
		return true
	case *types.Struct:
		return true
	case *types.Interface:
		return u.NumMethods() > 1
	}
	return false
}

// overlap reports whether an object is an alias of the regarding one: one of them is
// computed from the other one, and both can be the same object.
func overlap(regarding, other map[types.Object]bool, o types.Object, t types.Type) bool {
	if regarding[o] && !distinct(o.Type(), t) {
		return true
	}
	for v := range other {
		if regarding[v] && v != o && sameType(v.Type(), o.Type()) {
			return true
		}
	}
	return false
}

// distinct reports whether values of both types are different objects: the types have
// names, and neither is a reference.
func distinct(a, b types.Type) bool {
	for _, t := range []types.Type{a, b} {
		if n := named(t); n == nil || n.Name() == "ObjectReference" || n.Name() == "Unstructured" || n.Name() == "PartialObjectMetadata" || types.IsInterface(n.Type()) {
			return false
		}
	}
	return !sameType(a, b)
}

// maybeCopy reports whether names such as oldPod and newPod denote states of one object.
func maybeCopy(a, b string) bool {
	for _, name := range []string{a, b} {
		name = strings.ToLower(strings.TrimLeft(name, "&*"))
		for _, p := range []string{"old", "new", "cur", "updated", "existing", "latest", "fresh", "copy", "orig", "desired", "actual", "previous", "prev", "before", "after"} {
			if strings.HasPrefix(name, p) || strings.HasSuffix(name, p) {
				return true
			}
		}
	}
	return false
}

// surelySet reports whether x is not nil at a call, although the argument accepts nil.
func (pl *planner) surelySet(c *call, x ast.Expr) bool {
	info := c.file.Pkg.Info
	o := rootOf(info, x)
	if _, ok := ast.Unparen(x).(*ast.UnaryExpr); ok {
		return true // &x
	}
	if _, ok := types.Unalias(info.TypeOf(x)).Underlying().(*types.Struct); ok {
		return true
	}
	for i, s := range c.stack {
		branch, ok := s.(*ast.IfStmt)
		if !ok || i+1 >= len(c.stack) || c.stack[i+1] != ast.Node(branch.Body) {
			continue
		}
		if guards(info, branch.Cond, o) {
			return true
		}
	}
	// A dereference before the call would have panicked.
	ok := false
	for _, s := range c.stack {
		block, isBlock := s.(*ast.BlockStmt)
		if !isBlock {
			continue
		}
		for _, stmt := range block.List {
			if stmt.End() >= c.expr.Pos() {
				break
			}
			if straight(stmt) && dereferences(info, stmt, o) {
				ok = true
			}
			if assigns(info, stmt, o) {
				ok = false
			}
		}
	}
	for _, a := range c.expr.Args {
		ok = ok || dereferences(info, a, o)
	}
	return ok
}

// straight reports whether a statement runs as a whole.
func straight(s ast.Stmt) bool {
	switch s.(type) {
	case *ast.ExprStmt, *ast.AssignStmt, *ast.DeclStmt:
		return true
	}
	return false
}

func guards(info *types.Info, cond ast.Expr, o types.Object) bool {
	e, ok := ast.Unparen(cond).(*ast.BinaryExpr)
	if ok && e.Op == token.LAND {
		return guards(info, e.X, o) || guards(info, e.Y, o)
	}
	return ok && e.Op == token.NEQ && info.Types[e.Y].IsNil() && rootOf(info, e.X) == o
}

func assigns(info *types.Info, n ast.Node, o types.Object) (found bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		if a, ok := n.(*ast.AssignStmt); ok {
			for _, l := range a.Lhs {
				if ObjectOf(info, l) == o {
					found = true
				}
			}
		}
		return !found
	})
	return found
}

// dereferences reports whether n reads a field of o.
func dereferences(info *types.Info, n ast.Node, o types.Object) (found bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.SelectorExpr:
			if rootOf(info, n.X) == o {
				if v, ok := info.Uses[n.Sel].(*types.Var); ok && v.IsField() {
					found = true
				}
			}
		}
		return !found
	})
	return found
}

// isNilAt reports whether a call is in a branch for x == nil.
func isNilAt(info *types.Info, c *call, x ast.Expr) bool {
	o := rootOf(info, x)
	for i, s := range c.stack {
		branch, ok := s.(*ast.IfStmt)
		if !ok || i+1 >= len(c.stack) {
			continue
		}
		e, ok := ast.Unparen(branch.Cond).(*ast.BinaryExpr)
		if !ok || !info.Types[e.Y].IsNil() || rootOf(info, e.X) != o {
			continue
		}
		if e.Op == token.EQL && c.stack[i+1] == ast.Node(branch.Body) || e.Op == token.NEQ && c.stack[i+1] == ast.Node(branch.Else) {
			return true
		}
	}
	return false
}

// failed reports whether x comes from a call that failed: it is then empty or nil, or it
// does not exist, because the call should have created it. The emitting call is in the
// branch for the error, or its message contains the error.
func failed(info *types.Info, c *call, x ast.Expr, message []ast.Expr) bool {
	o := rootOf(info, x)
	check := func(e ast.Expr, pos token.Pos, unequal token.Token) bool {
		return slices.ContainsFunc(errorsIn(info, e, unequal), func(err types.Object) bool { return together(info, c, pos, o, err) })
	}
	for i, s := range c.stack {
		switch s := s.(type) {
		case *ast.IfStmt:
			if i+1 < len(c.stack) && c.stack[i+1] == ast.Node(s.Body) && check(s.Cond, s.Cond.Pos(), token.EQL) {
				return true
			}
			if b, ok := ast.Unparen(s.Cond).(*ast.BinaryExpr); ok && b.Op == token.EQL && i+1 < len(c.stack) && c.stack[i+1] == ast.Node(s.Else) && check(b, b.Pos(), token.NEQ) {
				return true
			}
		case *ast.CaseClause:
			if slices.ContainsFunc(s.List, func(e ast.Expr) bool { return check(e, e.Pos(), token.EQL) }) {
				return true
			}
		}
	}
	return slices.ContainsFunc(message, func(e ast.Expr) bool { return check(e, c.expr.Pos(), token.EQL) })
}

// errorsIn returns the errors that an expression contains, except in a comparison with
// nil by an operator: in a branch for err == nil, there is no error.
func errorsIn(info *types.Info, e ast.Expr, except token.Token) (list []types.Object) {
	ast.Inspect(e, func(n ast.Node) bool {
		if b, ok := n.(*ast.BinaryExpr); ok && b.Op == except && info.Types[b.Y].IsNil() {
			return false
		}
		if id, ok := n.(*ast.Ident); ok {
			if v, ok := info.Uses[id].(*types.Var); ok && types.Identical(v.Type(), types.Universe.Lookup("error").Type()) {
				list = append(list, v)
			}
		}
		return true
	})
	return list
}

// together reports whether an assignment of err that reaches pos assigns x, too, or
// creates x. An assignment in a block that does not contain pos hides no earlier one.
func together(info *types.Info, c *call, pos token.Pos, x, err types.Object) bool {
	if c.fun == nil {
		return false
	}
	var reaching []*ast.AssignStmt
	ast.PreorderStack(c.fun, nil, func(n ast.Node, stack []ast.Node) bool {
		a, ok := n.(*ast.AssignStmt)
		if !ok || a.Pos() >= pos || !slices.ContainsFunc(a.Lhs, func(l ast.Expr) bool { return ObjectOf(info, l) == err }) {
			return true
		}
		around := true
		for _, s := range stack {
			switch s.(type) {
			case *ast.BlockStmt, *ast.CaseClause, *ast.CommClause:
				around = around && s.Pos() <= pos && pos < s.End()
			}
		}
		if around {
			reaching = nil
		}
		reaching = append(reaching, a)
		return true
	})
	return slices.ContainsFunc(reaching, func(a *ast.AssignStmt) bool { return yields(info, a, x) })
}

// yields reports whether an assignment of an error assigns x, too, or creates x.
func yields(info *types.Info, last *ast.AssignStmt, x types.Object) bool {
	if slices.ContainsFunc(last.Lhs, func(l ast.Expr) bool { return ObjectOf(info, l) == x }) {
		return true
	}
	call, ok := ast.Unparen(last.Rhs[0]).(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	return ok && strings.HasPrefix(sel.Sel.Name, "Create") && slices.ContainsFunc(call.Args, func(a ast.Expr) bool { return rootOf(info, a) == x })
}
