package move

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"

	"github.com/eventseries/eventseries/cmd/eventsmigrate/internal/rbac"
)

// sources are the recorders of a program before the move, apart from legacy ones and tests.
type sources struct {
	group   bool                // of events.k8s.io: broadcasters
	managed bool                // structured ones of managers of controller-runtime
	client  map[token.Pos]maker // the broadcasters of client-go's package events
	knative bool                // contexts of knative have recorders of this project
	impl    token.Pos           // of a reconciler that knative generates, which emits what it returns
}

// maker is a call that makes a broadcaster, and the function around it, or nil.
type maker struct {
	call *ast.CallExpr
	fun  *ast.FuncDecl
}

// permissions reports the rules that the program lacks, in markers and in Go code. The
// broadcasters of compat/record write with the role that the program has.
func (pl *planner) permissions() {
	var all []*ast.Comment
	var texts []string
	for _, f := range pl.Files {
		if f.Skip != "" || f.Outside || f.isTest() {
			continue
		}
		for _, g := range f.AST.Comments {
			for _, c := range g.List {
				all, texts = append(all, c), append(texts, c.Text)
			}
		}
	}
	pl.plan.Group = pl.sources.group || pl.sources.managed && !pl.managersWriteCore()
	for _, m := range rbac.Markers(texts, pl.plan.Group) {
		pl.note(all[m.Index].Pos(), "RBAC", Decide, "%s", m.Text)
	}
	for pos, r := range pl.roles {
		has := func(is func(*role) bool) bool {
			return slices.ContainsFunc(slices.Collect(maps.Values(pl.roles)), func(o *role) bool { return o.list == r.list && is(o) })
		}
		complete := has(func(o *role) bool { return rbac.Has(o.groups, rbac.Group, "*") })
		switch {
		case !rbac.Has(r.groups, "", "core", rbac.Group, "*"):
		case !has(func(o *role) bool { return rbac.Has(o.verbs, "patch", "*") }):
			pl.note(pos, "RBAC", Decide, "if this is a role of the program, add patch to the verbs: a series needs it")
		case pl.plan.Group && !complete:
			pl.note(pos, "RBAC", Decide, "if this is a role of the program, which writes events of the group events.k8s.io, too, add:\n"+
				`{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},`)
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

// source records a call that returns a recorder or a broadcaster, apart from legacy ones.
func (c *collector) source(n *ast.CallExpr, fn *types.Func) {
	if fn.Pkg() == nil {
		return
	}
	path, sig := fn.Pkg().Path(), fn.Signature()
	switch {
	case fn.Name() == "GetEventRecorder" && sig.Results().Len() == 1 && !mentions(sig.Results().At(0).Type()):
		c.sources.managed = true
	case path == compatPath+"/knative":
		c.sources.knative = true
	case fn.Name() == "NewImpl" && strings.Contains(path, "/reconciler/") && fn.Pkg() != c.pkg.Types:
		c.sources.impl = n.Pos()
	case (path == clientPath || path == eventsPath) && MakesBroadcaster(fn):
		if path == clientPath {
			c.sources.client[n.Pos()] = maker{n, c.fun()}
		}
		c.sources.group = c.sources.group || len(n.Args) == 0 || !isOneOf(c.info.TypeOf(n.Args[0]), compatPath, "CoreSink")
	}
}
