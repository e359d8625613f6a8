package catalog

import (
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
	"golang.org/x/tools/go/types/typeutil"

	"github.com/eventseries/eventseries/cmd/eventsmigrate/internal/move"
)

// expr is an expression and where it is.
type expr struct {
	ast.Expr
	in *function // the innermost function around it, or a pseudo-function for a package
}

// function is a declared function, a literal, or the package level.
type function struct {
	name    string
	pkg     *packages.Package
	node    ast.Node
	object  *types.Func  // nil for literals
	params  []*types.Var // without the receiver
	results []*types.Var
	returns []*ast.ReturnStmt

	variadic bool

	outer *function // around a literal
	uses  []types.Object

	// known are the variables and fields that hold a literal. Its callers are theirs.
	known []types.Object
	// escapes reports whether the function is a value that the catalogue does not follow.
	escapes bool
}

// param is a parameter of a function.
type param struct {
	of    *function
	index int
}

// source is what a variable or a field gets.
type source struct {
	expr
	index    int  // of the result, if the expression has several
	elements bool // the variable gets its elements
	literal  bool // the expression is in a literal of the struct
}

// call of a function of the program, or of a variable with a function.
type call struct {
	*ast.CallExpr
	in *function
}

// emission is a call of a recorder.
type emission struct {
	call
	args move.Signature
}

// openCall is a method of a recorder that is not called with an event, and why.
type openCall struct {
	expr
	why string
}

// program is an index of all packages.
type program struct {
	fset      *token.FileSet
	functions map[types.Object]*function
	params    map[types.Object]param
	sources   map[types.Object][]source
	stored    map[types.Object][]source // what elements of a list or a map are set to
	opaque    map[types.Object]bool     // changed in a way that the catalogue does not follow
	leaks     map[types.Object]bool     // a variable of a function that is a value: not all its calls are known
	calls     map[types.Object][]call
	methods   map[string][]*types.Func // of interfaces, by name, that the program calls
	embedding []types.Type             // structs that get methods from others
	emissions []emission
	open      []openCall
	literals  map[*ast.FuncLit]*function

	// What the program can reach.
	types map[types.Object]*function // pseudo-functions for declarations of types
	start []*function                // what runs first
	live  map[*function]bool
}

// newProgram reads the packages. Tests and fakes do not count.
//
// roots are the packages whose exported names other programs can use.
func newProgram(list []*packages.Package, roots map[string]bool) *program {
	p := &program{
		functions: map[types.Object]*function{}, params: map[types.Object]param{}, sources: map[types.Object][]source{},
		stored: map[types.Object][]source{}, opaque: map[types.Object]bool{}, leaks: map[types.Object]bool{}, calls: map[types.Object][]call{}, methods: map[string][]*types.Func{},
		literals: map[*ast.FuncLit]*function{}, types: map[types.Object]*function{}, live: map[*function]bool{},
	}
	var readers []*reader
	for _, pkg := range list {
		if pkg.TypesInfo != nil && !isFakePackage(pkg) {
			p.fset = pkg.Fset
			readers = append(readers, &reader{program: p, pkg: pkg, info: pkg.TypesInfo})
		}
	}
	for _, r := range readers {
		r.each((*reader).declare)
	}
	for _, r := range readers {
		r.each((*reader).declaration)
	}
	p.reach(roots)
	return p
}

// isForTests reports whether a package exists for tests: it imports package testing, or
// its path says so. Only what a program calls of it counts. A program is not for tests.
func isForTests(pkg *packages.Package) bool {
	return pkg.Name != "main" && (pkg.Imports["testing"] != nil || isIn(pkg, "testing"))
}

// isFakePackage reports whether a package has the name of a fake. A program does not.
func isFakePackage(pkg *packages.Package) bool {
	return pkg.Name != "main" && isIn(pkg, "fake", "fakes", "mock", "mocks")
}

