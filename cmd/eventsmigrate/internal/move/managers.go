package move

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"
)

// Import paths of controller-runtime.
const (
	runtimeAliasPath   = "sigs.k8s.io/controller-runtime"
	runtimeManagerPath = runtimeAliasPath + "/pkg/manager"
	runtimeClusterPath = runtimeAliasPath + "/pkg/cluster"
)

// creators are the functions of controller-runtime that create what has recorders, and
// those of this project that take their place.
var creators = map[string]string{
	runtimeAliasPath + ".NewManager": "NewManager",
	runtimeManagerPath + ".New":      "NewManager",
	runtimeClusterPath + ".New":      "NewCluster",
}

// creation is where a program gets a manager or a cluster from code outside of it.
type creation struct {
	call *ast.CallExpr // nil if the function is used as a value
	expr ast.Expr      // the function
	name string        // of the function
	by   string        // what takes its place, or "" if only controller-runtime's own can move
	old  bool          // the manager has no GetEventRecorder
	is   bool          // it is a cluster
	file *File
	fun  *ast.FuncDecl
	list []ast.Node // the path to it

	why string // it stays, or ""; set by planCreations
}

// option is a place that sets Options.EventBroadcaster of a manager.
type option struct {
	value ast.Expr
	file  *File
	fun   *ast.FuncDecl
}

// hasRecorders reports whether values of a type create recorders, as managers and clusters do.
func hasRecorders(t types.Type) (has, both bool) {
	structured := HasMethod(t, "GetEventRecorder")
	return structured || HasMethod(t, "GetEventRecorderFor"), structured
}

// creates records a call of other code that returns a manager or a cluster.
func (c *collector) creates(n *ast.CallExpr) {
	o := ObjectOf(c.info, n.Fun)
	if o == nil || o.Pkg() == nil || c.fileOf(o.Pos()) != nil {
		return
	}
	sig, ok := o.Type().Underlying().(*types.Signature)
	if !ok || sig.Recv() != nil && creators[describe(o)] == "" {
		return // a method returns what somebody created
	}
	for v := range sig.Results().Variables() {
		if has, both := hasRecorders(v.Type()); has {
			c.creations[n.Lparen] = &creation{
				call: n, expr: n.Fun, name: describe(o), by: creators[describe(o)], old: !both,
				is: isCluster(v.Type()), file: c.file, fun: c.fun(), list: slices.Clone(c.stack),
			}
			return
		}
	}
}

// mentionsCreator records a function that creates managers and is not called.
func (c *collector) mentionsCreator(e ast.Expr) {
	o := ObjectOf(c.info, e)
	if o == nil || o.Pkg() == nil || creators[describe(o)] == "" {
		return
	}
	if call, ok := c.parentNode().(*ast.CallExpr); ok && ast.Unparen(call.Fun) == e {
		return
	}
	if sel, ok := c.parentNode().(*ast.SelectorExpr); ok && sel.Sel == e {
		return
	}
	c.creations[e.Pos()] = &creation{expr: e, name: describe(o), is: creators[describe(o)] == "NewCluster", file: c.file, fun: c.fun()}
}

// option records a value for Options.EventBroadcaster.
func (c *collector) option(field, value ast.Expr) {
	v, ok := ObjectOf(c.info, field).(*types.Var)
	if ok && v.IsField() && v.Name() == "EventBroadcaster" && v.Pkg() != nil && (v.Pkg().Path() == runtimeManagerPath || v.Pkg().Path() == runtimeClusterPath) && !c.info.Types[value].IsNil() {
		c.options[value.Pos()] = &option{value, c.file, c.fun()}
	}
}

