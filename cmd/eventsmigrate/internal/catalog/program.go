package catalog

import (
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/callgraph/vta"
	"golang.org/x/tools/go/packages"
	"golang.org/x/tools/go/ssa"

	"github.com/eventseries/eventseries/cmd/eventsmigrate/internal/move"
)

// emission is a call of a recorder.
type emission struct {
	ssa.CallInstruction
	args   []ssa.Value // without the recorder
	params move.Signature
}

// use is an instruction that uses a function as a value.
type use struct {
	ssa.Instruction
	ssa.Value
}

// program is the SSA form of all packages, and an index of what its live functions do.
//
// A variable is an [ssa.Global], an [ssa.Alloc], or a field, which is a [types.Var].
type program struct {
	*ssa.Program
	packages map[*types.Package]*packages.Package // those with syntax
	live     map[*ssa.Function]bool
	types    map[types.Type]bool // whose methods are live

	calls    map[*ssa.Function][]ssa.CallInstruction
	invokes  map[string][]ssa.CallInstruction // of methods of interfaces, by name
	values   map[*ssa.Function][]use          // functions that are values
	passed   map[*ssa.Function]bool           // other code gets the function
	stores   map[any][]*ssa.Store             // by variable
	elements map[any][]ssa.Value              // of the list or the map in a variable
	opaque   map[any]bool                     // variables whose address other code gets

	emissions []emission
}

// newProgram reads the packages. Tests and fakes do not count.
//
// roots are the packages whose names other programs can use.
func newProgram(list []*packages.Package, roots map[string]bool) *program {
	p := &program{
		packages: map[*types.Package]*packages.Package{}, live: map[*ssa.Function]bool{}, types: map[types.Type]bool{},
		calls: map[*ssa.Function][]ssa.CallInstruction{}, invokes: map[string][]ssa.CallInstruction{}, values: map[*ssa.Function][]use{},
		passed: map[*ssa.Function]bool{}, stores: map[any][]*ssa.Store{}, elements: map[any][]ssa.Value{}, opaque: map[any]bool{},
	}
	for _, pkg := range list {
		if p.Program == nil {
			p.Program = ssa.NewProgram(pkg.Fset, ssa.InstantiateGenerics|ssa.GlobalDebug)
		}
		if pkg.TypesInfo != nil && !isFake(pkg) {
			p.packages[pkg.Types] = pkg
			p.CreatePackage(pkg.Types, pkg.Syntax, pkg.TypesInfo, true)
		}
	}
	for _, pkg := range list {
		p.create(pkg.Types)
	}
	p.Build()
	for _, pkg := range p.packages {
		p.start(pkg, roots[pkg.PkgPath])
	}
	for fn := range p.live {
		for _, i := range instructions(fn) {
			p.index(i)
		}
	}
	for fn, node := range vta.CallGraph(p.live, nil).Nodes {
		for _, e := range node.In {
			if c := e.Site.Common(); !c.IsInvoke() && c.StaticCallee() == nil {
				p.calls[fn] = append(p.calls[fn], e.Site)
				p.emission(e.Site, fn)
			}
		}
	}
	for _, sites := range slices.AppendSeq(slices.Collect(maps.Values(p.calls)), maps.Values(p.invokes)) {
		slices.SortFunc(sites, func(a, b ssa.CallInstruction) int { // always the same if there are too many
			return strings.Compare(p.Fset.Position(a.Pos()).String(), p.Fset.Position(b.Pos()).String())
		})
	}
	return p
}

// create adds the packages without syntax that a package needs.
func (p *program) create(pkg *types.Package) {
	if p.Package(pkg) == nil {
		p.CreatePackage(pkg, nil, nil, true)
	} else if p.packages[pkg] == nil {
		return
	}
	for _, imported := range pkg.Imports() {
		p.create(imported)
	}
}

// start finds what a package makes live: main, the initialization, and all functions of a
// root that is neither a program nor for tests.
func (p *program) start(pkg *packages.Package, isRoot bool) {
	ssa := p.Package(pkg.Types)
	switch {
	case isForTests(pkg):
		return
	case pkg.Name == "main":
		p.reach(ssa.Func("main"))
	case isRoot:
		for _, o := range pkg.TypesInfo.Defs {
			if f, ok := o.(*types.Func); ok {
				p.reach(p.FuncValue(f))
			}
		}
	}
	p.reach(ssa.Func("init"))
}

