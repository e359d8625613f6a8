package move

import (
	"cmp"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"iter"
	"slices"
	"strings"

	"golang.org/x/tools/go/types/typeutil"
)

// collector reads a package.
type collector struct {
	*Program
	pkg    *Package
	info   *types.Info
	elided map[*ast.CompositeLit]ref
	file   *File
	stack  []ast.Node
}

// Collect adds a package, whose files must have been added before.
func (p *Program) Collect(pkg *Package) {
	c := &collector{Program: p, pkg: pkg, info: pkg.Info, elided: map[*ast.CompositeLit]ref{}}
	for _, f := range pkg.Files {
		c.file = p.fileOf(f.FileStart)
		if c.file == nil {
			continue
		}
		ast.PreorderStack(f, nil, func(n ast.Node, stack []ast.Node) bool {
			c.stack = stack
			c.visit(n)
			return true
		})
	}
}

func (c *collector) fun() *ast.FuncDecl {
	if len(c.stack) > 1 {
		if d, ok := c.stack[1].(*ast.FuncDecl); ok {
			return d
		}
	}
	return nil
}

// describe names an object outside of the program.
func describe(o types.Object) string {
	if f, ok := o.(*types.Func); ok {
		return f.FullName()
	}
	if o.Pkg() != nil {
		return o.Pkg().Path() + "." + o.Name()
	}
	return o.Name()
}

func (c *collector) object(o types.Object) ref {
	switch o := o.(type) {
	case *types.Var:
		v := o.Origin()
		if c.fileOf(v.Pos()) != nil {
			return ref{nodes: []node{v.Pos()}}
		}
		return ref{fixed: describe(v)}
	case *types.Func:
		return c.signature(o.Origin().Type().(*types.Signature), o)
	}
	return ref{}
}

// signature returns the parameters and results with legacy types.
func (c *collector) signature(sig *types.Signature, of types.Object) (r ref) {
	for _, tuple := range []*types.Tuple{sig.Params(), sig.Results()} {
		for v := range tuple.Variables() {
			if !mentions(v.Type()) {
				continue
			}
			if c.fileOf(v.Pos()) != nil {
				r.nodes = append(r.nodes, v.Pos())
			} else if of != nil {
				r.fixed = describe(of)
			}
		}
	}
	return r
}

// typ returns the occurrences of legacy types in a type expression.
func (c *collector) typ(e ast.Expr) (r ref) {
	if e == nil {
		return r
	}
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.StructType:
			return e == n // fields are variables of their own
		case *ast.InterfaceType:
			for _, f := range n.Methods.List {
				if len(f.Names) == 0 {
					r = r.and(c.typ(f.Type))
				}
			}
			return false
		case *ast.SelectorExpr:
			r = r.and(c.typeName(n, n.Sel))
			return false
		case *ast.Ident:
			r = r.and(c.typeName(n, n))
		}
		return true
	})
	return r
}

func (c *collector) typeName(e ast.Expr, id *ast.Ident) ref {
	t, ok := c.info.Uses[id].(*types.TypeName)
	if !ok {
		return ref{}
	}
	if kindOfObject(t) != none {
		return ref{nodes: []node{e.Pos()}}
	}
	if !mentions(t.Type()) {
		return ref{}
	}
	if c.fileOf(t.Pos()) != nil {
		return ref{nodes: []node{e.Pos(), t.Pos()}}
	}
	return ref{fixed: describe(t)}
}

// nodes returns what determines the type of an expression.
func (c *collector) nodes(e ast.Expr) ref {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		if o := c.info.Defs[e]; o != nil {
			return c.object(o)
		}
		if o := c.info.Uses[e]; o != nil {
			if _, ok := o.(*types.TypeName); ok {
				return c.typ(e)
			}
			return c.object(o)
		}
	case *ast.SelectorExpr:
		sel, ok := c.info.Selections[e]
		if !ok {
			if _, ok := c.info.Uses[e.Sel].(*types.TypeName); ok {
				return c.typ(e)
			}
			return c.object(c.info.Uses[e.Sel])
		}
		if v, ok := sel.Obj().(*types.Var); ok {
			if mentions(v.Origin().Type()) {
				return c.object(v)
			}
			return c.nodes(e.X)
		}
		if sel.Kind() == types.MethodExpr {
			return c.typ(e.X).and(c.object(sel.Obj()))
		}
		return c.object(sel.Obj())
	case *ast.CallExpr:
		return c.result(e)
	case *ast.FuncLit:
		if sig, ok := c.info.TypeOf(e).(*types.Signature); ok {
			return c.signature(sig, nil)
		}
	case *ast.CompositeLit:
		if e.Type == nil {
			return c.elided[e]
		}
		return c.typ(e.Type)
	case *ast.StarExpr:
		return c.nodes(e.X)
	case *ast.UnaryExpr:
		return c.nodes(e.X)
	case *ast.SliceExpr:
		return c.nodes(e.X)
	case *ast.IndexExpr:
		return c.nodes(e.X).and(c.typ(e.Index))
	case *ast.TypeAssertExpr:
		if e.Type != nil {
			return c.typ(e.Type)
		}
		return c.nodes(e.X)
	case *ast.ArrayType, *ast.MapType, *ast.ChanType, *ast.FuncType, *ast.StructType, *ast.InterfaceType:
		return c.typ(e)
	}
	return ref{}
}

