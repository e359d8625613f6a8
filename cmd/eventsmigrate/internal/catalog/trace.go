package catalog

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"

	"golang.org/x/tools/go/types/typeutil"

	"github.com/eventseries/eventseries/cmd/eventsmigrate/internal/move"
)

// bindings say which call of a function the catalogue follows. A function that is bound to
// nil has callers that it does not know; see also tooMany.
type bindings map[*function]*call

// tracer follows an expression to the expressions that decide about its value.
type tracer struct {
	*program
	bound bindings

	// needs is a function whose caller decides, if there is one.
	needs *function
	seen  map[types.Object]bool

	// stored, if not nil, receives what the elements of the variables on the path are set to.
	stored *[]source
}

func (p *program) tracer(b bindings) *tracer {
	return &tracer{program: p, bound: b, seen: map[types.Object]bool{}}
}

// fork returns a tracer that follows another expression on the same path.
func (t *tracer) fork() *tracer {
	return &tracer{program: t.program, bound: t.bound, seen: maps.Clone(t.seen), stored: t.stored}
}

// join takes over what a fork needs.
func (t *tracer) join(inner *tracer) {
	if t.needs == nil {
		t.needs = inner.needs
	}
}

// trace calls leaf with each expression that can be the value of e. leaf reports whether
// it knows the value of an expression; why tells why the tracer cannot follow it further,
// or is empty if it can.
func (t *tracer) trace(e expr, leaf func(e expr, why string) bool) {
	if leaf(e, "") {
		return
	}
	info := e.in.pkg.TypesInfo
	stop := func(format string, args ...any) { leaf(e, fmt.Sprintf(format, args...)) }
	switch n := ast.Unparen(e.Expr).(type) {
	case *ast.Ident:
		t.object(e, info.Uses[n], leaf)
	case *ast.SelectorExpr:
		if s := info.Selections[n]; s != nil && s.Kind() == types.FieldVal {
			t.field(e, n, s, leaf)
			return
		}
		t.object(e, info.Uses[n.Sel], leaf)
	case *ast.CallExpr:
		t.result(expr{n, e.in}, 0, leaf)
	case *ast.StarExpr:
		t.trace(expr{n.X, e.in}, leaf)
	case *ast.UnaryExpr:
		if n.Op != token.AND {
			stop("an operator computes it")
			return
		}
		t.trace(expr{n.X, e.in}, leaf)
	case *ast.TypeAssertExpr:
		t.trace(expr{n.X, e.in}, leaf)
	case *ast.IndexExpr:
		t.elements(e, expr{n.X, e.in}, leaf)
	default:
		stop("the catalogue does not follow it")
	}
}

func (t *tracer) object(e expr, o types.Object, leaf func(expr, string) bool) {
	v, ok := o.(*types.Var)
	if !ok {
		leaf(e, "the catalogue does not follow it")
		return
	}
	v = v.Origin()
	if t.seen[v] {
		return
	}
	t.see(v)
	switch p, ok := t.params[v]; {
	case t.opaque[v]:
		leaf(e, "other code sets the variable")
		return
	case ok:
		t.parameter(e, p, leaf)
	case len(t.sources[v]) == 0:
		leaf(e, "nothing sets the variable")
	}
	t.all(t.sources[v], leaf)
}

// see says that a variable is on the path.
func (t *tracer) see(v *types.Var) {
	t.seen[v] = true
	if t.stored != nil {
		*t.stored = append(*t.stored, t.program.stored[v]...)
	}
}

func (t *tracer) all(list []source, leaf func(expr, string) bool) {
	for _, s := range list {
		switch n := ast.Unparen(s.Expr).(type) {
		case *ast.CallExpr:
			if !leaf(s.expr, "") {
				t.result(expr{n, s.in}, s.index, leaf)
			}
		default:
			if s.elements {
				t.elements(s.expr, s.expr, leaf)
			} else {
				t.trace(s.expr, leaf)
			}
		}
	}
}

// parameter follows a parameter to the argument of the call that is bound, or says whose
// callers decide.
func (t *tracer) parameter(e expr, p param, leaf func(expr, string) bool) {
	c, ok := t.bound[p.of]
	switch {
	case !ok:
		if t.needs == nil {
			t.needs = p.of
		}
	case c == nil:
		leaf(e, "a parameter of "+p.of.name+", whose callers the program does not contain")
	case c == tooMany:
		leaf(e, "a parameter of "+p.of.name+", which is called in too many ways")
	case p.index >= len(c.Args), len(c.Args) == 1 && len(p.of.params) > 1, p.of.variadic && p.index == len(p.of.params)-1:
		leaf(e, "a parameter of "+p.of.name)
	default:
		t.trace(expr{c.Args[p.index], c.in}, leaf)
	}
}

