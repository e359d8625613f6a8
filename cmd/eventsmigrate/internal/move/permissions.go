package move

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"

	"golang.org/x/tools/go/types/typeutil"

	"github.com/eventseries/eventseries/cmd/eventsmigrate/internal/rbac"
)

// sources are the recorders that a program has before the move, apart from legacy ones. It
// ignores those of tests.
type sources struct {
	group bool // of events.k8s.io: broadcasters, and managers of controller-runtime
	core  bool // of events.k8s.io, on a broadcaster that writes to the core group
	types bool // the program names their types

	series bool      // a manager emits series
	client token.Pos // of a broadcaster of client-go's package events
}

// needs tells in which groups the program writes events after the move.
func (pl *planner) needs() rbac.Needs {
	s := pl.sources
	n := rbac.Needs{Core: s.core}
	if pl.Target != Record {
		// Without a broadcaster, the caller of the program has it.
		n.New = s.group || s.types && !s.core
	}
	sourced := map[node]bool{}
	add := func(n2 node, f *File) {
		if f.Outside || f.isTest() {
			return
		}
		if set, ok := pl.moves(ref{nodes: []node{n2}}); pl.Target != Record && ok {
			n.New, sourced[set] = true, true
		} else {
			n.Core = true
		}
	}
	for _, c := range pl.constructors {
		if c.kind == broadcaster {
			add(c.node, c.file)
		}
	}
	for _, l := range pl.lookups {
		add(l.node, l.file)
	}
	for _, u := range pl.uses {
		set, ok := pl.moves(ref{nodes: []node{u.node}})
		if u.method != "NewRecorder" || !ok || u.file.isTest() {
			continue
		}
		if b, ok := pl.moves(u.recv); ok {
			add(b, u.file)
		}
		sourced[set] = true // else a broadcaster of compat/record has it
	}
	for _, o := range pl.occurrences {
		if set, ok := pl.moves(ref{nodes: []node{o.expr.Pos()}}); o.kind != fake && (!ok || !sourced[set]) {
			add(o.expr.Pos(), o.file)
		}
	}
	n.Core = n.Core || n.New && pl.leaderElection
	return n
}

// markers changes the markers of kubebuilder.
func (pl *planner) markers() {
	needs := pl.needs()
	pl.plan.Needs = needs
	pl.reportRoles()
	for _, f := range pl.Files {
		if f.Skip != "" || f.Outside || f.isTest() {
			continue
		}
		var comments []*ast.Comment
		var texts []string
		for _, g := range f.AST.Comments {
			for _, c := range g.List {
				comments = append(comments, c)
				texts = append(texts, c.Text)
			}
		}
		for i, lines := range rbac.Markers(texts, needs) {
			c := comments[i]
			if len(lines) == 0 { // another marker grants it
				pl.edit(f, f.lineStart(c.Pos()), f.lineEnd(c.End()), 0, "")
			} else {
				pl.edit(f, c.Pos(), c.End(), 0, strings.Join(lines, "\n"))
			}
			for i := range lines {
				lines[i] = strings.TrimPrefix(strings.TrimLeft(lines[i], "/ "), "+kubebuilder:rbac:")
			}
			pl.note(c.Pos(), "RBAC", Moved, "%s", strings.Join(lines, " and "))
		}
	}
}

// role is a rule of a role in Go code that permits writing events.
type role struct {
	list          ast.Node // around the rule
	groups, verbs []string
}

// role records a literal of rbacv1.PolicyRule.
func (c *collector) role(n *ast.CompositeLit, t types.Type) {
	if c.file.isTest() || !isOneOf(t, "k8s.io/api/rbac/v1", "PolicyRule") {
		return
	}
	fields := map[string][]string{}
	for _, e := range n.Elts {
		kv, ok := e.(*ast.KeyValueExpr)
		if !ok {
			return
		}
		list, ok := ast.Unparen(kv.Value).(*ast.CompositeLit)
		if !ok {
			continue
		}
		for _, item := range list.Elts {
			name := kv.Key.(*ast.Ident).Name
			fields[name] = append(fields[name], StringOf(c.info, valueOf(item)))
		}
	}
	r := &role{n, fields["APIGroups"], fields["Verbs"]}
	if len(c.stack) > 0 {
		r.list = c.stack[len(c.stack)-1]
	}
	if rbac.Has(fields["Resources"], "events", "*") && rbac.Writes(r.verbs) {
		c.roles[n.Pos()] = r
	}
}

// reportRoles reports the roles in Go code that lack a permission for the new group.
func (pl *planner) reportRoles() {
	const group = "events.k8s.io"
	for pos, r := range pl.roles {
		switch {
		case rbac.Has(r.groups, group) && !rbac.Has(r.verbs, "patch", "*"):
			pl.note(pos, "RBAC", Decide, "the rule for events in Go code lacks the verb patch")
		case !pl.plan.Needs.New || rbac.Has(r.groups, group, "*"):
		case rbac.Has(r.groups, "") && !slices.ContainsFunc(slices.Collect(maps.Values(pl.roles)), func(o *role) bool { return o.list == r.list && rbac.Has(o.groups, group, "*") }):
			pl.note(pos, "RBAC", Decide, "the rule for events in Go code is for the core group: add one for the group %s with create and patch", group)
		}
	}
}