// result returns what determines the type of the result of a call.
func (c *collector) result(e *ast.CallExpr) ref {
	if tv := c.info.Types[e.Fun]; tv.IsType() {
		return c.typ(e.Fun)
	}
	if id, ok := ast.Unparen(e.Fun).(*ast.Ident); ok {
		if b, ok := c.info.Uses[id].(*types.Builtin); ok {
			switch b.Name() {
			case "new", "make":
				return c.typ(e.Args[0])
			case "append", "min", "max":
				var r ref
				for _, a := range e.Args {
					r = r.and(c.nodes(a))
				}
				return r
			}
			return ref{}
		}
	}
	fn, ok := typeutil.Callee(c.info, e).(*types.Func)
	if !ok {
		return c.nodes(e.Fun)
	}
	fn = fn.Origin()
	switch {
	case fn.Pkg() != nil && isLegacyPath(fn.Pkg().Path()):
		switch fn.Name() {
		case "WithLogger":
			return c.receiver(e.Fun)
		case "NewFakeRecorder", "NewRecorder":
			return ref{nodes: []node{e.Lparen}}
		}
		return ref{fixed: describe(fn)}
	case fn.Name() == "GetEventRecorderFor" && c.canLookUp(e):
		return ref{nodes: []node{e.Lparen}}
	}
	var r ref
	sig := fn.Type().(*types.Signature)
	for v := range sig.Results().Variables() {
		if mentions(v.Type()) {
			r = r.and(c.object(v))
			if r.fixed != "" {
				r.fixed = describe(fn)
			}
		}
	}
	if r.empty() && mentions(c.info.TypeOf(e)) { // by a type argument
		r = c.typeArgs(e)
	}
	return r
}

// typeArgs returns what determines the type of a call whose type parameter stands for a
// recorder: everything that is one.
func (c *collector) typeArgs(e *ast.CallExpr) ref {
	r := c.typ(e.Fun)
	for _, a := range e.Args {
		if mentions(c.info.TypeOf(a)) {
			r = r.and(c.nodes(a))
		}
	}
	if sel, ok := ast.Unparen(e.Fun).(*ast.SelectorExpr); ok && mentions(c.info.TypeOf(sel.X)) {
		r = r.and(c.nodes(sel.X))
	}
	if r.empty() {
		r.fixed = types.ExprString(e.Fun)
	}
	return r
}

// receiver returns what determines the type of the recorder or broadcaster whose method
// fun is: the embedded field, if the method is promoted.
func (c *collector) receiver(fun ast.Expr) ref {
	e, ok := ast.Unparen(fun).(*ast.SelectorExpr)
	if !ok {
		return ref{}
	}
	sel := c.info.Selections[e]
	if sel == nil {
		return ref{}
	}
	if len(sel.Index()) > 1 {
		if r := c.promoted(sel.Recv(), sel.Index()); !r.empty() {
			return r
		}
	}
	return c.nodes(e.X)
}

// canLookUp reports whether a call of GetEventRecorderFor can become one of
// GetEventRecorder.
func (c *collector) canLookUp(e *ast.CallExpr) bool {
	sel, ok := ast.Unparen(e.Fun).(*ast.SelectorExpr)
	if !ok || len(e.Args) != 1 {
		return false
	}
	o, _, _ := types.LookupFieldOrMethod(c.info.TypeOf(sel.X), true, c.pkg.Types, "GetEventRecorder")
	f, ok := o.(*types.Func)
	if !ok || c.fileOf(f.Pos()) != nil {
		return false
	}
	s := f.Type().(*types.Signature)
	return s.Params().Len() == 1 && s.Results().Len() == 1
}