// reach makes a function live, with all that it mentions. A type counts with all its methods,
// since interfaces and reflection call them.
func (p *program) reach(fn *ssa.Function) {
	if fn == nil || p.live[fn] || isInit(fn) && p.packages[fn.Pkg.Pkg] != nil && isForTests(p.packages[fn.Pkg.Pkg]) {
		return
	}
	p.live[fn] = true
	for _, i := range instructions(fn) {
		if v, ok := i.(ssa.Value); ok {
			p.mention(v.Type())
		}
		for _, o := range i.Operands(nil) {
			if f, ok := (*o).(*ssa.Function); ok {
				p.reach(f)
			} else if *o != nil {
				p.mention((*o).Type())
			}
		}
	}
}

func (p *program) mention(t types.Type) {
	n := namedOf(t)
	if n == nil || p.types[n] || p.packages[n.Obj().Pkg()] == nil || types.IsInterface(n) {
		return
	}
	p.types[n] = true
	set := p.MethodSets.MethodSet(types.NewPointer(n))
	for m := range set.Methods() {
		p.reach(p.MethodValue(m))
	}
}

var (
	testPath = regexp.MustCompile(`/testing(/|$)`)
	fakePath = regexp.MustCompile(`/(fakes?|mocks?)(/|$)`)
)

// isForTests reports whether a package exists for tests: it imports package testing, or
// its path says so. Only what a program calls of it counts. A program is not for tests.
func isForTests(pkg *packages.Package) bool {
	return pkg.Name != "main" && (pkg.Imports["testing"] != nil || testPath.MatchString(inModule(pkg)))
}

// isFake reports whether a package has the name of a fake. A program does not.
func isFake(pkg *packages.Package) bool {
	return pkg.Name != "main" && fakePath.MatchString(inModule(pkg))
}

// inModule returns the path of a package below its module.
func inModule(pkg *packages.Package) string {
	if pkg.Module == nil {
		return "/" + pkg.PkgPath
	}
	return strings.TrimPrefix(pkg.PkgPath, pkg.Module.Path)
}

// index records what an instruction does.
func (p *program) index(i ssa.Instruction) {
	var callee ssa.Value
	switch i := i.(type) {
	case *ssa.DebugRef:
		return
	case *ssa.Store:
		if a, ok := i.Addr.(*ssa.IndexAddr); ok {
			p.elements[variable(a.X)] = append(p.elements[variable(a.X)], i.Val)
		} else {
			p.stores[variable(i.Addr)] = append(p.stores[variable(i.Addr)], i)
		}
	case *ssa.MapUpdate:
		p.elements[variable(i.Map)] = append(p.elements[variable(i.Map)], i.Value)
	case ssa.CallInstruction:
		c := i.Common()
		if callee = c.Value; c.IsInvoke() {
			p.invokes[c.Method.Name()] = append(p.invokes[c.Method.Name()], i)
			p.emit(i, c.Method)
		} else if fn := c.StaticCallee(); fn != nil {
			p.calls[fn] = append(p.calls[fn], i)
			p.emission(i, fn)
		}
	}
	for _, o := range i.Operands(nil) {
		if *o != nil && *o != callee {
			p.use(i, *o)
		}
	}
}

// use records that an instruction uses a function or an address as a value.
func (p *program) use(i ssa.Instruction, v ssa.Value) {
	fn, ok := v.(*ssa.Function)
	if c, isClosure := v.(*ssa.MakeClosure); isClosure {
		fn, ok = c.Fn.(*ssa.Function), true
	}
	passed := false
	switch i := i.(type) {
	case *ssa.MakeClosure:
		return // its free variables belong to the same variables
	case *ssa.Store:
		if i.Addr == v {
			return
		}
	case *ssa.UnOp, *ssa.FieldAddr, *ssa.IndexAddr, *ssa.Slice, *ssa.BinOp:
		return
	case *ssa.MakeInterface:
		passed = true
	case ssa.CallInstruction:
		passed = i.Common().StaticCallee() == nil || i.Common().StaticCallee().Blocks == nil
	}
	if ok {
		p.values[fn] = append(p.values[fn], use{i, v})
		p.passed[fn] = p.passed[fn] || passed
		return
	}
	switch v.(type) {
	case *ssa.Global, *ssa.Alloc, *ssa.FieldAddr, *ssa.FreeVar:
		// The fields of a struct are variables of their own.
		if _, ok := elem(v.Type()).Underlying().(*types.Struct); !ok {
			p.opaque[variable(v)] = true
		}
	}
}