// observe finds out whether a file uses leader election or a new recorder.
func (c *collector) observe(f *ast.File) {
	for _, s := range f.Imports {
		switch strings.Trim(s.Path.Value, `"`) {
		case "k8s.io/client-go/tools/leaderelection", "k8s.io/client-go/tools/leaderelection/resourcelock":
			c.leaderElection = true
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			id, ok := n.Key.(*ast.Ident)
			if !ok || id.Name != "LeaderElection" {
				return true
			}
			if v := c.info.Types[n.Value].Value; v == nil || v.Kind() != constant.Bool || constant.BoolVal(v) {
				c.leaderElection = true
			}
		case *ast.Ident:
			if t, ok := c.info.Uses[n].(*types.TypeName); ok && !c.file.isTest() && isNewRecorder(t) {
				c.sources.types = true
			}
		case *ast.CallExpr:
			if fn, ok := typeutil.Callee(c.info, n).(*types.Func); ok && !c.file.isTest() {
				c.source(n, fn)
			}
			sel, ok := n.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if slices.Contains([]string{"On", "AssertCalled", "AssertNotCalled", "AssertNumberOfCalls", "MethodCalled"}, sel.Sel.Name) {
				for _, a := range n.Args {
					if lit, ok := a.(*ast.BasicLit); ok && slices.Contains([]string{`"Event"`, `"Eventf"`, `"AnnotatedEventf"`}, lit.Value) {
						c.expectations = append(c.expectations, lit.Pos())
					}
				}
			}
		}
		return true
	})
}

// isNewRecorder reports whether a type emits events to events.k8s.io.
func isNewRecorder(t *types.TypeName) bool {
	if t.Pkg() == nil || t.Pkg().Path() != clientPath && t.Pkg().Path() != eventsPath {
		return false
	}
	return t.Name() != "FakeRecorder" && (strings.HasSuffix(t.Name(), "Recorder") || strings.HasSuffix(t.Name(), "RecorderLogger") || strings.Contains(t.Name(), "Broadcaster"))
}

// source records a call that returns a recorder or a broadcaster, apart from legacy ones.
func (c *collector) source(n *ast.CallExpr, fn *types.Func) {
	path := ""
	if fn.Pkg() != nil {
		path = fn.Pkg().Path()
	}
	sig := fn.Signature()
	switch {
	case fn.Name() == "GetEventRecorder" && sig.Results().Len() == 1 && !mentions(sig.Results().At(0).Type()):
		c.sources.group = true
	case fn.Name() == "Events" && isDropIn(c.info, n):
		c.sources.core = true
	case path == managerPath && sig.Recv() == nil:
		c.sources.series = true
		if broadcasterOf(n) != nil && c.info.Types[broadcasterOf(n)].IsNil() {
			c.sources.group = true // a broadcaster of its own
		}
	case sig.Recv() != nil || path != clientPath && path != eventsPath && path != compatPath:
	case strings.HasPrefix(fn.Name(), "NewBroadcasterFor"): // another broadcaster
	case strings.HasPrefix(fn.Name(), "NewBroadcaster"), strings.HasPrefix(fn.Name(), "NewEventBroadcaster"):
		if path == clientPath && fn.Name() == "NewBroadcaster" && c.file.Skip == "" && !c.sources.client.IsValid() {
			c.sources.client = n.Pos()
		}
		if len(n.Args) > 0 && isOneOf(c.info.TypeOf(n.Args[0]), compatPath, "CoreSink") {
			c.sources.core = true
		} else {
			c.sources.group = true
		}
	}
}

// broadcasterOf returns the broadcaster that a function of controllerruntime gets, or nil.
func broadcasterOf(n *ast.CallExpr) ast.Expr {
	o, _ := ast.Unparen(n.Fun).(*ast.SelectorExpr)
	if o != nil && o.Sel.Name == "NewCluster" && len(n.Args) > 1 {
		return n.Args[1]
	}
	if len(n.Args) == 0 {
		return nil
	}
	return n.Args[len(n.Args)-1]
}

// isDropIn reports whether a call is of a method of the broadcaster of compat/record.
func isDropIn(info *types.Info, n *ast.CallExpr) bool {
	sel, ok := ast.Unparen(n.Fun).(*ast.SelectorExpr)
	return ok && isOneOf(info.TypeOf(sel.X), dropInPath, "Broadcaster")
}

// BlockExported leaves the sets that other packages can see.
func (p *Program) BlockExported(pkg *Package) {
	if pkg.Types.Name() == "main" {
		return
	}
	for _, f := range pkg.Files {
		if strings.HasSuffix(p.Fset.File(f.FileStart).Name(), "_test.go") {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Name.IsExported() {
					p.blockExported(n.Name.Pos())
					p.blockFields(n.Type.Params)
					p.blockFields(n.Type.Results)
				}
			case *ast.StructType:
				for _, field := range n.Fields.List {
					for _, name := range field.Names {
						if name.IsExported() {
							p.blockExported(name.Pos())
						}
					}
					if len(field.Names) == 0 {
						p.blockExported(field.Type.Pos())
					}
				}
			case *ast.InterfaceType:
				for _, m := range n.Methods.List {
					for _, name := range m.Names {
						p.blockExported(name.Pos())
					}
					if t, ok := m.Type.(*ast.FuncType); ok {
						p.blockFields(t.Params)
						p.blockFields(t.Results)
					}
				}
			case *ast.TypeSpec:
				if n.Name.IsExported() {
					p.blockExported(n.Name.Pos())
				}
			case *ast.ValueSpec:
				for _, name := range n.Names {
					if name.IsExported() {
						p.blockExported(name.Pos())
					}
				}
			}
			return true
		})
	}
}

func (p *Program) blockFields(list *ast.FieldList) {
	if list == nil {
		return
	}
	for _, f := range list.List {
		for _, name := range f.Names {
			p.blockExported(name.Pos())
		}
		if len(f.Names) == 0 {
			p.blockExported(f.Type.Pos())
		}
	}
}

func (p *Program) blockExported(pos token.Pos) {
	p.block(pos, Reason{pos, "other packages can use it", false, false})
}