func (c *collector) visit(n ast.Node) {
	switch n := n.(type) {
	case *ast.SelectorExpr:
		if k := kindOfObject(c.info.Uses[n.Sel]); k != none {
			c.occurs(n, k, n.Sel.Name)
		} else {
			c.methodValue(n)
			c.mentionsCreator(n)
			c.foreignBroadcaster(c.info.Uses[n.Sel])
		}
	case *ast.Ident:
		c.ident(n)
	case *ast.Field:
		c.field(n)
	case *ast.FuncDecl:
		if f, ok := c.info.Defs[n.Name].(*types.Func); ok {
			c.declare(f.Type().(*types.Signature), n.Type)
			c.method(f, n.Name, n.Type, n.Body, nil)
		}
	case *ast.FuncLit:
		if sig, ok := c.info.TypeOf(n).(*types.Signature); ok {
			c.declare(sig, n.Type)
		}
	case *ast.FuncType:
		if sig, ok := c.info.TypeOf(n).(*types.Signature); ok {
			c.declare(sig, n)
		}
	case *ast.InterfaceType:
		for _, f := range n.Methods.List {
			if len(f.Names) == 1 {
				if m, ok := c.info.Defs[f.Names[0]].(*types.Func); ok {
					t := f.Type.(*ast.FuncType)
					c.declare(m.Type().(*types.Signature), t)
					c.method(m, f.Names[0], t, nil, n.Methods)
				}
			}
		}
	case *ast.StructType:
		c.structType(n)
	case *ast.TypeSpec:
		if o := c.info.Defs[n.Name]; o != nil && mentions(o.Type()) {
			c.link(ref{nodes: []node{n.Name.Pos()}}, c.typ(n.Type), n.Pos())
		}
	case *ast.ValueSpec:
		c.valueSpec(n)
	case *ast.AssignStmt:
		c.assignment(n)
	case *ast.ReturnStmt:
		c.returns(n)
	case *ast.SendStmt:
		if ch, ok := under(c.info.TypeOf(n.Chan)).(*types.Chan); ok {
			c.assign(c.nodes(n.Chan), ch.Elem(), n.Value, nil)
		}
	case *ast.RangeStmt:
		if mentions(c.info.TypeOf(n.X)) {
			x := c.nodes(n.X)
			for _, v := range []ast.Expr{n.Key, n.Value} {
				if v != nil && mentions(c.info.TypeOf(v)) {
					c.link(x, c.nodes(v), n.Pos())
				}
			}
		}
	case *ast.BinaryExpr:
		if n.Op == token.EQL || n.Op == token.NEQ {
			c.compare(n.X, n.Y)
		}
	case *ast.CompositeLit:
		c.literal(n)
	case *ast.CallExpr:
		c.call(n)
	case *ast.TypeAssertExpr:
		if n.Type != nil {
			c.assert(n.X, c.info.TypeOf(n.Type), c.typ(n.Type), n.Pos())
		}
	case *ast.TypeSwitchStmt:
		c.typeSwitch(n)
	}
}

// ident handles occurrences in files with a dot import, and of aliases.
func (c *collector) ident(id *ast.Ident) {
	o := c.info.Uses[id]
	if len(c.stack) > 0 {
		if sel, ok := c.stack[len(c.stack)-1].(*ast.SelectorExpr); ok && sel.Sel == id {
			return
		}
	}
	if k := kindOfObject(o); k != none {
		c.occurs(id, k, id.Name)
	}
	if c.info.Defs[id] == nil {
		c.mentionsCreator(id) // with a dot import
		c.foreignBroadcaster(o)
	}
}

// foreignBroadcaster records a broadcaster that code outside of the program makes.
func (c *collector) foreignBroadcaster(o types.Object) {
	if o == nil || o.Pkg() == nil || c.foreign != "" || c.file.isTest() || IsRecorderPackage(o.Pkg().Path()) || c.fileOf(o.Pos()) != nil {
		return
	}
	switch o := o.(type) {
	case *types.Var:
		// The program sets the options of managers, and does not read them.
		if isBroadcaster(o.Type()) && !strings.HasPrefix(o.Pkg().Path(), runtimeAliasPath) {
			c.foreign = describe(o)
		}
	case *types.Func:
		for v := range o.Signature().Results().Variables() {
			if isBroadcaster(v.Type()) {
				c.foreign = describe(o)
			}
		}
	}
}

func (c *collector) occurs(e ast.Expr, k kind, name string) {
	c.occurrences[e.Pos()] = &occurrence{expr: e, kind: k, name: name, file: c.file}
	if c.file.Skip != "" {
		c.block(e.Pos(), Reason{e.Pos(), c.file.Skip, false, true})
	}
}

// declare links the parameters and results of a function with the occurrences of their
// types.
func (c *collector) declare(sig *types.Signature, t *ast.FuncType) {
	c.variables(sig.Params().Variables(), t.Params)
	c.variables(sig.Results().Variables(), t.Results)
}

func (c *collector) variables(all iter.Seq[*types.Var], list *ast.FieldList) {
	if list == nil {
		return
	}
	next, stop := iter.Pull(all)
	defer stop()
	for _, f := range list.List {
		for range max(1, len(f.Names)) {
			if v, ok := next(); ok && mentions(v.Type()) {
				c.link(ref{nodes: []node{v.Pos()}}, c.typ(f.Type), f.Pos())
			}
		}
	}
}