// field follows a field to all values that the program sets it to. If it has a tag, other
// programs set it, too: then only a literal in a variable tells.
func (t *tracer) field(e expr, n *ast.SelectorExpr, sel *types.Selection, leaf func(expr, string) bool) {
	v := sel.Obj().(*types.Var).Origin()
	if t.seen[v] {
		return
	}
	t.see(v)
	if isDecoded(sel) || t.opaque[v] || len(t.sources[v]) == 0 {
		var values []expr
		for _, s := range t.sources[v] {
			if s.in == e.in && !s.literal && s.index == 0 {
				values = append(values, s.expr)
			}
		}
		var unknown bool
		base := t.fork()
		base.trace(expr{n.X, e.in}, func(x expr, why string) bool {
			lit, ok := ast.Unparen(x.Expr).(*ast.CompositeLit)
			if ok {
				if value := fieldOf(x.in.pkg.TypesInfo, lit, v); value != nil {
					values = append(values, expr{value, x.in})
				} else {
					unknown = true
				}
			}
			unknown = unknown || why != ""
			return ok
		})
		t.join(base)
		if unknown || len(values) == 0 && t.needs == nil {
			leaf(e, "a field that other code sets")
			return
		}
		for _, x := range values {
			t.trace(x, leaf)
		}
		return
	}
	t.all(t.sources[v], leaf)
}

// isDecoded reports whether a field has a tag.
func isDecoded(sel *types.Selection) bool {
	tag := ""
	typ := sel.Recv()
	for _, i := range sel.Index() { // through embedded fields
		s := structOf(typ)
		if s == nil {
			return false
		}
		typ, tag = s.Field(i).Type(), s.Tag(i)
	}
	return tag != ""
}

// fieldOf returns what a literal sets a field to, or nil.
func fieldOf(info *types.Info, lit *ast.CompositeLit, v *types.Var) ast.Expr {
	for _, e := range lit.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if id, ok := kv.Key.(*ast.Ident); ok && info.Uses[id] != nil && originOf(info.Uses[id]) == v {
				return kv.Value
			}
		}
	}
	return nil
}

func originOf(o types.Object) types.Object {
	if v, ok := o.(*types.Var); ok {
		return v.Origin()
	}
	return o
}

// result follows a result of a call to what the function returns.
func (t *tracer) result(e expr, index int, leaf func(expr, string) bool) {
	n := e.Expr.(*ast.CallExpr)
	info := e.in.pkg.TypesInfo
	if info.Types[n.Fun].IsType() && len(n.Args) == 1 {
		t.trace(expr{n.Args[0], e.in}, leaf)
		return
	}
	callee, ok := typeutil.Callee(info, n).(*types.Func)
	if !ok {
		leaf(e, "the result of a function value")
		return
	}
	if isReference(callee) && index == 0 { // it has the kind of the object
		t.trace(expr{n.Args[1], e.in}, leaf)
		return
	}
	if sel, ok := ast.Unparen(n.Fun).(*ast.SelectorExpr); ok && strings.HasPrefix(callee.Name(), "DeepCopy") && len(n.Args) == 0 {
		t.trace(expr{sel.X, e.in}, leaf)
		return
	}
	fn := t.functions[callee.Origin()]
	if fn == nil || len(fn.returns) == 0 {
		leaf(e, "the result of "+callee.FullName())
		return
	}
	if _, ok := t.bound[fn]; ok || len(t.bound) > maxDepth || t.seen[callee] {
		leaf(e, "the result of "+fn.name+", which calls itself or many functions")
		return
	}
	// Its parameters have the arguments of this call, and its variables depend on them.
	inner := t.fork()
	inner.bound = maps.Clone(t.bound)
	inner.bound[fn] = &call{n, e.in}
	inner.seen[callee] = true
	maps.DeleteFunc(inner.seen, func(o types.Object, _ bool) bool {
		return fn.node.Pos() <= o.Pos() && o.Pos() < fn.node.End() && o != callee
	})
	defer func() { t.join(inner) }()
	for _, r := range fn.returns {
		switch {
		case index < len(r.Results) && len(r.Results) == len(fn.results):
			inner.trace(expr{r.Results[index], fn}, leaf)
		case len(r.Results) == 0 && index < len(fn.results):
			inner.all(t.sources[fn.results[index]], leaf)
		default:
			leaf(e, "the result of "+callee.FullName())
		}
	}
}

// isReference reports whether a function returns a reference to its second argument.
func isReference(f *types.Func) bool {
	return f.FullName() == "k8s.io/client-go/tools/reference.GetReference"
}