// lookUp records a call of a method that returns a recorder of a manager or a cluster.
func (c *collector) lookUp(n *ast.CallExpr) {
	sel, ok := ast.Unparen(n.Fun).(*ast.SelectorExpr)
	if !ok || c.file.isTest() || sel.Sel.Name != "GetEventRecorder" && sel.Sel.Name != "GetEventRecorderFor" || c.info.Selections[sel] == nil {
		return
	}
	t := c.info.TypeOf(sel.X)
	if has, _ := hasRecorders(t); !has {
		return
	}
	c.gets = append(c.gets, get{n.Lparen, c.pkg, isCluster(t), sel.Sel.Name == "GetEventRecorder"})
}

// get is a call that gets a recorder from a manager or from a cluster.
type get struct {
	pos                 token.Pos
	pkg                 *Package
	cluster, structured bool
}

func isCluster(t types.Type) bool { return isOneOf(t, runtimeClusterPath, "Cluster") }

// gives reports whether the structured or the legacy recorders that a program gets can be those
// of a manager or a cluster.
func (pl *planner) gives(m *creation, structured bool) bool {
	return slices.ContainsFunc(pl.gets, func(g get) bool { return g.structured == structured && pl.has(m, g) })
}

// has reports whether a recorder can be one of a manager or a cluster.
func (pl *planner) has(m *creation, g get) bool { return g.cluster == m.is && pl.meet(m.file, g.pkg) }

// meet reports whether what a file creates can reach a package: a package imports both, perhaps
// through others.
func (pl *planner) meet(from *File, pkg *Package) bool {
	return !from.isTest() && slices.ContainsFunc(pl.Files, func(f *File) bool {
		return !f.isTest() && pl.reached(f.Pkg.Types)[from.Pkg.Path] && pl.reached(f.Pkg.Types)[pkg.Path]
	})
}

// findForeign finds the recorders of managers and clusters that nothing here creates, such as
// those that a library receives.
func (pl *planner) findForeign() {
	pl.notOurs = map[token.Pos]bool{}
	for _, g := range pl.gets {
		if !slices.ContainsFunc(slices.Collect(maps.Values(pl.creations)), func(m *creation) bool { return pl.has(m, g) }) {
			pl.notOurs[g.pos] = true
		}
	}
}

// reached returns the paths of a package and of what it imports, perhaps through others.
func (p *Program) reached(pkg *types.Package) map[string]bool {
	if seen := p.imported[pkg]; seen != nil {
		return seen
	}
	seen := map[string]bool{}
	p.imported[pkg] = seen
	var visit func(pkg *types.Package)
	visit = func(pkg *types.Package) {
		if !seen[pkg.Path()] && !isStandard(pkg.Path()) {
			seen[pkg.Path()] = true
			for _, imported := range pkg.Imports() {
				visit(imported)
			}
		}
	}
	visit(pkg)
	return seen
}

// planCreations decides which managers and clusters move. If one stays, its recorders must
// not become those of events.k8s.io, for which its role may not suffice.
func (pl *planner) planCreations() {
	for _, m := range sorted(pl.Program, pl.creations) {
		if !pl.gives(m, false) && !pl.gives(m, true) || strings.HasPrefix(m.name, ManagerPath+".") || pl.wrapped(m) {
			continue
		}
		var series bool
		if m.why, series = pl.whyStays(m); m.old && series {
			if !ShutsDown(m.file.Pkg.Files, m.file.Pkg.Info) {
				pl.note(m.call.Pos(), "shutdown", Decide, notShutDown)
			}
			continue
		}
		pl.created = append(pl.created, m)
	}
	if pl.Target == Record {
		return
	}
	i := slices.IndexFunc(pl.created, func(m *creation) bool { return m.why != "" || m.old })
	for n, m := range pl.places {
		switch {
		case pl.notOurs[n]:
			pl.leave(n, Reason{n, "nothing here creates the manager", true})
		case m.origin == managers && !m.file.isTest() && i >= 0:
			pl.leave(n, Reason{pl.created[i].expr.Pos(), "the manager stays", true})
		}
	}
}

const notShutDown = "the manager does not shut down the broadcaster: construct it before, and call Shutdown when the manager has stopped"