// field links type parameters with their constraints.
func (c *collector) field(f *ast.Field) {
	for _, name := range f.Names {
		if t, ok := c.info.Defs[name].(*types.TypeName); ok && mentions(t.Type()) {
			c.link(ref{nodes: []node{name.Pos()}}, c.typ(f.Type), f.Pos())
		}
	}
}

func (c *collector) structType(n *ast.StructType) {
	if s, ok := c.info.TypeOf(n).(*types.Struct); ok {
		c.variables(s.Fields(), n.Fields)
	}
}

func (c *collector) method(f *types.Func, name *ast.Ident, t *ast.FuncType, body *ast.BlockStmt, list *ast.FieldList) {
	if s := shapeOf(f); s != noShape {
		c.methods[name.Pos()] = &method{fn: f, shape: s, decl: t, name: name, body: body, list: list, file: c.file}
		if c.file.Skip != "" {
			c.block(name.Pos(), Reason{name.Pos(), c.file.Skip, false, true})
		}
	}
}

func (c *collector) valueSpec(n *ast.ValueSpec) {
	for _, name := range n.Names {
		if o := c.info.Defs[name]; o != nil && mentions(o.Type()) {
			c.link(ref{nodes: []node{name.Pos()}}, c.typ(n.Type), n.Pos())
		}
	}
	for i, v := range n.Values {
		if len(n.Values) != len(n.Names) {
			c.tuple(v, identifiers(n.Names))
			return
		}
		t := c.info.TypeOf(n.Names[i])
		if n.Type != nil {
			t = c.info.TypeOf(n.Type) // var _ T = v
		}
		dst := c.nodes(n.Names[i])
		if n.Names[i].Name == "_" {
			dst = c.typ(n.Type)
			if n.Type != nil && !mentions(t) {
				dst = ref{}
			}
		}
		c.assign(dst, t, v, nil)
	}
}

func identifiers(names []*ast.Ident) (list []ast.Expr) {
	for _, n := range names {
		list = append(list, n)
	}
	return list
}

func (c *collector) assignment(n *ast.AssignStmt) {
	if len(n.Rhs) == 1 && len(n.Lhs) > 1 {
		c.tuple(n.Rhs[0], n.Lhs)
		return
	}
	for i, l := range n.Lhs {
		if i < len(n.Rhs) {
			if id, ok := l.(*ast.Ident); ok && id.Name == "_" {
				continue
			}
			c.option(l, n.Rhs[i])
			c.assign(c.nodes(l), c.info.TypeOf(l), n.Rhs[i], nil)
		}
	}
}

// tuple assigns the results of a call, or a value and a bool.
func (c *collector) tuple(src ast.Expr, dst []ast.Expr) {
	t, ok := c.info.TypeOf(src).(*types.Tuple)
	if !ok {
		if len(dst) > 0 && !blank(dst[0]) {
			c.assign(c.nodes(dst[0]), c.info.TypeOf(dst[0]), src, c.info.TypeOf(src))
		}
		return
	}
	for i, d := range dst {
		if i >= t.Len() || blank(d) {
			continue
		}
		dt := c.info.TypeOf(d)
		if call, ok := ast.Unparen(src).(*ast.CallExpr); ok {
			c.assignRef(c.nodes(d), dt, c.resultAt(call, i), t.At(i).Type(), src)
			continue
		}
		c.assignRef(c.nodes(d), dt, c.nodes(src), t.At(i).Type(), src)
	}
}

// resultAt returns what determines the type of one result.
func (c *collector) resultAt(call *ast.CallExpr, i int) ref {
	fn, ok := typeutil.Callee(c.info, call).(*types.Func)
	if !ok {
		return c.nodes(call)
	}
	if sig := fn.Origin().Type().(*types.Signature); i < sig.Results().Len() && mentions(sig.Results().At(i).Type()) {
		r := c.object(sig.Results().At(i))
		if r.fixed != "" {
			r.fixed = describe(fn)
		}
		return r
	}
	return c.nodes(call)
}

func blank(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == "_"
}