// isIn reports whether one of the directories of a module has a package.
func isIn(pkg *packages.Package, directories ...string) bool {
	path := pkg.PkgPath
	if pkg.Module != nil {
		path = strings.TrimPrefix(path, pkg.Module.Path)
	}
	return slices.ContainsFunc(strings.Split(path, "/"), func(s string) bool { return slices.Contains(directories, s) })
}

// reader reads a package.
type reader struct {
	*program
	pkg  *packages.Package
	info *types.Info
}

func (r *reader) each(visit func(*reader, ast.Decl)) {
	for _, f := range r.pkg.Syntax {
		for _, d := range f.Decls {
			visit(r, d)
		}
	}
}

// declare adds the declared functions, before anything reads their uses.
func (r *reader) declare(d ast.Decl) {
	f, ok := d.(*ast.FuncDecl)
	if !ok {
		return
	}
	if object, ok := r.info.Defs[f.Name].(*types.Func); ok {
		fn := r.function(f, object.Signature(), object)
		fn.name = nameOf(object)
		r.functions[object] = fn
	}
}

func (r *reader) declaration(d ast.Decl) {
	f, ok := d.(*ast.FuncDecl)
	if !ok {
		for _, s := range d.(*ast.GenDecl).Specs {
			r.spec(s)
		}
		return
	}
	if fn := r.functions[r.info.Defs[f.Name]]; fn != nil {
		r.use(f.Type, fn)
		if f.Body != nil {
			r.read(f.Body, fn)
		}
	}
}

// spec reads a declaration of a package. Its variables are set when the program starts.
func (r *reader) spec(s ast.Spec) {
	fn := &function{pkg: r.pkg}
	switch s := s.(type) {
	case *ast.TypeSpec:
		r.types[r.info.Defs[s.Name]] = fn
	case *ast.ValueSpec:
		if !isForTests(r.pkg) && (s.Names[0].Name != "_" || r.runs(s)) { // not var _ T = (*t)(nil)
			r.start = append(r.start, fn)
		}
	}
	r.read(s, fn)
}

// runs reports whether a declaration calls functions.
func (r *reader) runs(s *ast.ValueSpec) (runs bool) {
	ast.Inspect(s, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && !r.info.Types[call.Fun].IsType() {
			runs = true
		}
		return !runs
	})
	return runs
}

// use adds the objects in a tree to the uses of a function.
func (r *reader) use(root ast.Node, in *function) {
	ast.Inspect(root, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			in.uses = append(in.uses, r.info.Uses[id])
		}
		return true
	})
}

func nameOf(f *types.Func) string {
	recv := f.Signature().Recv()
	if recv == nil {
		return f.Name()
	}
	t := typeName(recv.Type())
	if t == nil {
		return f.Name()
	}
	if _, ok := recv.Type().(*types.Pointer); ok {
		return "(*" + t.Name() + ")." + f.Name()
	}
	return t.Name() + "." + f.Name()
}

func (r *reader) function(node ast.Node, sig *types.Signature, object *types.Func) *function {
	fn := &function{pkg: r.pkg, node: node, object: object, variadic: sig.Variadic()}
	for v := range sig.Params().Variables() {
		r.params[v] = param{fn, len(fn.params)}
		fn.params = append(fn.params, v)
	}
	for v := range sig.Results().Variables() {
		fn.results = append(fn.results, v)
	}
	return fn
}