// emission records a call of a method of a recorder.
func (p *program) emission(site ssa.CallInstruction, callee *ssa.Function) {
	f, ok := callee.Object().(*types.Func)
	if !ok {
		return
	}
	if n := receiver(f); n != nil && strings.HasPrefix(strings.ToLower(n.Obj().Name()), "fake") {
		return
	}
	p.emit(site, f)
}

func (p *program) emit(site ssa.CallInstruction, f *types.Func) {
	params, ok := move.SignatureOf(f)
	if !ok || isWrapper(site.Parent()) {
		return
	}
	args := site.Common().Args
	p.emissions = append(p.emissions, emission{site, args[len(args)-f.Signature().Params().Len():], params})
}

// callers returns the calls of a function that the program can reach, also through
// interfaces and through variables. It returns false if there are others.
func (p *program) callers(fn *ssa.Function) (list []ssa.CallInstruction, all bool) {
	list = slices.Clone(p.calls[fn])
	if recv := fn.Signature.Recv(); recv != nil {
		for _, site := range p.invokes[fn.Name()] {
			if i, ok := site.Common().Value.Type().Underlying().(*types.Interface); ok && types.Implements(recv.Type(), i) {
				list = append(list, site)
			}
		}
	}
	return list, !p.escapes(fn)
}

// escapes reports whether other code can call a function that is a value.
func (p *program) escapes(fn *ssa.Function) bool {
	return p.passed[fn] || p.values[fn] != nil && len(p.calls[fn]) == 0
}

// place returns where a call is.
func (p *program) place(pos token.Pos, fn *ssa.Function, lines bool) Place {
	outer := outermost(fn)
	at := p.Fset.Position(pos)
	place := Place{Function: nameOf(outer)}
	pkg := p.packages[packageOf(outer)]
	place.File = pkg.PkgPath + "/" + filepath.Base(at.Filename)
	if m := pkg.Module; m != nil && m.Main && m.Dir != "" {
		if rel, err := filepath.Rel(m.Dir, at.Filename); err == nil && !strings.HasPrefix(rel, "..") {
			place.File = filepath.ToSlash(rel)
		}
	}
	if lines {
		place.Line = at.Line
	}
	return place
}

func instructions(fn *ssa.Function) (list []ssa.Instruction) {
	for _, b := range fn.Blocks {
		list = append(list, b.Instrs...)
	}
	return list
}

// outermost returns the function around literals.
func outermost(fn *ssa.Function) *ssa.Function {
	for fn.Parent() != nil {
		fn = fn.Parent()
	}
	return fn
}

func isInit(fn *ssa.Function) bool { return fn.Synthetic == "package initializer" }

// isWrapper reports whether a function has no source, and calls a method for others.
func isWrapper(fn *ssa.Function) bool { return fn.Syntax() == nil && !isInit(fn) }

func packageOf(fn *ssa.Function) *types.Package {
	if fn.Pkg != nil {
		return fn.Pkg.Pkg
	}
	return fn.Object().Pkg()
}

func nameOf(fn *ssa.Function) string {
	f, ok := fn.Object().(*types.Func)
	if !ok {
		return ""
	}
	n := receiver(f)
	if n == nil {
		return f.Name()
	}
	if _, ok := f.Signature().Recv().Type().(*types.Pointer); ok {
		return "(*" + n.Obj().Name() + ")." + f.Name()
	}
	return n.Obj().Name() + "." + f.Name()
}

func receiver(f *types.Func) *types.Named {
	if recv := f.Signature().Recv(); recv != nil {
		return namedOf(recv.Type())
	}
	return nil
}

// namedOf returns the type with a name that t is or points to, or nil.
func namedOf(t types.Type) *types.Named {
	n, _ := types.Unalias(elem(t)).(*types.Named)
	return n
}

// elem returns the type to which t points, or t.
func elem(t types.Type) types.Type {
	if p, ok := t.Underlying().(*types.Pointer); ok {
		return p.Elem()
	}
	return t
}