// elements follows the elements of a slice, an array, or a map that a literal makes, and
// what they are set to.
func (t *tracer) elements(e, of expr, leaf func(expr, string) bool) {
	var list []expr
	var unknown bool
	var stored []source
	inner := t.fork()
	inner.stored = &stored
	inner.trace(of, func(x expr, why string) bool {
		lit, ok := ast.Unparen(x.Expr).(*ast.CompositeLit)
		if ok {
			for _, el := range lit.Elts {
				if kv, ok := el.(*ast.KeyValueExpr); ok {
					el = kv.Value
				}
				list = append(list, expr{el, x.in})
			}
		}
		unknown = unknown || why != ""
		return ok
	})
	t.join(inner)
	if unknown || len(list) == 0 && t.needs == nil {
		leaf(e, "an element of a list or a map")
		return
	}
	for _, x := range list {
		t.trace(x, leaf)
	}
	t.all(stored, leaf)
}

// text is a format with the constant parts of a string.
type text struct {
	format string
	open   bool // it has a variable part
}

// maxTexts bounds how many values a string has in the catalogue.
const maxTexts = 24

// texts returns the values of a string, as formats. If isFormat is true, the string is a
// format itself. unknown receives the parts that are variable.
func (t *tracer) texts(e expr, isFormat bool, unknown func(e expr, why string)) (list []text) {
	t.trace(e, func(e expr, why string) bool {
		if why != "" {
			unknown(e, why)
			list = append(list, text{"%s", true})
			return true
		}
		found, ok := t.literal(e, isFormat, unknown)
		list = append(list, found...)
		return ok
	})
	list = unique(list, func(a, b text) int { return strings.Compare(a.format, b.format) })
	if len(list) > maxTexts {
		unknown(e, fmt.Sprintf("one of %d values", len(list)))
		return []text{{"%s", true}}
	}
	return list
}

// literal returns the values of a constant, and of an expression that formats a string.
func (t *tracer) literal(e expr, isFormat bool, unknown func(expr, string)) ([]text, bool) {
	info := e.in.pkg.TypesInfo
	if v := info.Types[e.Expr].Value; v != nil {
		if v.Kind() != constant.String {
			return nil, false
		}
		s := constant.StringVal(v)
		if !isFormat {
			s = strings.ReplaceAll(s, "%", "%%")
		}
		return []text{{s, false}}, true
	}
	if b, ok := ast.Unparen(e.Expr).(*ast.BinaryExpr); ok && b.Op == token.ADD {
		var list []text
		right := t.part(expr{b.Y, e.in}, isFormat, unknown)
		for _, x := range t.part(expr{b.X, e.in}, isFormat, unknown) {
			for _, y := range right {
				list = append(list, text{x.format + y.format, x.open || y.open})
			}
		}
		return list, true
	}
	if inner := move.Sprintf(info, e.Expr); inner != nil {
		return t.sprintf(expr{inner, e.in}, unknown), true
	}
	return nil, false
}

// part returns the values of a part of a string.
func (t *tracer) part(e expr, isFormat bool, unknown func(expr, string)) []text {
	inner := t.fork()
	list := inner.texts(e, isFormat, unknown)
	t.join(inner)
	if len(list) == 0 { // the caller decides, or a loop
		return []text{{"%s", true}}
	}
	return list
}

// sprintf returns the values of a call of Sprintf: its format with the arguments that are
// constant.
func (t *tracer) sprintf(e expr, unknown func(expr, string)) []text {
	n := e.Expr.(*ast.CallExpr)
	list := t.part(expr{n.Args[0], e.in}, true, unknown)
	for _, f := range list {
		if f.open || n.Ellipsis.IsValid() || strings.Count(f.format, "%") != len(n.Args)-1 {
			return variable(list, e, unknown)
		}
	}
	for _, arg := range n.Args[1:] {
		var next []text
		var values []text
		if b, ok := e.in.pkg.TypesInfo.TypeOf(arg).Underlying().(*types.Basic); ok && b.Info()&types.IsString != 0 {
			values = t.part(expr{arg, e.in}, false, func(expr, string) {})
		}
		if len(values) == 0 || slices.ContainsFunc(values, func(x text) bool { return x.open }) {
			return variable(list, e, unknown)
		}
		for _, f := range list {
			i := strings.Index(f.format, "%")
			if i < 0 || i+1 == len(f.format) || f.format[i+1] != 's' && f.format[i+1] != 'v' {
				return variable(list, e, unknown)
			}
			for _, v := range values {
				next = append(next, text{f.format[:i] + v.format + f.format[i+2:], false})
			}
		}
		list = next
	}
	return list
}

func variable(list []text, e expr, unknown func(expr, string)) []text {
	unknown(e, "fmt.Sprintf makes it")
	for i := range list {
		list[i].open = true
	}
	return list
}