func (c *collector) returns(n *ast.ReturnStmt) {
	var sig *types.Signature
	for _, s := range slices.Backward(c.stack) {
		if lit, ok := s.(*ast.FuncLit); ok {
			sig, _ = c.info.TypeOf(lit).(*types.Signature)
			break
		}
		if d, ok := s.(*ast.FuncDecl); ok {
			if f, ok := c.info.Defs[d.Name].(*types.Func); ok {
				sig = f.Type().(*types.Signature)
			}
			break
		}
	}
	if sig == nil {
		return
	}
	if len(n.Results) == 1 && sig.Results().Len() > 1 {
		t, ok := c.info.TypeOf(n.Results[0]).(*types.Tuple)
		call, isCall := ast.Unparen(n.Results[0]).(*ast.CallExpr)
		if ok && isCall {
			for i := range t.Len() {
				v := sig.Results().At(i)
				if mentions(v.Type()) || mentions(t.At(i).Type()) {
					c.link(c.object(v), c.resultAt(call, i), n.Pos())
				}
			}
		}
		return
	}
	for i, e := range n.Results {
		if i < sig.Results().Len() {
			v := sig.Results().At(i)
			c.assign(c.variable(v), v.Type(), e, nil)
		}
	}
}

// variable returns the node of a variable with a legacy type.
func (c *collector) variable(v *types.Var) ref {
	if !mentions(v.Origin().Type()) {
		return ref{}
	}
	return c.object(v)
}

func (c *collector) compare(x, y ast.Expr) {
	if mentions(c.info.TypeOf(x)) && mentions(c.info.TypeOf(y)) {
		c.link(c.nodes(x), c.nodes(y), x.Pos())
		return
	}
	for _, pair := range [][2]ast.Expr{{x, y}, {y, x}} {
		if t := c.info.TypeOf(pair[0]); mentions(t) {
			if o := c.info.TypeOf(pair[1]); o != nil && !isNil(o) {
				c.satisfy(c.nodes(pair[0]), t, ref{}, o, x.Pos())
			}
		}
	}
}

func (c *collector) literal(n *ast.CompositeLit) {
	t := c.info.TypeOf(n)
	c.role(n, t)
	u := types.Unalias(t).Underlying()
	if p, ok := u.(*types.Pointer); ok { // &T elided
		u = p.Elem().Underlying()
	}
	self := c.nodes(n)
	elem := func(e ast.Expr, et types.Type) {
		if inner, ok := e.(*ast.CompositeLit); ok && inner.Type == nil {
			c.elided[inner] = self
			return
		}
		c.assign(self, et, e, nil)
	}
	switch u := u.(type) {
	case *types.Struct:
		for i, e := range n.Elts {
			if kv, ok := e.(*ast.KeyValueExpr); ok {
				if id, ok := kv.Key.(*ast.Ident); ok {
					if v, ok := c.info.Uses[id].(*types.Var); ok {
						c.option(id, kv.Value)
						c.assign(c.orSelf(v, self), v.Type(), kv.Value, nil)
					}
				}
			} else if i < u.NumFields() {
				c.assign(c.orSelf(u.Field(i), self), u.Field(i).Type(), e, nil)
			}
		}
	case *types.Map:
		for _, e := range n.Elts {
			if kv, ok := e.(*ast.KeyValueExpr); ok {
				elem(kv.Key, u.Key())
				elem(kv.Value, u.Elem())
			}
		}
	case interface{ Elem() types.Type }: // slices and arrays
		for _, e := range n.Elts {
			elem(valueOf(e), u.Elem())
		}
	}
}

// orSelf returns the node of a field, or that of the literal if only a type argument makes
// the field a recorder.
func (c *collector) orSelf(v *types.Var, self ref) ref {
	if mentions(v.Type()) && !mentions(v.Origin().Type()) {
		return self
	}
	return c.variable(v)
}

func valueOf(e ast.Expr) ast.Expr {
	if kv, ok := e.(*ast.KeyValueExpr); ok {
		return kv.Value
	}
	return e
}

// assign handles an assignment of src to a place with a type.
func (c *collector) assign(dst ref, dstType types.Type, src ast.Expr, srcType types.Type) {
	if srcType == nil {
		srcType = c.info.TypeOf(src)
	}
	var s ref
	if mentions(srcType) {
		s = c.nodes(src)
	}
	c.assignRef(dst, dstType, s, srcType, src)
}

func (c *collector) assignRef(dst ref, dstType types.Type, src ref, srcType types.Type, expr ast.Expr) {
	if dstType == nil || srcType == nil || isNil(srcType) {
		return
	}
	to, from := mentions(dstType), mentions(srcType)
	switch {
	case to && from && isRecorder(dstType) && isRecorder(srcType):
		c.flows = append(c.flows, flow{dst: dst, src: src, expr: expr, file: c.file, fake: kindOf(dstType) == fake, fromFake: kindOf(srcType) == fake})
	case to && from:
		c.link(dst, src, expr.Pos())
	case to:
		c.satisfy(dst, dstType, ref{}, srcType, expr.Pos())
	case from:
		i, ok := dstType.Underlying().(*types.Interface)
		if !ok || isTypeParam(dstType) {
			return
		}
		if i.NumMethods() == 0 {
			if dst.fixed == "" {
				c.link(src, ref{nodes: []node{dynamic}}, expr.Pos())
			}
			return
		}
		if fixed := c.outside(i); fixed != "" && isRecorder(srcType) {
			c.flows = append(c.flows, flow{dst: ref{fixed: fixed}, src: src, expr: expr, file: c.file, fromFake: kindOf(srcType) == fake})
			return
		}
		c.satisfy(ref{}, dstType, src, srcType, expr.Pos())
	default:
		c.satisfy(ref{}, dstType, ref{}, srcType, expr.Pos())
	}
}