// read indexes a tree in a function.
func (r *reader) read(root ast.Node, in *function) {
	ast.PreorderStack(root, nil, func(n ast.Node, stack []ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			fn := r.literal(n, in)
			fn.outer = in
			r.use(n.Type, in.outermost())
			r.read(n.Body, fn)
			if len(stack) > 0 && !r.holds(stack[len(stack)-1], n) {
				fn.escapes = true
			}
			return false
		case *ast.AssignStmt:
			r.assignment(n, in)
		case *ast.ValueSpec:
			for i, name := range n.Names {
				r.assign(r.sources, r.info.Defs[name], n.Values, i, len(n.Names), in)
			}
		case *ast.RangeStmt:
			if n.Value != nil {
				add(r.sources, move.ObjectOf(r.info, n.Value), source{expr: expr{n.X, in}, elements: true})
			}
			if n.Key != nil {
				r.hide(n.Key)
			}
		case *ast.IncDecStmt:
			r.hide(n.X)
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				r.address(n)
			}
		case *ast.StructType:
			if t := r.embeds(stack); t != nil {
				r.embedding = append(r.embedding, t)
			}
		case *ast.CompositeLit:
			r.composite(n, in)
		case *ast.ReturnStmt:
			in.returns = append(in.returns, n)
		case *ast.CallExpr:
			r.call(n, in)
		case *ast.SelectorExpr:
			r.value(n, n.Sel, stack, in)
		case *ast.Ident:
			if o := r.info.Uses[n]; o != nil {
				outer := in.outermost()
				outer.uses = append(outer.uses, o)
			}
			r.value(n, n, stack, in)
		}
		return true
	})
}

// embeds returns a pointer to the type that a specification at the end of stack declares,
// if it is a struct with an embedded field.
func (r *reader) embeds(stack []ast.Node) types.Type {
	if len(stack) == 0 {
		return nil
	}
	spec, ok := stack[len(stack)-1].(*ast.TypeSpec)
	if !ok {
		return nil
	}
	t := r.info.Defs[spec.Name].Type()
	if s := structOf(t); s != nil {
		for f := range s.Fields() {
			if f.Embedded() {
				return types.NewPointer(t)
			}
		}
	}
	return nil
}

func (r *reader) literal(n *ast.FuncLit, in *function) *function {
	if fn := r.literals[n]; fn != nil {
		return fn
	}
	sig, _ := r.info.TypeOf(n).(*types.Signature)
	fn := r.function(n, sig, nil)
	fn.name = in.name
	r.literals[n] = fn
	return fn
}

// holds reports whether a literal is the value of a variable or a field, or is called.
func (r *reader) holds(parent ast.Node, n *ast.FuncLit) bool {
	fn := r.literals[n]
	switch parent := parent.(type) {
	case *ast.AssignStmt:
		for i, e := range parent.Rhs {
			if ast.Unparen(e) == n && len(parent.Lhs) == len(parent.Rhs) {
				if o := move.ObjectOf(r.info, parent.Lhs[i]); o != nil {
					fn.known = append(fn.known, o)
					return true
				}
			}
		}
	case *ast.ValueSpec:
		for i, e := range parent.Values {
			if ast.Unparen(e) == n && len(parent.Names) == len(parent.Values) {
				fn.known = append(fn.known, r.info.Defs[parent.Names[i]])
				return true
			}
		}
	case *ast.KeyValueExpr:
		if id, ok := parent.Key.(*ast.Ident); ok && r.info.Uses[id] != nil {
			fn.known = append(fn.known, r.info.Uses[id])
			return true
		}
	case *ast.CallExpr:
		return ast.Unparen(parent.Fun) == n && len(fn.params) == 0
	}
	return false
}

func (r *reader) assignment(n *ast.AssignStmt, in *function) {
	for i, l := range n.Lhs {
		if n.Tok != token.ASSIGN && n.Tok != token.DEFINE {
			r.hide(l)
			continue
		}
		if x, ok := ast.Unparen(l).(*ast.IndexExpr); ok {
			r.assign(r.stored, move.ObjectOf(r.info, x.X), n.Rhs, i, len(n.Lhs), in)
			continue
		}
		r.assign(r.sources, move.ObjectOf(r.info, l), n.Rhs, i, len(n.Lhs), in)
	}
}