// ShutsDown reports whether the files of a package shut down a broadcaster.
func ShutsDown(files []*ast.File, info *types.Info) bool {
	for _, f := range files {
		for n := range ast.Preorder(f) {
			if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == "Shutdown" && HasMethod(info.TypeOf(sel.X), "NewRecorder") {
				return true
			}
		}
	}
	return false
}

// wrapped reports whether the function that creates a manager wraps it.
func (pl *planner) wrapped(m *creation) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(pl.creations)), func(o *creation) bool { return o.name == ManagerPath+".Wrap" && o.fun != nil && o.fun == m.fun })
}

// whyStays returns the reason for which a manager or a cluster stays, or "". It reports
// whether legacy recorders of it emit series nevertheless.
func (pl *planner) whyStays(m *creation) (why string, series bool) {
	if m.call == nil {
		return "the function is a value here", false
	}
	if m.by == "" {
		return "code outside of the program creates it: pass it to controllerruntime.Wrap", false
	}
	if m.file.Skip != "" {
		return m.file.Skip, false
	}
	if text, ok := pl.blocked[m.call.Lparen]; ok {
		return text, false
	}
	o := pl.optionOf(m)
	switch {
	case o != nil && (m.old || m.by == "NewCluster" || !pl.ownBroadcaster(o)):
		return "Options.EventBroadcaster is set: remove it, or pass a broadcaster as docs/manager.md shows", o.fun == m.fun && pl.ownBroadcaster(o)
	case m.by == "NewCluster" && m.old:
		return "clusters have GetEventRecorder since controller-runtime v0.23: set EventBroadcaster in its options to record.NewBroadcaster()", false
	case m.by == "NewManager" && len(m.call.Args) != 2:
		return "it receives the results of a call", false
	case m.old && pl.place(m) == nil:
		return "its options are the result of a call: set Options.EventBroadcaster to record.NewBroadcaster()", false
	}
	return "", false
}

// optionOf returns the value of Options.EventBroadcaster that a manager can have, or nil.
func (pl *planner) optionOf(m *creation) *option {
	for _, o := range sorted(pl.Program, pl.options) {
		switch {
		case o.fun == m.fun && o.file == m.file:
			return o
		case !m.old && m.by == "NewManager" && o.file.Pkg.Path == m.file.Pkg.Path && m.options() == nil && !o.file.isTest():
			return o // perhaps of these options
		}
	}
	return nil
}

// managersWriteCore reports whether those that give structured recorders are of this project, and
// have a broadcaster of compat/record, as after a move.
func (pl *planner) managersWriteCore() bool {
	all := slices.DeleteFunc(slices.Collect(maps.Values(pl.creations)), func(m *creation) bool { return m.file.isTest() || !pl.gives(m, true) })
	return len(all) > 0 && !slices.ContainsFunc(all, func(m *creation) bool {
		o := pl.optionOf(m)
		return !strings.HasPrefix(m.name, ManagerPath+".New") || o == nil || !isLegacyPath(pl.makerOf(o))
	})
}

// ownBroadcaster reports whether the value of an option is a broadcaster that the program
// constructs with package record, which becomes compat/record, or one of compat.
func (pl *planner) ownBroadcaster(o *option) bool {
	return slices.Contains([]string{recordPath, dropInPath, compatPath, ManagerPath}, pl.makerOf(o))
}

// makerOf returns the path of the package that constructs the value of an option, or "".
func (pl *planner) makerOf(o *option) string {
	e := o.value
	if id, ok := ast.Unparen(e).(*ast.Ident); ok && o.fun != nil {
		if v, ok := o.file.Pkg.Info.Uses[id].(*types.Var); ok {
			if value, _ := assigned(o.file.Pkg.Info, o.fun, v); value != nil {
				e = value
			}
		}
	}
	if call, ok := ast.Unparen(e).(*ast.CallExpr); ok {
		if fn, ok := ObjectOf(o.file.Pkg.Info, call.Fun).(*types.Func); ok && fn.Pkg() != nil {
			return fn.Pkg().Path()
		}
	}
	return ""
}