// outside returns a method with a legacy signature of an interface that code outside of
// the program declares, or "".
func (c *collector) outside(i *types.Interface) string {
	for m := range i.Methods() {
		if shapeOf(m) != noShape && c.fileOf(m.Origin().Pos()) == nil {
			return describe(m)
		}
	}
	return ""
}

// under returns the underlying type. Packages of other builds can have unknown types.
func under(t types.Type) types.Type {
	if t == nil {
		return types.Typ[types.Invalid]
	}
	return t.Underlying()
}

func isTypeParam(t types.Type) bool {
	_, ok := types.Unalias(t).(*types.TypeParam)
	return ok
}

func isNil(t types.Type) bool {
	b, ok := t.(*types.Basic)
	return ok && b.Kind() == types.UntypedNil
}

// satisfy links the methods of an interface with those of a type that implements it. dst
// and src are the nodes of the types, if they mention a legacy one.
func (c *collector) satisfy(dst ref, dstType types.Type, src ref, srcType types.Type, pos token.Pos) {
	i, ok := dstType.Underlying().(*types.Interface)
	if !ok {
		return
	}
	if types.Identical(dstType, srcType) {
		return
	}
	if isBroadcaster(dstType) {
		if !isOneOf(srcType, dropInPath, "Broadcaster") {
			c.foreign = cmp.Or(c.foreign, "a hand-written type")
		}
		dst.fixed = "package record"
	}
	for m := range i.Methods() {
		s := shapeOf(m)
		if s == noShape && !mentions(m.Type()) {
			continue
		}
		o, index, _ := types.LookupFieldOrMethod(srcType, true, c.pkg.Types, m.Name())
		f, ok := o.(*types.Func)
		if !ok {
			continue
		}
		a, b := c.methodOf(m, dst), c.methodOf(f, src)
		if len(index) > 1 && isLegacy(f) {
			b = c.promoted(srcType, index)
		}
		c.link(a, b, pos)
	}
}

func isLegacy(f *types.Func) bool { return f.Pkg() != nil && isLegacyPath(f.Pkg().Path()) }

// methodOf returns what determines the signature of a method: self for the methods of
// legacy types.
func (c *collector) methodOf(f *types.Func, self ref) ref {
	f = f.Origin()
	if isLegacy(f) {
		return self
	}
	if c.fileOf(f.Pos()) == nil {
		return ref{fixed: describe(f)}
	}
	if shapeOf(f) != noShape {
		return ref{nodes: []node{f.Pos()}}
	}
	return c.signature(f.Type().(*types.Signature), f)
}

// promoted returns the embedded field through which a type has a method.
func (c *collector) promoted(t types.Type, index []int) ref {
	fields := embedded(t, index)
	if len(fields) < len(index)-1 {
		return ref{fixed: "an embedded type"}
	}
	return c.object(fields[len(fields)-1])
}

// embedded returns the fields through which a type has the method or field at an index. It
// returns fewer of them if one is not in a struct.
func embedded(t types.Type, index []int) (fields []*types.Var) {
	for _, i := range index[:len(index)-1] {
		if p, ok := t.Underlying().(*types.Pointer); ok {
			t = p.Elem()
		}
		s, ok := t.Underlying().(*types.Struct)
		if !ok {
			break
		}
		fields, t = append(fields, s.Field(i)), s.Field(i).Type()
	}
	return fields
}

func (c *collector) assert(x ast.Expr, t types.Type, to ref, pos token.Pos) {
	xt := c.info.TypeOf(x)
	switch {
	case mentions(xt) && mentions(t):
		from := c.nodes(x)
		c.asserted = c.asserted || kindOf(t) == fake && from.fixed != ""
		c.link(from, to, pos)
	case mentions(xt):
		c.satisfy(c.nodes(x), xt, ref{}, t, pos)
	case mentions(t):
		c.link(to, ref{nodes: []node{dynamic}}, pos)
	}
}