// assign adds what the variable i of n gets from a list of values to sources.
func (r *reader) assign(sources map[types.Object][]source, o types.Object, values []ast.Expr, i, n int, in *function) {
	switch {
	case len(values) == n:
		add(sources, o, source{expr: expr{values[i], in}})
	case len(values) == 1:
		add(sources, o, source{expr: expr{values[0], in}, index: i})
	}
}

func add(sources map[types.Object][]source, o types.Object, s source) {
	if v, ok := o.(*types.Var); ok {
		sources[v.Origin()] = append(sources[v.Origin()], s)
	}
}

// hide says that a variable or a field has values that the catalogue does not follow.
func (r *reader) hide(e ast.Expr) {
	if v, ok := move.ObjectOf(r.info, e).(*types.Var); ok {
		r.opaque[v.Origin()] = true
	}
}

// address hides a variable whose address leaves the function, except for structs, whose
// fields are variables of their own.
func (r *reader) address(n *ast.UnaryExpr) {
	if v, ok := move.ObjectOf(r.info, n.X).(*types.Var); ok {
		if _, isStruct := v.Type().Underlying().(*types.Struct); !isStruct {
			r.opaque[v.Origin()] = true
		}
	}
}

func (r *reader) composite(n *ast.CompositeLit, in *function) {
	s := structOf(r.info.TypeOf(n))
	if s == nil {
		return
	}
	for i, e := range n.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if id, ok := kv.Key.(*ast.Ident); ok {
				add(r.sources, r.info.Uses[id], source{expr: expr{kv.Value, in}, literal: true})
			}
		} else if i < s.NumFields() {
			add(r.sources, s.Field(i), source{expr: expr{e, in}, literal: true})
		}
	}
}

func structOf(t types.Type) *types.Struct {
	if t == nil {
		return nil
	}
	u := t.Underlying()
	if p, ok := u.(*types.Pointer); ok {
		u = p.Elem().Underlying()
	}
	s, _ := u.(*types.Struct)
	return s
}

func (r *reader) call(n *ast.CallExpr, in *function) {
	c := call{n, in}
	callee := typeutil.Callee(r.info, n)
	f, ok := callee.(*types.Func)
	if !ok {
		if v, ok := callee.(*types.Var); ok {
			r.calls[v.Origin()] = append(r.calls[v.Origin()], c)
		}
		return
	}
	f = f.Origin()
	if sel, ok := ast.Unparen(n.Fun).(*ast.SelectorExpr); ok && r.info.Selections[sel] != nil && r.info.Selections[sel].Kind() == types.MethodExpr {
		if fn := r.functions[f]; fn != nil {
			fn.escapes = true // the arguments begin with the receiver
		}
		if _, ok := move.SignatureOf(f); ok {
			r.open = append(r.open, openCall{expr{n.Fun, in}, "a method of a recorder that is called as a function: its arguments are not here"})
		}
		return
	}
	if recv := f.Signature().Recv(); recv != nil && types.IsInterface(recv.Type()) && len(r.calls[f]) == 0 {
		r.methods[f.Name()] = append(r.methods[f.Name()], f)
	}
	r.calls[f] = append(r.calls[f], c)
	if args, ok := move.Emission(r.info, n); ok && !isFake(r.info, n) {
		r.emissions = append(r.emissions, emission{c, args})
	}
}

// forwards reports whether a function is a method of a recorder, which can pass on the
// events of its callers.
func forwards(in *function) bool {
	outer := in.outermost()
	if outer.object == nil {
		return false
	}
	_, ok := move.SignatureOf(outer.object)
	return ok
}

// isFake reports whether a call emits to a FakeRecorder.
func isFake(info *types.Info, n *ast.CallExpr) bool {
	sel, ok := ast.Unparen(n.Fun).(*ast.SelectorExpr)
	if !ok {
		return false
	}
	t := typeName(info.TypeOf(sel.X))
	return t != nil && strings.HasPrefix(strings.ToLower(t.Name()), "fake")
}

