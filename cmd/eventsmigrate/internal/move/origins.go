package move

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"slices"
	"strings"
)

// origin is where recorders come from, apart from broadcasters that move: a manager, or
// code outside of the program.
type origin struct {
	pos   token.Pos // of the first use
	calls map[token.Pos]bool
}

// The keys of the origins of all recorders of managers and clusters, and of those that nothing
// here creates.
const (
	managers = "managers"
	notOurs  = "managers of others"
)

// findOrigins finds where the legacy recorders of calls come from. It ignores tests, and
// follows recorders through sets that adapters will separate.
func (pl *planner) findOrigins() {
	saved := pl.parent
	pl.parent = maps.Clone(saved)
	defer func() { pl.parent = saved }()
	for _, f := range pl.flows {
		if len(f.dst.nodes) > 0 && len(f.src.nodes) > 0 {
			pl.union(f.dst.nodes[0], f.src.nodes[0])
		}
	}
	pl.from = map[string]*origin{}
	names := map[node][]string{} // by set
	add := func(name string, pos token.Pos, f *File, r ref) {
		if f.isTest() {
			return
		}
		o := pl.from[name]
		if o == nil {
			o = &origin{pos: pos, calls: map[token.Pos]bool{}}
			pl.from[name] = o
		}
		if pl.compare(pos, o.pos) < 0 {
			o.pos = pos
		}
		if n, ok := pl.root(r); ok && !slices.Contains(names[n], name) {
			names[n] = append(names[n], name)
		}
	}
	for n, m := range pl.places {
		if m.origin != "" {
			add(pl.originOf(m.origin, n), n, m.file, ref{nodes: []node{n}})
		}
	}
	for _, f := range pl.flows {
		if f.src.fixed != "" {
			add(pl.originOf(f.src.fixed, lparen(f.expr)), f.expr.Pos(), f.file, f.dst)
		}
	}
	for _, c := range pl.calls {
		if c.own || c.file.isTest() {
			continue
		}
		if c.recv.fixed != "" {
			name := pl.originOf(c.recv.fixed, lparen(c.sel.X))
			add(name, c.expr.Pos(), c.file, c.recv)
			pl.from[name].calls[c.expr.Lparen] = true
		}
		if n, ok := pl.root(c.recv); ok {
			for _, name := range names[n] {
				pl.from[name].calls[c.expr.Lparen] = true
			}
		}
	}
}

// originOf returns the key of an origin, which can be the call at a position.
func (pl *planner) originOf(fixed string, call token.Pos) string {
	switch {
	case pl.notOurs[call]:
		return notOurs
	case strings.HasSuffix(fixed, ").GetEventRecorderFor"):
		return managers
	}
	return fixed
}

// lparen returns the position of a call, or none for another expression.
func lparen(e ast.Expr) token.Pos {
	if call, ok := ast.Unparen(e).(*ast.CallExpr); ok {
		return call.Lparen
	}
	return token.NoPos
}

// reportOrigins reports the recorders that go on through that of client-go, and how many
// calls they have.
func (pl *planner) reportOrigins() {
	const unless = ", unless the context has a recorder of this project (docs/migration.md#knative)"
	stays, users, unclear := map[token.Pos]bool{}, map[token.Pos]bool{}, map[token.Pos]bool{}
	for _, name := range slices.Sorted(maps.Keys(pl.from)) {
		switch o, ofKnative := pl.from[name], strings.HasPrefix(name, "knative.dev/"); {
		case name == notOurs:
			unclear = o.calls
		case name == managers, ofKnative && pl.sources.knative:
			maps.Copy(users, o.calls)
		case !strings.Contains(name, projectPath+"/"):
			text := fmt.Sprintf("the recorder comes from %s, which is outside of the program: %s", name, others(len(o.calls)))
			if ofKnative {
				text += unless
			}
			pl.note(o.pos, "recorder", Left, "%s", text)
			maps.Copy(stays, o.calls)
		}
	}
	if pl.sources.impl.IsValid() && !pl.sources.knative {
		pl.note(pl.sources.impl, "recorder", Left, "reconcilers that knative generates emit the events that they return through the recorder of client-go"+unless)
		pl.plan.Stock = true
	}
	if slices.ContainsFunc(pl.gets, func(g get) bool { return g.structured && !pl.notOurs[g.pos] }) {
		for _, pos := range pl.newCalls {
			users[pos] = true
		}
	}
	for _, m := range pl.created {
		if m.why == "" {
			continue
		}
		pl.note(m.expr.Pos(), "manager", Left, "%s: %s. Until then, %s", m.name, m.why, others(len(users)))
		maps.Copy(stays, users)
		pl.plan.Stock = true
	}
	if len(pl.notOurs) > 0 {
		first := slices.MinFunc(slices.Collect(maps.Keys(pl.notOurs)), pl.compare)
		pl.note(first, "manager", Decide, "nothing here creates the manager: unless it is from controllerruntime.NewManager or Wrap, its recorders are those of client-go")
	}
	pl.moveClients()
	pl.plan.swap[recordPath] = !pl.plan.Stock && len(stays) == 0 || pl.plan.Managers || len(pl.broadcasters) > 0 ||
		slices.ContainsFunc(pl.created, func(m *creation) bool { return m.why == "" })
	for at, moves := range pl.counted {
		if (moves || users[at]) && !stays[at] && !unclear[at] {
			pl.plan.Calls.Series++
		}
	}
	pl.plan.Others = len(stays)
	pl.plan.Stock = pl.plan.Stock || len(stays) > 0
}

// moveClients moves the broadcasters of client-go's package events, by their import.
func (pl *planner) moveClients() {
	for pos, m := range pl.sources.client {
		f := pl.fileOf(pos)
		switch why := cmp.Or(pl.blocked[imports], f.Skip); {
		case why != "" || f.Outside:
			why = cmp.Or(why, notNamed)
			pl.note(pos, "recorder", Left, "the broadcaster is that of client-go's package events: %s. Until its import changes, %s", why, others(len(pl.newCalls)))
			pl.plan.Stock = true
		default:
			pl.note(pos, "recorder", Moved, "the broadcaster is that of %s", eventsPath)
			pl.plan.swap[clientPath] = true
			pl.newSink(f, m)
		}
	}
	for _, at := range pl.newCalls {
		if _, ok := pl.counted[at]; !ok && pl.plan.swap[clientPath] && !pl.plan.Stock {
			pl.counted[at] = true
			pl.plan.Calls.All++
		}
	}
}

func others(n int) string {
	if n == 1 {
		return "1 call uses the recorder of client-go"
	}
	return fmt.Sprintf("%d calls use the recorder of client-go", n)
}