func (c *collector) typeSwitch(n *ast.TypeSwitchStmt) {
	var x ast.Expr
	var lhs *ast.Ident
	switch a := n.Assign.(type) {
	case *ast.ExprStmt:
		x = a.X.(*ast.TypeAssertExpr).X
	case *ast.AssignStmt:
		x = a.Rhs[0].(*ast.TypeAssertExpr).X
		lhs = a.Lhs[0].(*ast.Ident)
	}
	for _, s := range n.Body.List {
		for _, t := range s.(*ast.CaseClause).List {
			if !c.info.Types[t].IsType() {
				continue
			}
			c.assert(x, c.info.TypeOf(t), c.typ(t), t.Pos())
			if lhs != nil && mentions(c.info.TypeOf(t)) {
				c.link(ref{nodes: []node{lhs.Pos()}}, c.typ(t), t.Pos())
			}
		}
	}
	if lhs != nil && mentions(c.info.TypeOf(x)) {
		c.link(ref{nodes: []node{lhs.Pos()}}, c.nodes(x), n.Pos())
	}
}

func (c *collector) call(n *ast.CallExpr) {
	if tv := c.info.Types[n.Fun]; tv.IsType() {
		if len(n.Args) == 1 {
			if mentions(tv.Type) || mentions(c.info.TypeOf(n.Args[0])) {
				dst := ref{}
				if mentions(tv.Type) {
					dst = c.typ(n.Fun)
				}
				c.assign(dst, tv.Type, n.Args[0], nil)
			}
		}
		return
	}
	c.creates(n)
	c.lookUp(n)
	callee := typeutil.Callee(c.info, n)
	expression := isMethodExpr(c.info, n.Fun)
	if _, ok := callee.(*types.Builtin); ok {
		c.builtin(n) // it has a signature, too
		return
	}
	fn, _ := callee.(*types.Func)
	if fn != nil && !c.file.isTest() {
		c.source(n, fn)
	}
	if fn != nil && !expression {
		s, ok := SignatureOf(fn)
		if ok && !s.Legacy && !c.file.isTest() && c.file.Skip == "" {
			c.newCalls = append(c.newCalls, n.Lparen)
		}
		if ok && s.Reason < len(n.Args) {
			if v := c.info.Types[n.Args[s.Reason]].Value; v != nil && v.Kind() == constant.String {
				c.reasons[constant.StringVal(v)] = true
			}
		}
		c.special(n, fn)
	}
	sig, ok := under(c.info.TypeOf(n.Fun)).(*types.Signature)
	if !ok {
		return
	}
	var declared *types.Signature
	if fn != nil {
		declared = fn.Origin().Type().(*types.Signature)
	}
	if len(n.Args) == 1 && sig.Params().Len() > 1 {
		if t, ok := c.info.TypeOf(n.Args[0]).(*types.Tuple); ok {
			for i := range min(t.Len(), sig.Params().Len()) {
				if mentions(t.At(i).Type()) {
					c.link(c.parameter(n, fn, declared, sig, i), c.resultAt(ast.Unparen(n.Args[0]).(*ast.CallExpr), i), n.Pos())
				}
			}
			return
		}
	}
	for i, a := range n.Args {
		j := min(i, sig.Params().Len()-1)
		if j < 0 {
			break
		}
		t := sig.Params().At(j).Type()
		if sig.Variadic() && j == sig.Params().Len()-1 && !n.Ellipsis.IsValid() {
			t = t.(*types.Slice).Elem()
		}
		c.assign(c.parameter(n, fn, declared, sig, j), t, a, nil)
	}
}

// parameter returns what determines the type of a parameter.
func (c *collector) parameter(n *ast.CallExpr, fn *types.Func, declared, sig *types.Signature, i int) ref {
	t := sig.Params().At(i).Type()
	if fn == nil {
		if mentions(t) {
			return c.nodes(n.Fun)
		}
		return ref{}
	}
	if isMethodExpr(c.info, n.Fun) {
		if i--; i < 0 { // the receiver
			if mentions(t) {
				return c.typ(ast.Unparen(n.Fun).(*ast.SelectorExpr).X)
			}
			return ref{}
		}
	}
	v := declared.Params().At(i)
	if !mentions(t) {
		// Functions outside of the program do not assert the types of their
		// arguments, except for those that store them.
		if c.fileOf(fn.Pos()) == nil && fn.FullName() != "context.WithValue" && fn.FullName() != "(*sync.Map).Store" {
			return ref{fixed: describe(fn)}
		}
		return ref{}
	}
	if !mentions(v.Type()) {
		return c.typeArgs(n)
	}
	r := c.object(v)
	if r.fixed != "" {
		r.fixed = describe(fn)
	}
	return r
}

func (c *collector) builtin(n *ast.CallExpr) {
	id, ok := ast.Unparen(n.Fun).(*ast.Ident)
	if !ok || (id.Name != "append" && id.Name != "copy") {
		return
	}
	for _, a := range n.Args[1:] {
		if mentions(c.info.TypeOf(n.Args[0])) {
			if s, ok := under(c.info.TypeOf(n.Args[0])).(*types.Slice); ok && !n.Ellipsis.IsValid() && id.Name == "append" {
				c.assign(c.nodes(n.Args[0]), s.Elem(), a, nil)
			} else {
				c.link(c.nodes(n.Args[0]), c.nodes(a), n.Pos())
			}
		}
	}
}

