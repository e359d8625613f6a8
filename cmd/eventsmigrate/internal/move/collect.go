package move

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/types/typeutil"
)

// collector reads a package.
type collector struct {
	*Program
	pkg   *Package
	info  *types.Info
	file  *File
	stack []ast.Node
}

// Collect adds a package, whose files must have been added before.
func (p *Program) Collect(pkg *Package) {
	c := &collector{Program: p, pkg: pkg, info: pkg.Info}
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

// enclosing returns the signature of the innermost function.
func (c *collector) enclosing() *types.Signature {
	for _, s := range slices.Backward(c.stack) {
		switch s := s.(type) {
		case *ast.FuncLit:
			sig, _ := c.info.TypeOf(s).(*types.Signature)
			return sig
		case *ast.FuncDecl:
			if f, ok := c.info.Defs[s.Name].(*types.Func); ok {
				return f.Signature()
			}
		}
	}
	return nil
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
		return c.signature(o.Origin().Signature(), o)
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
	if legacyType(t) != "" {
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
		return c.typ(e.Type)
	case *ast.StarExpr:
		return c.nodes(e.X)
	case *ast.UnaryExpr:
		return c.nodes(e.X)
	case *ast.IndexExpr:
		return c.nodes(e.X)
	case *ast.SliceExpr:
		return c.nodes(e.X)
	case *ast.TypeAssertExpr:
		return c.typ(e.Type)
	case *ast.ArrayType, *ast.MapType, *ast.ChanType, *ast.FuncType, *ast.StructType, *ast.InterfaceType:
		return c.typ(e)
	}
	return ref{}
}

// result returns what determines the type of the result of a call.
func (c *collector) result(e *ast.CallExpr) ref {
	if c.info.Types[e.Fun].IsType() {
		return c.typ(e.Fun)
	}
	switch fn := typeutil.Callee(c.info, e).(type) {
	case *types.Builtin:
		var r ref // of new, make or append
		for _, a := range e.Args {
			if mentions(c.info.TypeOf(a)) {
				r = r.and(c.nodes(a))
			}
		}
		return r
	case *types.Func:
		switch {
		case c.makes(e, fn):
			return ref{nodes: []node{e.Lparen}}
		case isLegacy(fn) && fn.Name() == "WithLogger":
			return c.receiver(e.Fun)
		}
		var r ref
		for v := range c.info.TypeOf(e.Fun).Underlying().(*types.Signature).Results().Variables() {
			r = r.and(c.variable(v, fn))
		}
		return r
	}
	return c.nodes(e.Fun)
}

// resultAt returns what determines the type of one result.
func (c *collector) resultAt(call *ast.CallExpr, i int) ref {
	if fn, ok := typeutil.Callee(c.info, call).(*types.Func); ok {
		return c.variable(c.info.TypeOf(call.Fun).Underlying().(*types.Signature).Results().At(i), fn)
	}
	return c.nodes(call)
}

// variable returns what determines the type of a variable, a field, or a parameter or result
// of a function.
func (c *collector) variable(v *types.Var, of *types.Func) ref {
	switch {
	case !mentions(v.Type()):
		return ref{}
	case !mentions(v.Origin().Type()):
		return ref{nodes: []node{dynamic}}
	}
	r := c.object(v)
	if r.fixed != "" && of != nil {
		r.fixed = describe(of)
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

// makes reports whether a call gets a recorder that can move: a fake, one of a broadcaster,
// or one of what has GetEventRecorder, too.
func (c *collector) makes(e *ast.CallExpr, fn *types.Func) bool {
	sel, ok := ast.Unparen(e.Fun).(*ast.SelectorExpr)
	switch {
	case isLegacy(fn):
		return fn.Name() == "NewFakeRecorder" || fn.Name() == "NewRecorder"
	case !ok || len(e.Args) != 1 || fn.Name() != "GetEventRecorderFor":
		return false
	}
	o, _, _ := types.LookupFieldOrMethod(c.info.TypeOf(sel.X), true, c.pkg.Types, "GetEventRecorder")
	f, ok := o.(*types.Func)
	return ok && c.fileOf(f.Pos()) == nil && f.Signature().Params().Len() == 1 && f.Signature().Results().Len() == 1
}

func (c *collector) visit(n ast.Node) {
	switch n := n.(type) {
	case *ast.SelectorExpr:
		if name := legacyType(c.info.Uses[n.Sel]); name != "" {
			c.occurs(n, name)
		} else {
			c.methodValue(n)
			c.mentionsCreator(n)
		}
	case *ast.Ident:
		c.ident(n)
	case *ast.FuncDecl:
		if f, ok := c.info.Defs[n.Name].(*types.Func); ok {
			c.declare(f.Signature(), n.Type)
			c.method(f, n.Name, n.Type, nil)
		}
	case *ast.FuncType: // of literals, interfaces and type expressions
		if sig, ok := c.info.TypeOf(n).(*types.Signature); ok {
			c.declare(sig, n)
		}
	case *ast.InterfaceType:
		for _, f := range n.Methods.List {
			if len(f.Names) == 1 {
				if m, ok := c.info.Defs[f.Names[0]].(*types.Func); ok {
					c.method(m, f.Names[0], f.Type.(*ast.FuncType), n.Methods)
				}
			}
		}
	case *ast.StructType:
		if s, ok := c.info.TypeOf(n).(*types.Struct); ok {
			c.variables(s.Fields(), n.Fields)
		}
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
	case *ast.RangeStmt:
		if mentions(c.info.TypeOf(n.X)) {
			x := c.nodes(n.X)
			for _, v := range []ast.Expr{n.Key, n.Value} {
				if v != nil && mentions(c.info.TypeOf(v)) {
					c.link(x, c.nodes(v), n.Pos())
				}
			}
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
	if name := legacyType(o); name != "" {
		c.occurs(id, name)
	}
	if c.info.Defs[id] == nil {
		c.mentionsCreator(id) // with a dot import
	}
}

// place adds a place. It stays if its file does.
func (c *collector) place(p place) {
	p.file = c.file
	c.places[p.node] = &p
	if c.file.Skip != "" {
		c.block(p.node, Reason{p.node, c.file.Skip, false})
	}
}

func (c *collector) occurs(e ast.Expr, name string) {
	f, owner := c.file, c.exported()
	c.place(place{node: e.Pos(), typ: name, left: Item{Rule: "types", Text: name + ": "}, move: func(pl *planner, set node) {
		pl.edit(f, e.Pos(), e.End(), set, qualify(eventsPath)+name)
		pl.note(e.Pos(), "types", Moved, "%s", name)
		if owner != "" {
			pl.gather("exported "+f.Pkg.Path, e.Pos(), "types", "other modules must change, too, if they use these of package "+f.Pkg.Types.Name()+": ",
				fmt.Sprintf("%s (%s)", owner, filepath.Base(f.Name)))
		}
	}})
}

// exported returns what contains the current node, if other modules can see both.
func (c *collector) exported() (name string) {
	if c.file.isTest() || c.pkg.Types.Name() == "main" || slices.Contains(strings.Split(c.pkg.Path, "/"), "internal") {
		return ""
	}
	for _, n := range c.stack {
		id := &ast.Ident{Name: "Any"}
		switch n := n.(type) {
		case *ast.BlockStmt:
			return ""
		case *ast.FuncDecl:
			if id = n.Name; n.Recv != nil {
				name = named(receiverType(c.info.Defs[id].(*types.Func))).Name() + "."
			}
			name += id.Name
		case *ast.TypeSpec:
			id, name = n.Name, n.Name.Name
		case *ast.ValueSpec:
			id, name = n.Names[0], n.Names[0].Name
		case *ast.StructType:
			name += "." // until a field follows
		case *ast.Field:
			if strings.HasSuffix(name, ".") && len(n.Names) > 0 {
				id, name = n.Names[0], name+n.Names[0].Name
			}
		}
		if !id.IsExported() || !token.IsExported(name) && name != "" {
			return ""
		}
	}
	return strings.TrimSuffix(name, ".")
}

// declare links the parameters and results of a function with the places of their types.
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

func (c *collector) method(f *types.Func, name *ast.Ident, t *ast.FuncType, list *ast.FieldList) {
	if isLegacySignature(f) {
		m := &method{fn: f, decl: t, list: list, file: c.file}
		c.methods[name.Pos()] = m
		c.place(place{node: name.Pos(), move: func(pl *planner, set node) { pl.method(m, set) }})
	}
}

func (c *collector) valueSpec(n *ast.ValueSpec) {
	for _, name := range n.Names {
		if o := c.info.Defs[name]; o != nil && mentions(o.Type()) {
			c.link(ref{nodes: []node{name.Pos()}}, c.typ(n.Type), n.Pos())
		}
	}
	if len(n.Values) == 1 && len(n.Names) > 1 {
		c.tuple(n.Values[0], func(i int) (ref, types.Type) { return c.nodes(n.Names[i]), c.info.TypeOf(n.Names[i]) })
		return
	}
	for i, v := range n.Values {
		if n.Type != nil { // var _ T = v
			c.assign(c.typ(n.Type), c.info.TypeOf(n.Type), v)
		} else {
			c.assign(c.nodes(n.Names[i]), c.info.TypeOf(n.Names[i]), v)
		}
	}
}

func (c *collector) assignment(n *ast.AssignStmt) {
	if len(n.Rhs) == 1 && len(n.Lhs) > 1 {
		c.tuple(n.Rhs[0], func(i int) (ref, types.Type) { return c.nodes(n.Lhs[i]), c.info.TypeOf(n.Lhs[i]) })
		return
	}
	for i, l := range n.Lhs {
		c.option(l, n.Rhs[i])
		c.assign(c.nodes(l), c.info.TypeOf(l), n.Rhs[i])
	}
}

// tuple assigns the results of a call, or a value and a bool, to places. It reports whether
// src is one of these.
func (c *collector) tuple(src ast.Expr, dst func(i int) (ref, types.Type)) bool {
	t, ok := c.info.TypeOf(src).(*types.Tuple)
	if !ok {
		return false
	}
	for i := range t.Len() {
		to, toType := dst(i)
		from := c.nodes(src)
		if call, ok := ast.Unparen(src).(*ast.CallExpr); ok {
			from = c.resultAt(call, i)
		}
		c.assignRef(flow{dst: to, src: from, expr: src, rigid: true}, toType, t.At(i).Type())
	}
	return true
}

func (c *collector) returns(n *ast.ReturnStmt) {
	sig := c.enclosing()
	if sig == nil {
		return
	}
	dst := func(i int) (ref, types.Type) {
		v := sig.Results().At(i)
		return c.variable(v, nil), v.Type()
	}
	if len(n.Results) == 1 && c.tuple(n.Results[0], dst) {
		return
	}
	for i, e := range n.Results {
		to, toType := dst(i)
		c.assign(to, toType, e)
	}
}

func (c *collector) literal(n *ast.CompositeLit) {
	t := c.info.TypeOf(n)
	c.role(n, t)
	u := types.Unalias(t).Underlying()
	if p, ok := u.(*types.Pointer); ok { // &T elided
		u = p.Elem().Underlying()
	}
	elem := func(e ast.Expr, et types.Type) { c.assign(c.typ(n.Type), et, e) }
	switch u := u.(type) {
	case *types.Struct:
		for i, e := range n.Elts {
			if kv, ok := e.(*ast.KeyValueExpr); ok {
				if id, ok := kv.Key.(*ast.Ident); ok {
					if v, ok := c.info.Uses[id].(*types.Var); ok {
						c.option(id, kv.Value)
						c.assign(c.variable(v, nil), v.Type(), kv.Value)
					}
				}
			} else if i < u.NumFields() {
				c.assign(c.variable(u.Field(i), nil), u.Field(i).Type(), e)
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

func valueOf(e ast.Expr) ast.Expr {
	if kv, ok := e.(*ast.KeyValueExpr); ok {
		return kv.Value
	}
	return e
}

// assign handles an assignment of src to a place with a type.
func (c *collector) assign(dst ref, dstType types.Type, src ast.Expr) {
	var s ref
	srcType := c.info.TypeOf(src)
	if mentions(srcType) {
		s = c.nodes(src)
	}
	c.assignRef(flow{dst: dst, src: s, expr: src}, dstType, srcType)
}

func (c *collector) assignRef(f flow, dstType, srcType types.Type) {
	if dstType == nil || srcType == nil || isNil(srcType) {
		return
	}
	f.file = c.file
	f.fake = recorderOf(srcType) == fake
	f.rigid = f.rigid || recorderOf(dstType) == fake
	to, from := mentions(dstType), mentions(srcType)
	switch {
	case !to:
		f.dst.nodes = nil
	case f.dst.empty():
		f.dst.nodes = []node{dynamic}
	}
	i, isInterface := dstType.Underlying().(*types.Interface)
	switch {
	case to && from && recorderOf(dstType) != "" && recorderOf(srcType) != "":
		c.flows = append(c.flows, f)
	case to && from:
		c.link(f.dst, f.src, f.expr.Pos())
	case !from:
		c.satisfy(f.dst, dstType, ref{}, srcType, f.expr.Pos())
	case !isInterface:
	case i.NumMethods() == 0 && f.dst.fixed == "":
		c.link(f.src, ref{nodes: []node{dynamic}}, f.expr.Pos())
	case c.outside(i) != "" && recorderOf(srcType) != "":
		f.dst = ref{fixed: c.outside(i)}
		c.flows = append(c.flows, f)
	default:
		c.satisfy(ref{}, dstType, f.src, srcType, f.expr.Pos())
	}
}

// outside returns a method with a legacy signature of an interface that code outside of
// the program declares, or "".
func (c *collector) outside(i *types.Interface) string {
	for m := range i.Methods() {
		if isLegacySignature(m) && c.fileOf(m.Origin().Pos()) == nil {
			return describe(m)
		}
	}
	return ""
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
		dst.fixed = "package record"
	}
	for m := range i.Methods() {
		if !isLegacySignature(m) && !mentions(m.Type()) {
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
	if isLegacySignature(f) {
		return ref{nodes: []node{f.Pos()}}
	}
	return c.signature(f.Signature(), f)
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
		c.asserted = c.asserted || recorderOf(t) == fake && from.fixed != ""
		c.link(from, to, pos)
	case mentions(xt):
		c.satisfy(c.nodes(x), xt, ref{}, t, pos)
	case mentions(t):
		c.link(to, ref{nodes: []node{dynamic}}, pos)
	}
}

func (c *collector) typeSwitch(n *ast.TypeSwitchStmt) {
	for a := range ast.Preorder(n.Assign) {
		if x, ok := a.(*ast.TypeAssertExpr); ok && x.Type == nil {
			for _, s := range n.Body.List {
				for _, t := range s.(*ast.CaseClause).List {
					if c.info.Types[t].IsType() {
						c.assert(x.X, c.info.TypeOf(t), c.typ(t), t.Pos())
					}
				}
			}
		}
	}
}

func (c *collector) call(n *ast.CallExpr) {
	if c.info.Types[n.Fun].IsType() {
		c.assign(c.typ(n.Fun), c.info.TypeOf(n.Fun), n.Args[0])
		return
	}
	c.creates(n)
	c.lookUp(n)
	callee := typeutil.Callee(c.info, n)
	if b, ok := callee.(*types.Builtin); ok { // it has a signature, too
		if b.Name() == "append" || b.Name() == "copy" {
			c.builtin(n)
		}
		return
	}
	fn, _ := callee.(*types.Func)
	if fn != nil && !c.file.isTest() {
		c.source(n, fn)
	}
	if fn != nil && !isMethodExpr(c.info, n.Fun) {
		c.special(n, fn)
	}
	sig, ok := c.info.TypeOf(n.Fun).Underlying().(*types.Signature)
	if !ok {
		return
	}
	dst := func(i int) (ref, types.Type) {
		last := sig.Params().Len() - 1
		t := sig.Params().At(min(i, last)).Type()
		r := c.parameter(n, fn, sig.Params().At(min(i, last)))
		if sig.Variadic() && i >= last && !n.Ellipsis.IsValid() {
			t = t.(*types.Slice).Elem()
		}
		return r, t
	}
	if len(n.Args) == 1 && c.tuple(n.Args[0], dst) {
		return
	}
	for i, a := range n.Args {
		to, toType := dst(i)
		c.assign(to, toType, a)
	}
}

// parameter returns what determines the type of a parameter.
func (c *collector) parameter(n *ast.CallExpr, fn *types.Func, v *types.Var) ref {
	switch {
	case fn == nil && mentions(v.Type()):
		return c.nodes(n.Fun)
	case fn == nil || mentions(v.Type()):
		return c.variable(v, fn)
	case c.fileOf(fn.Pos()) == nil && fn.FullName() != "context.WithValue" && fn.FullName() != "(*sync.Map).Store":
		// Functions outside of the program do not assert the types of their
		// arguments, except for those that store them.
		return ref{fixed: describe(fn)}
	}
	return ref{}
}

// builtin handles a call of append or copy.
func (c *collector) builtin(n *ast.CallExpr) {
	t := c.info.TypeOf(n.Args[0])
	if s, ok := t.Underlying().(*types.Slice); ok && n.Fun.(*ast.Ident).Name == "append" && !n.Ellipsis.IsValid() {
		t = s.Elem()
	}
	for _, a := range n.Args[1:] {
		c.assign(c.nodes(n.Args[0]), t, a)
	}
}

// special records calls of the legacy API, and of methods with its signatures.
func (c *collector) special(n *ast.CallExpr, fn *types.Func) {
	sel, _ := ast.Unparen(n.Fun).(*ast.SelectorExpr)
	origin := fn.Origin()
	s, emits := SignatureOf(origin)
	switch {
	case emits:
		switch {
		case !s.Legacy && !c.file.isTest() && c.file.Skip == "":
			c.newCalls = append(c.newCalls, n.Lparen)
		case s.Legacy && (isLegacy(origin) || c.fileOf(origin.Pos()) != nil):
			c.emission(n, sel, origin)
		}
	case c.makes(n, fn):
		c.recorder(n, sel, fn)
	case isLegacy(fn) && MakesBroadcaster(fn) && !c.file.isTest() && c.file.Skip == "":
		c.broadcasters[n.Pos()] = c.file
	}
}

// emission records a call that emits an event.
func (c *collector) emission(n *ast.CallExpr, sel *ast.SelectorExpr, fn *types.Func) {
	x := &call{expr: n, sel: sel, name: fn.Name(), file: c.file, fun: c.fun()}
	if isLegacy(fn) {
		x.recv = c.receiver(n.Fun)
	} else {
		x.recv, x.own = ref{nodes: []node{fn.Pos()}}, true
	}
	c.calls[n.Lparen] = x
	for _, r := range x.recv.nodes {
		switch {
		case c.file.Skip != "":
			c.block(r, Reason{n.Pos(), c.file.Skip, false})
		case sel == nil || len(n.Args) < 4:
			c.block(r, Reason{n.Pos(), "the method receives the results of a call", false})
		}
	}
}

// recorder records a call that gets a recorder.
func (c *collector) recorder(n *ast.CallExpr, sel *ast.SelectorExpr, fn *types.Func) {
	p := place{node: n.Lparen, typ: "EventRecorder"}
	switch f := c.file; fn.Name() {
	case "NewFakeRecorder":
		p.typ = ""
		p.move = func(pl *planner, set node) {
			pl.edit(f, n.Fun.Pos(), n.Fun.End(), set, qualify(eventsPath)+"NewFakeRecorder")
			pl.note(n.Pos(), "tests", Moved, "NewFakeRecorder")
		}
	case "NewRecorder":
		p.origin = c.maker(sel.X)
		p.given = p.origin == "" && !c.file.isTest() && !isOneOf(fn.Signature().Recv().Type(), dropInPath, "Broadcaster")
		p.move = func(pl *planner, set node) { pl.newRecorder(f, n, set) }
		if p.origin != "" {
			c.block(n.Lparen, Reason{n.Pos(), p.origin + " makes the broadcaster", true})
		}
	default:
		p.left, p.origin = Item{Rule: "GetEventRecorderFor"}, managers
		p.move = func(pl *planner, set node) { pl.lookUp(f, n, sel, set) }
	}
	c.place(p)
}

// maker returns the code outside of the program that makes a broadcaster, or "".
func (c *collector) maker(e ast.Expr) string {
	o := ObjectOf(c.info, e)
	if call, ok := ast.Unparen(e).(*ast.CallExpr); ok {
		if o = ObjectOf(c.info, call.Fun); o != nil && isLegacyPath(o.Pkg().Path()) {
			return ""
		}
	}
	if o == nil || c.fileOf(o.Pos()) != nil {
		return ""
	}
	return describe(o)
}

// methodValue leaves a recorder whose method is not called: its signature is the legacy one.
func (c *collector) methodValue(n *ast.SelectorExpr) {
	sel := c.info.Selections[n]
	if sel == nil {
		return
	}
	f, ok := sel.Obj().(*types.Func)
	if call, isCall := c.parentNode().(*ast.CallExpr); !ok || !isLegacySignature(f.Origin()) || isCall && ast.Unparen(call.Fun) == n && sel.Kind() != types.MethodExpr {
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
		c.block(node, Reason{n.Pos(), "a method is used as a value", false})
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