// options returns the literal of the options of a manager, or nil.
func (m *creation) options() *ast.CompositeLit {
	if m.call == nil || len(m.call.Args) != 2 {
		return nil
	}
	lit, _ := m.call.Args[1].(*ast.CompositeLit)
	return lit
}

// moveCreations writes the edits of managers and clusters. Those that stay are in the report
// of origins.
func (pl *planner) moveCreations() {
	for _, m := range pl.created {
		if m.why != "" {
			continue
		}
		// Legacy recorders distinguish events by their messages, and others do not. A broadcaster
		// of compat/record does it for both, and writes with the role of the legacy ones.
		if m.old || pl.Target == EventSeries && pl.gives(m, false) && pl.optionOf(m) == nil {
			text := "set Options.EventBroadcaster to record.NewBroadcaster() of compat/record"
			switch place := pl.place(m); {
			case pl.gives(m, true) || m.by == "NewCluster":
				pl.note(m.call.Pos(), "messages", Decide, "the messages of its events distinguish them no longer: pass a broadcaster with the option DistinctNotes in place of nil")
			case place == nil:
				pl.note(m.call.Pos(), "messages", Decide, "the messages of its events distinguish them no longer: %s", text)
			default:
				pl.setBroadcaster(m, place)
			}
		}
		if m.old {
			pl.note(m.call.Pos(), "shutdown", Decide, notShutDown)
			continue
		}
		before := m.call.Args[len(m.call.Args)-1] // of the broadcaster
		if m.by == "NewCluster" {
			before = m.call.Args[0]
		}
		pl.edit(m.file, m.expr.Pos(), m.expr.End(), m.call.Lparen, qualify(ManagerPath)+m.by)
		pl.edit(m.file, before.End(), before.End(), m.call.Lparen, ", nil")
		pl.note(m.call.Pos(), "manager", Moved, "controllerruntime.%s", m.by)
		pl.plan.Managers = true
	}
}

// place returns where a manager can get a broadcaster: the literal of its options, or the
// statement that uses a variable with them. It returns nil if there is neither.
func (pl *planner) place(m *creation) ast.Node {
	if lit := m.options(); lit != nil {
		return lit
	}
	if len(m.call.Args) != 2 || !m.file.Pkg.Info.Types[m.call.Args[1]].Addressable() || hasCall(m.call.Args[1]) {
		return nil
	}
	for i, n := range slices.Backward(m.list) {
		switch n.(type) {
		case *ast.BlockStmt, *ast.CaseClause, *ast.CommClause:
			if i+1 < len(m.list) {
				return m.list[i+1]
			}
		}
	}
	return nil
}

// setBroadcaster gives a manager a broadcaster of compat/record.
func (pl *planner) setBroadcaster(m *creation, place ast.Node) {
	const why = " //nolint:staticcheck // so that each message gets an Event"
	value := qualify(dropInPath) + "NewBroadcaster()"
	pl.note(m.call.Pos(), "messages", Moved, "Options.EventBroadcaster, with an Event for each of ten messages, as before")
	var at token.Pos
	var text string
	switch lit, ok := place.(*ast.CompositeLit); {
	case !ok:
		options := ast.Unparen(m.call.Args[1])
		if star, ok := options.(*ast.StarExpr); ok {
			options = star.X
		}
		at, text = place.Pos(), m.file.text(options)+".EventBroadcaster = "+value+why+"\n"
	case pl.Fset.Position(lit.Lbrace).Line < pl.Fset.Position(lit.Rbrace).Line:
		at, text = m.file.restOfLine(lit.Lbrace+1), "\n\tEventBroadcaster: "+value+","+why
	default:
		at, text = lit.Lbrace+1, "EventBroadcaster: "+value+", "
	}
	pl.edit(m.file, at, at, m.call.Lparen, text)
}
