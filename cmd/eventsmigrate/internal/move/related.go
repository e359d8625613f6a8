package move

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/eventseries/eventseries/cmd/eventsmigrate/internal/verb"
)

// relatedOf returns the only object besides the regarding one that the message of a call
// names. It is plainly the related one if it is of another type, exists, and has a UID.
func (pl *planner) relatedOf(c *call, message int) (expr string, plain bool) {
	info := c.file.Pkg.Info
	regarding := c.expr.Args[0]
	var found ast.Expr
	nilable := false
	for _, a := range parts(info, c, message) {
		x, accepts := nameIn(info, a)
		switch {
		case x == nil || rootOf(info, x) == rootOf(info, regarding):
		case found == nil:
			found, nilable = x, accepts
		case c.file.text(found) != c.file.text(x):
			return "", false
		}
	}
	if found == nil {
		return ofKind(info, c, message-1), false
	}
	if hasCall(found) {
		return "", false
	}
	t, expr := types.Unalias(info.TypeOf(found)), c.file.text(found)
	if !IsObject(t) {
		if t = types.NewPointer(t); !IsObject(t) || !info.Types[found].Addressable() {
			return "", false
		}
		expr = "&" + expr
	}
	a, b := named(t), named(types.Unalias(info.TypeOf(regarding)))
	if a == nil || b == nil || isReference(a) || isReference(b) {
		return "", false // perhaps the same object
	}
	plain = a != b && !nilable && exists(info, c, rootOf(info, found))
	if failed := StringOf(info, c.expr.Args[message-2]) == "Warning"; failed && !plain && strings.HasPrefix(verb.Action(c.file.constant(c.fun, c.expr.Args[message-1])), "Create") {
		return "", false // nothing created it
	}
	return expr, plain
}

// ofKind returns the innermost object that exists at a call, and whose kind is in the reason, unless
// the event is a Warning: what failed may not exist.
func ofKind(info *types.Info, c *call, reason int) (name string) {
	text, regarding := c.file.constant(c.fun, c.expr.Args[reason]), named(info.TypeOf(c.expr.Args[0]))
	if c.fun == nil || StringOf(info, c.expr.Args[reason-1]) != "Normal" || regarding == nil {
		return ""
	}
	var scope *types.Scope
	for n := range ast.Preorder(c.fun) {
		id, _ := n.(*ast.Ident)
		v, ok := info.Defs[id].(*types.Var)
		if ok && v.Parent() != scope && v.Pos() < c.expr.Pos() && v.Parent() != nil && v.Parent().Contains(c.expr.Pos()) && IsObject(v.Type()) {
			if t := named(v.Type()); t != nil && t != regarding && !isReference(t) && strings.Contains(text, t.Name()) {
				name, scope = id.Name, v.Parent()
			}
		}
	}
	return name
}

// isReference reports whether values of a type can stand for objects of any kind.
func isReference(n *types.TypeName) bool {
	return slices.Contains([]string{"ObjectReference", "Unstructured", "PartialObjectMetadata"}, n.Name()) || types.IsInterface(n.Type())
}

// parts returns the arguments of a message: those of the format, and the operands of a
// concatenation.
func parts(info *types.Info, c *call, message int) (list []ast.Expr) {
	var add func(e ast.Expr)
	add = func(e ast.Expr) {
		if s := Sprintf(info, e); s != nil {
			list = append(list, s.Args[1:]...)
		} else if x, ok := ast.Unparen(e).(*ast.BinaryExpr); ok && x.Op == token.ADD {
			add(x.X)
			add(x.Y)
		} else {
			list = append(list, e)
		}
	}
	for _, e := range c.expr.Args[min(message, len(c.expr.Args)):] {
		add(e)
	}
	return list
}

// nameIn returns the object whose name is an argument: x.Name, x.GetName(), klog.KObj(x),
// client.ObjectKeyFromObject(x). The argument can accept nil.
func nameIn(info *types.Info, a ast.Expr) (x ast.Expr, nilable bool) {
	switch e := ast.Unparen(a).(type) {
	case *ast.SelectorExpr:
		v, ok := info.Uses[e.Sel].(*types.Var)
		if !ok || !v.IsField() || v.Name() != "Name" || v.Pkg() == nil || v.Pkg().Path() != "k8s.io/apimachinery/pkg/apis/meta/v1" {
			return nil, false
		}
		if m, ok := ast.Unparen(e.X).(*ast.SelectorExpr); ok && m.Sel.Name == "ObjectMeta" {
			return m.X, false
		}
		return e.X, false
	case *ast.CallExpr:
		fun, ok := ast.Unparen(e.Fun).(*ast.SelectorExpr)
		if !ok {
			return nil, false
		}
		if fun.Sel.Name == "GetName" && len(e.Args) == 0 {
			return fun.X, false
		}
		if f, ok := info.Uses[fun.Sel].(*types.Func); ok && len(e.Args) == 1 {
			switch f.FullName() {
			case klogPath + ".KObj":
				return e.Args[0], true
			case runtimeAliasPath + "/pkg/client.ObjectKeyFromObject":
				return e.Args[0], false
			}
		}
	}
	return nil, false
}

// IsObject reports whether t implements runtime.Object.
func IsObject(t types.Type) bool {
	methods := types.NewMethodSet(t)
	return methods.Lookup(nil, "GetObjectKind") != nil && methods.Lookup(nil, "DeepCopyObject") != nil
}

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

// exists reports whether a variable certainly holds an object that the API server has seen: a
// parameter or an element of a list, which the function neither sets nor creates.
func exists(info *types.Info, c *call, o types.Object) bool {
	v, ok := o.(*types.Var)
	if !ok || c.fun == nil {
		return false
	}
	yes, changes := v.Kind() == types.ParamVar, false
	for n := range ast.Preorder(c.fun) {
		switch n := n.(type) {
		case *ast.RangeStmt:
			yes = yes || n.Value != nil && ObjectOf(info, n.Value) == v
		case *ast.AssignStmt:
			changes = changes || slices.ContainsFunc(n.Lhs, func(l ast.Expr) bool { return ObjectOf(info, l) == v })
		case *ast.CallExpr:
			f := ObjectOf(info, n.Fun)
			changes = changes || f != nil && strings.HasPrefix(f.Name(), "Create") && slices.ContainsFunc(n.Args, func(a ast.Expr) bool { return rootOf(info, a) == v })
		}
	}
	return yes && !changes
}