// value finds functions that are values: nothing knows all their callers.
func (r *reader) value(e ast.Expr, id *ast.Ident, stack []ast.Node, in *function) {
	o := r.info.Uses[id]
	switch o.(type) {
	case *types.Func, *types.Var:
	default:
		return
	}
	for _, n := range slices.Backward(stack) {
		switch n := n.(type) {
		case *ast.ParenExpr, *ast.IndexExpr, *ast.IndexListExpr:
			continue
		case *ast.SelectorExpr:
			if n.Sel == id {
				return // as a part of it
			}
		case *ast.CallExpr:
			if contains(n.Fun, e) {
				return
			}
		case *ast.AssignStmt:
			if slices.ContainsFunc(n.Lhs, func(l ast.Expr) bool { return contains(l, e) }) {
				return
			}
		case *ast.KeyValueExpr:
			if n.Key == e {
				return
			}
		case *ast.BinaryExpr:
			return // it is compared
		}
		break
	}
	switch o := o.(type) {
	case *types.Var:
		switch o.Type().Underlying().(type) {
		case *types.Signature, *types.Interface:
			r.leaks[o.Origin()] = true
		}
	case *types.Func:
		if fn := r.functions[o.Origin()]; fn != nil {
			fn.escapes = true
		}
		if _, ok := move.SignatureOf(o); ok && !forwards(in) {
			r.open = append(r.open, openCall{expr{e, in}, "a method of a recorder that is a value: its calls are not here"})
		}
	}
}

func contains(outer, inner ast.Expr) bool {
	return outer.Pos() <= inner.Pos() && inner.End() <= outer.End()
}

// callers returns the calls of a function that the program can reach, also through
// interfaces and through the variables that hold it. It returns false if there are others.
func (p *program) callers(fn *function) (list []call, all bool) {
	defer func() {
		list = slices.DeleteFunc(list, func(c call) bool { return !p.live[c.in.outermost()] })
	}()
	all = !fn.escapes
	for _, o := range fn.known {
		o = originOf(o)
		list = append(list, p.calls[o]...)
		all = all && !p.leaks[o]
	}
	if fn.object == nil {
		return list, all
	}
	list = append(list, p.calls[fn.object]...)
	if fn.object.Signature().Recv() == nil {
		return list, all
	}
	for _, m := range p.methods[fn.object.Name()] {
		if m != fn.object && p.implements(fn.object, m) {
			list = append(list, p.calls[m]...)
		}
	}
	return list, all
}

// implements reports whether a call of the method m of an interface can call f: because the
// receiver of f implements the interface, or a struct that embeds it.
func (p *program) implements(f, m *types.Func) bool {
	recv, t := f.Signature().Recv().Type(), m.Signature().Recv().Type()
	i, ok := t.Underlying().(*types.Interface)
	if !ok {
		return false
	}
	if n, ok := types.Unalias(t).(*types.Named); ok && n.TypeParams().Len() > 0 {
		return f.Signature().Params().Len() == m.Signature().Params().Len() // for some type arguments, perhaps
	}
	return types.Implements(recv, i) || slices.ContainsFunc(p.embedding, func(t types.Type) bool {
		o, _, _ := types.LookupFieldOrMethod(t, true, f.Pkg(), f.Name())
		promoted, ok := o.(*types.Func)
		return ok && promoted.Origin() == f && types.Implements(t, i)
	})
}

// place returns where a node is.
func (p *program) place(n ast.Node, in *function, lines bool) Place {
	pos := p.fset.Position(n.Pos())
	place := Place{File: in.pkg.PkgPath + "/" + filepath.Base(pos.Filename), Function: in.name}
	if m := in.pkg.Module; m != nil && m.Main && m.Dir != "" {
		if rel, err := filepath.Rel(m.Dir, pos.Filename); err == nil && !strings.HasPrefix(rel, "..") {
			place.File = filepath.ToSlash(rel)
		}
	}
	if lines {
		place.Line = pos.Line
	}
	return place
}