// special records calls of the legacy API.
func (c *collector) special(n *ast.CallExpr, fn *types.Func) {
	sel, _ := ast.Unparen(n.Fun).(*ast.SelectorExpr)
	origin := fn.Origin()
	stack := slices.Clone(c.stack)
	if s := shapeOf(origin); s != noShape && (isLegacy(origin) || c.fileOf(origin.Pos()) != nil) {
		x := &call{expr: n, sel: sel, shape: s, file: c.file, fun: c.fun(), stack: stack}
		if isLegacy(origin) {
			x.recv = c.receiver(n.Fun)
		} else {
			x.recv, x.own = ref{nodes: []node{origin.Pos()}}, true
		}
		c.calls[n.Lparen] = x
		if c.file.Skip != "" {
			for _, r := range x.recv.nodes {
				c.block(r, Reason{n.Pos(), c.file.Skip, false, true})
			}
		}
		return
	}
	if fn.Name() == "GetEventRecorderFor" && c.canLookUp(n) && sel != nil {
		c.lookups[n.Lparen] = &lookup{n, sel, n.Lparen, c.file}
		return
	}
	if !isLegacy(origin) {
		return
	}
	sig := origin.Type().(*types.Signature)
	switch {
	case sig.Recv() == nil && strings.HasPrefix(fn.Name(), "NewBroadcaster"):
		c.broadcasters = c.broadcasters || !c.file.isTest() && c.file.Skip == ""
	case sig.Recv() == nil && fn.Name() == "NewFakeRecorder":
		c.constructors[n.Lparen] = &constructor{n, n.Lparen, c.file}
	case sig.Recv() != nil && sel != nil && fn.Name() == "NewRecorder":
		u := &newRecorder{call: n, sel: sel, node: n.Lparen, file: c.file, concrete: isOneOf(sig.Recv().Type(), dropInPath, "Broadcaster")}
		if o := ObjectOf(c.info, sel.X); o != nil && c.fileOf(o.Pos()) == nil {
			u.foreign = describe(o)
		} else if call, ok := ast.Unparen(sel.X).(*ast.CallExpr); ok {
			if o := ObjectOf(c.info, call.Fun); o != nil && c.fileOf(o.Pos()) == nil && !isLegacyPath(o.Pkg().Path()) {
				u.foreign = describe(o)
			}
		}
		if v, ok := ObjectOf(c.info, sel.X).(*types.Var); ok && c.fun() != nil {
			if call, ok := ast.Unparen(assigned(c.info, c.fun(), v)).(*ast.CallExpr); ok {
				o := ObjectOf(c.info, call.Fun)
				u.local = o != nil && o.Pkg() != nil && isLegacyPath(o.Pkg().Path())
			}
		}
		c.uses[n.Lparen] = u
	}
	if c.file.Skip != "" {
		c.block(n.Lparen, Reason{n.Pos(), c.file.Skip, false, true})
	}
}

// methodValue leaves a recorder whose method is not called: its signature is the legacy one.
func (c *collector) methodValue(n *ast.SelectorExpr) {
	sel := c.info.Selections[n]
	if sel == nil {
		return
	}
	f, ok := sel.Obj().(*types.Func)
	if call, isCall := c.parentNode().(*ast.CallExpr); !ok || shapeOf(f.Origin()) == noShape || isCall && ast.Unparen(call.Fun) == n && sel.Kind() != types.MethodExpr {
		return
	}
	r := c.receiver(n)
	switch {
	case c.fileOf(f.Origin().Pos()) != nil:
		r = ref{nodes: []node{f.Origin().Pos()}}
	case sel.Kind() == types.MethodExpr:
		r = c.typ(n.X)
	}
	for _, node := range r.nodes {
		c.block(node, Reason{n.Pos(), "a method is used as a value", false, false})
	}
}

// isMethodExpr reports whether e is a method expression such as T.Method, whose first
// parameter is the receiver.
func isMethodExpr(info *types.Info, e ast.Expr) bool {
	sel, ok := ast.Unparen(e).(*ast.SelectorExpr)
	return ok && info.Selections[sel] != nil && info.Selections[sel].Kind() == types.MethodExpr
}

// parentNode returns the node around the current one and its parentheses.
func (c *collector) parentNode() ast.Node {
	for _, s := range slices.Backward(c.stack) {
		if _, ok := s.(*ast.ParenExpr); !ok {
			return s
		}
	}
	return nil
}
