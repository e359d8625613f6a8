package move

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/types/typeutil"

	"github.com/eventseries/eventseries/cmd/eventsmigrate/internal/rbac"
	"github.com/eventseries/eventseries/cmd/eventsmigrate/internal/verb"
)

// Status is what happened to a place.
type Status string

// The statuses.
const (
	Moved  Status = "moved"
	Left   Status = "left"
	Decide Status = "decide" // a person must decide
)

// Item is a line of the report.
type Item struct {
	Pos    token.Pos
	Rule   string
	Status Status
	Text   string
	Call   bool // counts as a call
}

// edit replaces source.
type edit struct {
	pos, end token.Pos
	text     string // may contain qualifiers, see qualify
	set      node
}

// Plan is what a move changes.
type Plan struct {
	Items []Item
	Calls struct{ Moved, Left int }
	// Stock reports whether events of the program certainly go on through the recorder of
	// client-go, and Others is the number of calls that do.
	Stock  bool
	Others int
	Needs  rbac.Needs
	// Seen are the packages whose files other than tests change, or contain a type that
	// does: their importers may have to change, too.
	Seen map[string]bool
	// Unused are the reasons in Actions that no call has.
	Unused []string

	managers  bool // the result imports ManagerPath
	swap      bool // an import of compat/record instead of package record has an effect
	edits     map[*File][]edit
	constants map[*File][]todo
	moves     map[token.Pos]bool // variables, types and methods
}

// todo is a constant for an action that a person must name.
type todo struct {
	name, reason string
	files        []*File // that use it
}

// planner makes a Plan.
type planner struct {
	*Program
	Options
	plan *Plan

	left      map[node][]Reason // by root
	bridges   map[*flow]bool
	clients   map[node]map[token.Pos]string // of broadcasters that move, by root and constructor
	legacy    map[node]bool                 // the sets that contain a legacy type
	annotated map[node]bool                 // the sets that emit annotations
	warned    map[*File]bool                // about hand-written recorders that compat adapts
	todos     map[string]*todo
	todoOrder []*todo
	todoNames map[*types.Package]map[string]bool
	created   []*creation
	given     bool // a manager before v0.23 has a broadcaster of the program
	from      map[string]*origin
}

// qualify returns a placeholder for the name of an import, which the file decides.
func qualify(path string) string { return "\x01" + path + "\x02" }

// Plan decides what moves. Blocked are places that must stay, with the reasons.
func (p *Program) Plan(opts Options, blocked map[token.Pos]string) *Plan {
	pl := &planner{
		Program: p, Options: opts,
		plan: &Plan{edits: map[*File][]edit{}, constants: map[*File][]todo{}},
		left: map[node][]Reason{}, annotated: map[node]bool{}, warned: map[*File]bool{},
		bridges: map[*flow]bool{}, clients: map[node]map[token.Pos]string{}, todos: map[string]*todo{}, todoNames: map[*types.Package]map[string]bool{},
	}
	pl.findOrigins()
	if opts.Target == Record {
		pl.planCreations(blocked)
		pl.moveCreations()
		pl.reportOrigins()
		pl.markers()
		pl.sort()
		return pl.plan
	}
	saved := maps.Clone(p.parent)
	defer func() { p.parent = saved }()

	for _, reason := range slices.Sorted(maps.Keys(opts.Actions)) {
		if !p.reasons[reason] {
			pl.plan.Unused = append(pl.plan.Unused, reason)
		}
	}
	pl.decide(blocked)
	pl.types()
	for _, u := range sorted(p, pl.uses) {
		pl.use(u)
	}
	pl.lookUps()
	for _, c := range sorted(p, p.calls) {
		pl.call(c)
	}
	for _, v := range sorted(p, p.values) {
		pl.value(v)
	}
	pl.methodDecls()
	pl.mocks()
	pl.pending()
	pl.assertions()
	pl.reads()
	bridged := map[token.Pos]bool{} // test variants have the same flows
	for i := range p.flows {
		if f := &p.flows[i]; pl.bridges[f] && !bridged[f.expr.Pos()] {
			bridged[f.expr.Pos()] = true
			pl.bridge(f)
		}
	}
	pl.moveCreations()
	pl.broadcasters()
	pl.placeConstants()
	pl.markers()
	pl.reportLeft()
	pl.reportOrigins()
	pl.sort()
	pl.see()
	return pl.plan
}

// see finds the packages with something that moves.
func (pl *planner) see() {
	pl.plan.Seen = map[string]bool{}
	add := func(f *File) {
		if f != nil && !f.isTest() {
			pl.plan.Seen[f.Pkg.Path] = true
		}
	}
	pl.plan.moves = map[token.Pos]bool{}
	for n := range pl.parent {
		if _, ok := pl.moves(ref{nodes: []node{n}}); ok {
			pl.plan.moves[n], pl.plan.moves[pl.find(n)] = true, true
			add(pl.fileOf(n))
		}
	}
	for f := range pl.plan.edits {
		add(f)
	}
}

// sorted returns the values in the order of their files. Positions do not order files,
// which parse concurrently.
func sorted[T any](p *Program, m map[token.Pos]T) (list []T) {
	for _, k := range slices.SortedFunc(maps.Keys(m), p.compare) {
		list = append(list, m[k])
	}
	return list
}

func (pl *planner) sort() {
	slices.SortStableFunc(pl.plan.Items, func(a, b Item) int { return pl.compare(a.Pos, b.Pos) })
}

func (pl *planner) note(pos token.Pos, rule string, s Status, format string, args ...any) {
	pl.plan.Items = append(pl.plan.Items, Item{Pos: pos, Rule: rule, Status: s, Text: fmt.Sprintf(format, args...)})
}

func (pl *planner) edit(f *File, pos, end token.Pos, set node, text string) {
	pl.plan.edits[f] = append(pl.plan.edits[f], edit{pos, end, text, set})
}

func (pl *planner) textEdits(f *File, edits []analysis.TextEdit, set node) {
	for _, e := range edits {
		pl.edit(f, e.Pos, e.End, set, string(e.NewText))
	}
}

// root returns the set of a ref. It returns false if code outside of the program
// determines the type alone.
func (pl *planner) root(r ref) (node, bool) {
	if len(r.nodes) == 0 {
		return 0, false
	}
	return pl.find(r.nodes[0]), true
}

// moves reports whether the set of a ref moves.
func (pl *planner) moves(r ref) (node, bool) {
	n, ok := pl.root(r)
	if !ok {
		return 0, false
	}
	_, left := pl.left[n]
	return n, !left
}

func (pl *planner) leave(n node, r Reason) {
	n = pl.find(n)
	pl.left[n] = append(pl.left[n], r)
}

// decide determines the sets, and which of them stay.
func (pl *planner) decide(blocked map[token.Pos]string) {
	pl.uniteBroadcasters()
	b := pl.findBorders(blocked)
	pl.uniteFlows(b)
	pl.uniteHandWritten(b)
	pl.leaveSets()
	pl.leaveOutside()
	pl.planSinks()
	pl.propagate(b.bridge)
}

// uniteBroadcasters unites recorders with their broadcasters, unless they can move apart.
func (pl *planner) uniteBroadcasters() {
	if pl.Target == EventSeries {
		return
	}
	for _, u := range sorted(pl.Program, pl.uses) {
		if u.method != "NewRecorder" {
			continue
		}
		if len(u.recv.nodes) > 0 {
			pl.union(u.node, u.recv.nodes[0])
		} else {
			pl.block(u.node, Reason{u.call.Pos(), u.recv.fixed + " determines the type", true, true})
		}
	}
}

// borders says where sets end. Sets that only code outside of the program holds back adapt
// at their borders, if compat can adapt them. All others stay as a whole, so they unite.
type borders struct {
	*planner

	bridge  bool          // compat can adapt a set
	hard    map[node]bool // sets that something in the program holds back
	outside map[node]bool // sets that only code outside of the program holds back
}

// findBorders finds what holds back each set.
func (pl *planner) findBorders(blocked map[token.Pos]string) *borders {
	b := &borders{planner: pl, bridge: pl.Target == EventSeries, hard: map[node]bool{}, outside: map[node]bool{}}
	inside := func(r Reason) bool { return !r.Outside }
	for n, rs := range pl.why {
		if slices.ContainsFunc(rs, inside) {
			b.hard[pl.find(n)] = true
		}
	}
	for pos, text := range blocked {
		b.hard[pl.find(pos)] = true
		pl.leave(pos, Reason{pos, text, false, false})
	}
	pl.leaveFailures(b.hard)
	pl.unsupported(b.hard)
	pl.planCreations(blocked)
	pl.keepFakes()
	for n, rs := range pl.left {
		if !b.hard[n] && !slices.ContainsFunc(rs, inside) {
			b.outside[n] = true
		}
	}
	for n, rs := range pl.why {
		if r := pl.find(n); len(rs) > 0 && !b.hard[r] {
			b.outside[r] = true
		}
	}
	return b
}

// join unites two sets, and what holds them back.
func (b *borders) join(x, y node) {
	hard, outside := b.hard[x] || b.hard[y], b.outside[x] || b.outside[y]
	b.union(x, y)
	root := b.find(x)
	b.hard[root], b.outside[root] = hard, outside
}

// uniteFlows unites what flows connect, unless compat can adapt the flow.
func (pl *planner) uniteFlows(b *borders) {
	for i := range pl.flows {
		f := &pl.flows[i]
		d, dok := pl.root(f.dst)
		s, sok := pl.root(f.src)
		if f.handWritten || !dok || !sok {
			continue
		}
		if b.bridge && (b.outside[d] || b.outside[s]) && d != s {
			continue
		}
		b.join(d, s)
	}
}

// uniteHandWritten does the same for hand-written recorders. Such a recorder can move
// although a package outside of the patterns passes it to code that stays.
func (pl *planner) uniteHandWritten(b *borders) {
	connected := pl.legacySets()
	for i := range pl.flows {
		f := &pl.flows[i]
		d, dok := pl.root(f.dst)
		s, sok := pl.root(f.src)
		if !f.handWritten || !sok || d == s {
			continue
		}
		if b.bridge && f.file.Skip == "" && (!dok || b.hard[d] || b.outside[d]) && !b.hard[s] && connected[s] {
			continue
		}
		if dok {
			b.join(d, s)
		} else {
			b.hard[s] = true
			pl.leave(s, Reason{f.expr.Pos(), fmt.Sprintf("%s determines the type", f.dst.fixed), true, false})
		}
	}
}

// leaveSets leaves each set for all reasons of its nodes.
func (pl *planner) leaveSets() {
	for n, rs := range pl.why {
		for _, r := range rs {
			pl.leave(n, r)
		}
	}
	rekeyed := map[node][]Reason{}
	for n, rs := range pl.left {
		rekeyed[pl.find(n)] = append(rekeyed[pl.find(n)], rs...)
	}
	pl.left = rekeyed
}

// places yields the nodes that are not variables, and their files.
func (pl *planner) places() iter.Seq2[node, *File] {
	return func(yield func(node, *File) bool) {
		for _, all := range []iter.Seq[node]{
			maps.Keys(pl.occurrences), maps.Keys(pl.methods), maps.Keys(pl.lookups), maps.Keys(pl.constructors), maps.Keys(pl.uses),
		} {
			for n := range all {
				if !yield(n, pl.fileOf(n)) {
					return
				}
			}
		}
	}
}

// leaveFailures leaves what is in a file with a place that the tool could not read.
func (pl *planner) leaveFailures(hard map[node]bool) {
	for n, f := range pl.places() {
		if pl.failures[f] != nil {
			hard[pl.find(n)] = true
			pl.leave(n, *pl.failures[f])
		}
	}
	for _, r := range pl.failures {
		pl.note(r.Pos, "types", Left, "%s", r.Text)
	}
}

// propagate leaves what depends on sets that stay, and finds the flows that compat adapts.
func (pl *planner) propagate(canBridge bool) {
	for changed := true; changed; {
		changed = false
		for i := range pl.flows {
			changed = pl.settle(&pl.flows[i], canBridge) || changed
		}
		for _, u := range sorted(pl.Program, pl.uses) {
			changed = pl.settleUse(u) || changed
		}
	}
	for i := range pl.flows {
		f := &pl.flows[i]
		_, to := pl.moves(f.dst)
		_, from := pl.moves(f.src)
		if !to && from {
			pl.bridges[f] = true
		}
	}
}

// keepFakes leaves the fakes that code outside of the program gets, if the program asserts
// that what such code returns is one.
func (pl *planner) keepFakes() {
	for _, f := range pl.flows {
		if n, ok := pl.root(f.src); ok && pl.asserted && f.fromFake && f.dst.fixed != "" && len(f.dst.nodes) == 0 {
			pl.leave(n, Reason{f.expr.Pos(), f.dst.fixed + " receives the fake, which must be one of package record", true, true})
		}
	}
}

// leaveOutside leaves the other sets of which no place is in a package of the patterns.
func (pl *planner) leaveOutside() {
	inside, outside := map[node]bool{}, map[node]token.Pos{}
	for n, f := range pl.places() {
		if !f.Outside {
			inside[pl.find(n)] = true
		} else if first, ok := outside[pl.find(n)]; !ok || pl.compare(n, first) < 0 {
			outside[pl.find(n)] = n
		}
	}
	for n, pos := range outside {
		if !inside[n] && len(pl.left[n]) == 0 {
			pl.leave(n, Reason{pos, "the package is not among the patterns", true, true})
		}
	}
}

// settle propagates that one side of a flow stays. It reports whether anything changed.
func (pl *planner) settle(f *flow, canBridge bool) bool {
	d, to := pl.moves(f.dst)
	s, from := pl.moves(f.src)
	switch {
	case to && !from && d != 0:
		text := "receives a legacy recorder"
		if f.src.fixed != "" {
			text = fmt.Sprintf("%s returns a legacy recorder", f.src.fixed)
		}
		pl.leave(d, Reason{f.expr.Pos(), text, true, true})
		return true
	case from && !to:
		if canBridge && !f.fake && f.file.Skip == "" {
			return false
		}
		text := "code that stays receives the recorder"
		if f.dst.fixed != "" {
			text = fmt.Sprintf("%s receives the recorder", f.dst.fixed)
		}
		pl.leave(s, Reason{f.expr.Pos(), text, true, false})
		return true
	}
	return false
}

// settleUse propagates from a broadcaster to its recorders.
func (pl *planner) settleUse(u *use) bool {
	if u.method != "NewRecorder" {
		return false
	}
	n, recorderMoves := pl.moves(ref{nodes: []node{u.node}})
	if !recorderMoves {
		return false
	}
	b, ok := pl.moves(u.recv)
	if ok || pl.dropIn(b, u.recv) {
		return false
	}
	why := u.recv.fixed
	if rs := pl.left[b]; why == "" && len(rs) > 0 {
		why = pl.first(rs).Text
	}
	pl.leave(n, Reason{u.call.Pos(), fmt.Sprintf("the broadcaster stays: %s", why), true, true})
	return true
}

// dropIn reports whether a broadcaster that stays is that of compat/record, so that it can
// have new recorders.
func (pl *planner) dropIn(b node, r ref) bool {
	if pl.Target != EventSeries || len(r.nodes) == 0 {
		return false
	}
	for _, reason := range pl.left[b] {
		if reason.In {
			return false
		}
	}
	for _, c := range pl.constructors {
		if c.kind == broadcaster && pl.find(c.node) == b {
			return true
		}
	}
	return false
}

// unsupported blocks sets that use what the target does not have.
func (pl *planner) unsupported(hard map[node]bool) {
	block := func(r ref, reason Reason) {
		if n, ok := pl.root(r); ok {
			hard[n] = true
			pl.leave(n, reason)
		}
	}
	for _, c := range sorted(pl.Program, pl.calls) {
		if c.shape == shapeAnnotated && !c.own && !isNilExpr(c, 1) && !pl.Annotated {
			block(c.recv, Reason{c.expr.Pos(), "the recorder of this client-go has no AnnotatedEventf; client-go v0.37 has it", false, false})
		}
		if c.shape == shapeAnnotated && !c.own && len(c.expr.Args) < 5 {
			block(c.recv, Reason{c.expr.Pos(), "AnnotatedEventf receives the results of a call", false, false})
		}
	}
	for _, v := range sorted(pl.Program, pl.values) {
		switch {
		case v.shape == shapeAnnotated:
			block(v.recv, Reason{v.sel.Pos(), "AnnotatedEventf is used as a value", false, false})
		case hasCall(v.sel.X):
			block(v.recv, Reason{v.sel.Pos(), "a method of the result of a call is used as a value", false, false})
		}
	}
	for _, m := range sorted(pl.Program, pl.methods) {
		self := ref{nodes: []node{m.name.Pos()}}
		switch {
		case m.shape == shapeAnnotated && m.list != nil:
			block(self, Reason{m.name.Pos(), "an interface declares AnnotatedEventf", false, false})
		case m.shape == shapeEvent && m.list == nil && pl.sibling(m, shapeEventf) == nil:
			block(self, Reason{m.name.Pos(), "a type declares Event without Eventf", false, false})
		}
	}
}

// sibling returns the method of another shape of the same type, or nil.
func (pl *planner) sibling(m *method, s shape) *method {
	for _, o := range pl.methods {
		if o.shape != s || o.file.Pkg != m.file.Pkg {
			continue
		}
		if m.list != nil && o.list == m.list {
			return o
		}
		if m.list == nil && o.list == nil && sameType(receiverType(m.fn), receiverType(o.fn)) {
			return o
		}
	}
	return nil
}

func receiverType(f *types.Func) types.Type { return f.Type().(*types.Signature).Recv().Type() }

func sameType(a, b types.Type) bool { return named(a) != nil && named(a) == named(b) }

// named returns the name of a type or of that to which it points, or nil.
func named(t types.Type) *types.TypeName {
	t = types.Unalias(t)
	if p, ok := t.(*types.Pointer); ok {
		t = types.Unalias(p.Elem())
	}
	if n, ok := t.(*types.Named); ok {
		return n.Obj()
	}
	return nil
}

// isOneOf reports whether a type, or that to which it points, has one of the names in a
// package.
func isOneOf(t types.Type, path string, names ...string) bool {
	n := named(t)
	return n != nil && n.Pkg() != nil && n.Pkg().Path() == path && slices.Contains(names, n.Name())
}

func isNilExpr(c *call, i int) bool {
	if i >= len(c.expr.Args) {
		return false
	}
	return c.file.Pkg.Info.Types[c.expr.Args[i]].IsNil()
}

func hasCall(e ast.Expr) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		if _, ok := n.(*ast.CallExpr); ok {
			found = true
		}
		return !found
	})
	return found
}

// path returns the import path of the recorders of the target.
func (pl *planner) path() string {
	if pl.Target == EventSeries {
		return eventsPath
	}
	return clientPath
}

// types moves the occurrences of types and the constructors of fakes.
func (pl *planner) types() {
	for _, o := range sorted(pl.Program, pl.occurrences) {
		if set, ok := pl.moves(ref{nodes: []node{o.expr.Pos()}}); ok && o.file.Skip == "" {
			pl.edit(o.file, o.expr.Pos(), o.expr.End(), set, qualify(pl.path())+o.name)
			pl.note(o.expr.Pos(), "types", Moved, "%s", o.name)
		}
	}
	for _, c := range sorted(pl.Program, pl.constructors) {
		if set, ok := pl.moves(ref{nodes: []node{c.node}}); ok && c.kind == fake {
			pl.edit(c.file, c.call.Fun.Pos(), c.call.Fun.End(), set, qualify(pl.path())+"NewFakeRecorder")
			pl.note(c.call.Pos(), "tests", Moved, "NewFakeRecorder")
		}
	}
}

func (pl *planner) lookUps() {
	for _, l := range sorted(pl.Program, pl.lookups) {
		set, ok := pl.moves(ref{nodes: []node{l.node}})
		if !ok {
			continue
		}
		pl.edit(l.file, l.sel.Sel.Pos(), l.sel.Sel.End(), set, "GetEventRecorder")
		pl.note(l.call.Pos(), "GetEventRecorderFor", Moved, "GetEventRecorder")
		pl.checkName(l.file, l.call.Args[0], "GetEventRecorderFor")
		pl.removeNolint(l.file, l.call, set)
	}
}

var qualifiedName = regexp.MustCompile(`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)

// checkName reports names that the API server rejects as a reporting controller.
func (pl *planner) checkName(f *File, e ast.Expr, rule string) {
	v := f.Pkg.Info.Types[e].Value
	if v == nil || v.Kind() != constant.String {
		return
	}
	if name := constant.StringVal(v); !qualifiedName.MatchString(name) {
		pl.note(e.Pos(), rule, Decide, "%q is not a qualified name, so the API server rejects it as the reporting controller", name)
	}
}

// removeNolint removes the comment that allows the deprecated call.
func (pl *planner) removeNolint(f *File, call *ast.CallExpr, set node) {
	line := pl.Fset.Position(call.Lparen).Line
	start := pl.Fset.Position(call.Pos()).Line
	for _, group := range f.AST.Comments {
		for _, c := range group.List {
			at := pl.Fset.Position(c.Pos()).Line
			alone := strings.TrimSpace(lineBefore(f, c.Pos())) == ""
			if at != line && (!alone || at != start-1) {
				continue
			}
			text, ok := withoutDeprecation(c.Text)
			if !ok {
				continue
			}
			from := c.Pos()
			if text == "" {
				i := f.at(from)
				for i > 0 && (f.Src[i-1] == ' ' || f.Src[i-1] == '\t') {
					i--
				}
				if alone && i > 0 {
					i-- // the line
				}
				from = token.Pos(i + f.offset)
			}
			pl.edit(f, from, c.End(), set, text)
		}
	}
}

func lineBefore(f *File, pos token.Pos) string {
	before := f.Src[:f.at(pos)]
	return string(before[bytes.LastIndexByte(before, '\n')+1:])
}

var (
	nolint     = regexp.MustCompile(`^//\s*nolint:\s*([A-Za-z0-9_, ]+?)\s*(//.*)?$`)
	lintIgnore = regexp.MustCompile(`^//lint:ignore\s+(\S+)\s`)
)

// withoutDeprecation returns a comment without its exception for deprecations. It returns
// false if the comment has none.
func withoutDeprecation(comment string) (string, bool) {
	if m := lintIgnore.FindStringSubmatch(comment); m != nil {
		return "", m[1] == "SA1019"
	}
	m := nolint.FindStringSubmatch(comment)
	if m == nil {
		return comment, false
	}
	var rest []string
	found := false
	for name := range strings.SplitSeq(m[1], ",") {
		switch name = strings.TrimSpace(name); name {
		case "staticcheck", "SA1019", "deprecation", "deprecated":
			found = true
		case "":
		default:
			rest = append(rest, name)
		}
	}
	if !found {
		return comment, false
	}
	if len(rest) == 0 {
		return "", true
	}
	text := "//nolint:" + strings.Join(rest, ",")
	if m[2] != "" {
		text += " " + m[2]
	}
	return text, true
}

// call rewrites a call of Event, Eventf or AnnotatedEventf.
func (pl *planner) call(c *call) {
	set, ok := pl.moves(c.recv)
	if !ok {
		if !c.own && !c.file.Outside {
			pl.plan.Calls.Left++
			pl.plan.Items = append(pl.plan.Items, Item{Pos: c.expr.Pos(), Rule: ruleOf[c.shape], Status: Left, Text: pl.whyLeft(c.recv), Call: true})
		}
		return
	}
	if c.own {
		m := pl.methods[c.recv.nodes[0]]
		if m == nil || !pl.connected(m) || m.list == nil && m.shape != shapeEventf {
			return // the method keeps its signature
		}
	}
	if c.file.Skip != "" {
		return
	}
	pl.plan.Calls.Moved++
	if c.sel == nil || len(c.expr.Args) == 1 { // f(g())
		if c.sel == nil {
			return
		}
		name := pl.actionFor(c.file, c.fun, c.expr.Pos(), "", set)
		pl.edit(c.file, c.sel.Pos(), c.sel.End(), set, pl.adapter(c.file.text(c.sel.X), c.shape, name))
		pl.plan.Items = append(pl.plan.Items, Item{Pos: c.expr.Pos(), Rule: ruleOf[c.shape], Status: Moved, Text: "in a function literal, because it receives the results of a call", Call: true})
		return
	}
	args := c.expr.Args
	reason := 2
	if c.shape == shapeAnnotated {
		reason = 3
		info := c.file.Pkg.Info
		if isNilExpr(c, 1) {
			text := comments(c.file.AST, args[1].Pos(), args[2].Pos())
			if text != "" {
				text += " "
			}
			pl.edit(c.file, args[1].Pos(), args[2].Pos(), set, text)
			pl.edit(c.file, c.sel.Sel.Pos(), c.sel.Sel.End(), set, "Eventf")
		} else if sel := info.Selections[c.sel]; sel == nil || kindOf(receiverType(sel.Obj().(*types.Func))) != fake {
			x := ""
			if sel != nil {
				for _, f := range embedded(sel.Recv(), sel.Index()) {
					x += "." + f.Name()
				}
			}
			if x == "" && isTypeParam(info.TypeOf(c.sel.X)) {
				pl.edit(c.file, c.sel.X.Pos(), c.sel.X.Pos(), set, "any(")
				x = ")"
			}
			pl.edit(c.file, c.sel.X.End(), c.sel.X.End(), set, x+".("+qualify(pl.path())+"AnnotatedEventRecorder)")
			pl.annotated[set] = true
			if !pl.FakeAnnotated && pl.hasType(set, fake) {
				pl.note(c.expr.Pos(), "tests", Decide, "the FakeRecorder of this client-go has no AnnotatedEventf, so this panics in tests with it: use eventstest.NewRecorder")
			}
		}
	}
	if c.shape == shapeEvent {
		pl.edit(c.file, c.sel.Sel.Pos(), c.sel.Sel.End(), set, "Eventf")
		pl.message(c, args[3], set)
	} else {
		pl.format(c, reason+1, set)
	}
	related := pl.relatedOf(c, reason+1)
	text := "nil"
	within := pl.wrapper(c)
	switch {
	case within != nil && pl.isParam(c.file, args[0], within.fn, 0):
		text = "related"
	case related.expr != "" && pl.Related:
		text = related.expr
		pl.note(c.expr.Pos(), "related", Moved, "%s", related.expr)
	case related.unnamed != "":
		pl.note(c.expr.Pos(), "related", Decide, "%s has no UID here: the related object is what the API server returned", related.unnamed)
	case related.expr != "":
		pl.note(c.expr.Pos(), "related", Decide, "%s looks like the related object; -related sets it", related.expr)
	}
	at := c.file.afterComments(args[0].End())
	pl.edit(c.file, at, at, set, ", "+text)
	var action string
	switch {
	case within != nil && pl.isParam(c.file, args[reason], within.fn, 2):
		action = "action"
	case pl.passesReason(c, args[reason]):
		action = c.file.text(args[reason])
	default:
		action = pl.actionFor(c.file, c.fun, args[reason].Pos(), StringOf(c.file.Pkg.Info, args[reason]), set)
	}
	at = c.file.afterComments(args[reason].End())
	pl.edit(c.file, at, at, set, ", "+action)
	pl.plan.Items = append(pl.plan.Items, Item{Pos: c.expr.Pos(), Rule: ruleOf[c.shape], Status: Moved, Text: "action " + action, Call: true})
}

// ruleOf are the rules of the report about calls of methods.
var ruleOf = map[shape]string{shapeEvent: "Event", shapeEventf: "Eventf", shapeAnnotated: "AnnotatedEventf"}

// wrapper returns the method that contains a call, if the method gets the parameters
// related and action.
func (pl *planner) wrapper(c *call) *method {
	if c.fun == nil {
		return nil
	}
	m := pl.methods[c.fun.Name.Pos()]
	if m == nil || m.shape != shapeEventf || !m.canName() {
		return nil
	}
	for _, s := range c.stack {
		if _, ok := s.(*ast.FuncLit); ok {
			return nil
		}
	}
	if _, ok := pl.moves(ref{nodes: []node{m.name.Pos()}}); !ok || !pl.connected(m) {
		return nil
	}
	return m
}

// passesReason reports whether a call is in a method Event or AnnotatedEventf of a
// hand-written recorder, and its reason is that of the method. Its action is the reason,
// as in package compat.
func (pl *planner) passesReason(c *call, reason ast.Expr) bool {
	if c.fun == nil {
		return false
	}
	m := pl.methods[c.fun.Name.Pos()]
	if m == nil || m.shape == shapeEventf {
		return false
	}
	i := 2
	if m.shape == shapeAnnotated {
		i = 3
	}
	return pl.isParam(c.file, reason, m.fn, i)
}

// isParam reports whether e is the i-th parameter of a function.
func (pl *planner) isParam(f *File, e ast.Expr, fn *types.Func, i int) bool {
	id, ok := ast.Unparen(e).(*ast.Ident)
	if !ok {
		return false
	}
	v, ok := f.Pkg.Info.Uses[id].(*types.Var)
	return ok && v.Pos() == fn.Type().(*types.Signature).Params().At(i).Pos()
}

// message turns the message of Event into a format.
func (pl *planner) message(c *call, m ast.Expr, set node) {
	info := c.file.Pkg.Info
	if lits, ok := literals(m); ok {
		for _, lit := range lits {
			src := c.file.text(lit)
			for i := range len(src) {
				if src[i] == '%' {
					at := lit.Pos() + token.Pos(i)
					pl.edit(c.file, at, at, set, "%")
				}
			}
		}
		return
	}
	if tv := info.Types[m]; tv.Value != nil && tv.Value.Kind() == constant.String && !strings.Contains(constant.StringVal(tv.Value), "%") {
		return // a constant
	}
	if s := sprintf(info, m); s != nil {
		pl.textEdits(c.file, Unwrapped(c.file.AST, m, s), set)
		return
	}
	pl.edit(c.file, m.Pos(), m.Pos(), set, `"%s", `)
}

// Unwrapped returns the edits that replace e, which is a call of Sprintf or the same in
// parentheses, by the arguments of the call. They keep the comments.
func Unwrapped(file *ast.File, e ast.Expr, call *ast.CallExpr) []analysis.TextEdit {
	first, last := call.Args[0].Pos(), call.Args[len(call.Args)-1].End()
	if call.Ellipsis.IsValid() {
		last = call.Ellipsis + 3
	}
	return without(file, e, first, last)
}

// without returns the edits that reduce a node to a part of it. They keep the comments.
func without(file *ast.File, n ast.Node, from, to token.Pos) []analysis.TextEdit {
	before, after := comments(file, n.Pos(), from), comments(file, to, n.End())
	if before != "" {
		before += " "
	}
	if after != "" {
		after = " " + after
	}
	return []analysis.TextEdit{{Pos: n.Pos(), End: from, NewText: []byte(before)}, {Pos: to, End: n.End(), NewText: []byte(after)}}
}

// comments returns the comments in a range, without line ends: commas follow.
func comments(file *ast.File, from, to token.Pos) string {
	var list []string
	for _, g := range file.Comments {
		for _, c := range g.List {
			if c.Pos() < from || c.End() > to {
				continue
			}
			text := c.Text
			if line, ok := strings.CutPrefix(text, "//"); ok {
				text = "/*" + strings.ReplaceAll(strings.TrimRight(line, "\r"), "*/", "* /") + " */"
			}
			list = append(list, text)
		}
	}
	return strings.Join(list, " ")
}

// afterComments returns the end of the comments between pos and a comma.
func (f *File) afterComments(pos token.Pos) token.Pos {
	end := pos
	for _, g := range f.AST.Comments {
		for _, c := range g.List {
			if c.Pos() >= end && c.Text[1] == '*' && strings.TrimSpace(string(f.Src[f.at(end):f.at(c.Pos())])) == "" {
				end = c.End()
			}
		}
	}
	return end
}

// literals returns the string literals of which an expression consists. It returns false
// if an escape sequence contains a %.
func literals(e ast.Expr) (list []*ast.BasicLit, ok bool) {
	switch e := ast.Unparen(e).(type) {
	case *ast.BasicLit:
		value, err := strconv.Unquote(e.Value)
		return []*ast.BasicLit{e}, err == nil && strings.Count(value, "%") == strings.Count(e.Value, "%")
	case *ast.BinaryExpr:
		if e.Op != token.ADD {
			return nil, false
		}
		x, xok := literals(e.X)
		y, yok := literals(e.Y)
		return append(x, y...), xok && yok
	}
	return nil, false
}

// Sprintf returns e as a call of fmt.Sprintf with arguments, or nil.
func Sprintf(info *types.Info, e ast.Expr) *ast.CallExpr {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok || len(call.Args) == 0 {
		return nil
	}
	if f, ok := typeutil.Callee(info, call).(*types.Func); ok && f.FullName() == "fmt.Sprintf" {
		return call
	}
	return nil
}

// sprintf is [Sprintf] with a constant format.
func sprintf(info *types.Info, e ast.Expr) *ast.CallExpr {
	call := Sprintf(info, e)
	if call == nil {
		return nil
	}
	if info.Types[call.Args[0]].Value == nil {
		return nil
	}
	if _, tuple := info.TypeOf(call.Args[0]).(*types.Tuple); tuple {
		return nil
	}
	return call
}

// format makes a variable format without arguments an argument.
func (pl *planner) format(c *call, i int, set node) {
	if len(c.expr.Args) == i+1 && c.file.Pkg.Info.Types[c.expr.Args[i]].Value == nil {
		at := c.expr.Args[i].Pos()
		if s := sprintf(c.file.Pkg.Info, c.expr.Args[i]); s != nil {
			pl.message(c, c.expr.Args[i], set)
			return
		}
		pl.edit(c.file, at, at, set, `"%s", `)
	}
}

// value rewrites a method value to a function literal.
func (pl *planner) value(v *value) {
	set, ok := pl.moves(v.recv)
	if !ok {
		return
	}
	if m := pl.methods[v.recv.nodes[0]]; m != nil && (!pl.connected(m) || m.list == nil && m.shape != shapeEventf) {
		return
	}
	name := pl.actionFor(v.file, v.fun, v.sel.Pos(), "", set)
	pl.edit(v.file, v.sel.Pos(), v.sel.End(), set, pl.adapter(v.file.text(v.sel.X), v.shape, name))
	pl.note(v.sel.Pos(), "types", Moved, "the method value %s as a function literal", v.file.text(v.sel))
}

// adapter returns a function literal with the legacy signature.
func (pl *planner) adapter(x string, s shape, action string) string {
	names := []any{"object", "eventtype", "reason", "message", "args"}
	for i, name := range names {
		if regexp.MustCompile(`\b` + name.(string) + `\b`).MatchString(x) {
			names[i] = name.(string) + "2" // it would shadow the recorder
		}
	}
	if s == shapeEvent {
		return fmt.Sprintf("func(%[1]s %[6]sObject, %[2]s, %[3]s, %[4]s string) {\n\t%[7]s.Eventf(%[1]s, nil, %[2]s, %[3]s, %[8]s, \"%%s\", %[4]s)\n}",
			append(names, qualify(runtimePath), x, action)...)
	}
	names[3] = names[3].(string) + "Fmt"
	return fmt.Sprintf("func(%[1]s %[6]sObject, %[2]s, %[3]s, %[4]s string, %[5]s ...any) {\n\t%[7]s.Eventf(%[1]s, nil, %[2]s, %[3]s, %[8]s, %[4]s, %[5]s...)\n}",
		append(names, qualify(runtimePath), x, action)...)
}

// actionFor returns the expression of an action for a reason, which is "" if it is not
// constant.
func (pl *planner) actionFor(f *File, fun *ast.FuncDecl, pos token.Pos, reason string, set node) string {
	if reason != "" {
		if a := pl.Actions[reason]; a != "" {
			return fmt.Sprintf("%q", a)
		}
		if a := verb.Action(reason); isCamelCase(a) {
			return fmt.Sprintf("%q", a)
		}
	}
	base := ""
	if reason != "" {
		base = strings.Join(verb.Words(reason), "")
	} else if fun != nil {
		base = fun.Name.Name
	}
	if !token.IsIdentifier(base) {
		base = "Unknown"
	}
	if r, size := utf8.DecodeRuneInString(base); size > 0 {
		base = string(unicode.ToUpper(r)) + base[size:]
	}
	// Test variants are other packages with the same files.
	key := f.Pkg.Types.Path() + "\x00" + f.AST.Name.Name + "\x00" + reason + "\x00" + base
	t, ok := pl.todos[key]
	if !ok {
		taken := pl.todoNames[f.Pkg.Types]
		if taken == nil {
			taken = map[string]bool{}
			pl.todoNames[f.Pkg.Types] = taken
		}
		name := "action" + base
		for i := 2; taken[name] || pl.declared(f, name); i++ {
			name = fmt.Sprintf("action%s%d", base, i)
		}
		taken[name] = true
		t = &todo{name: name, reason: reason}
		pl.todos[key] = t
		pl.todoOrder = append(pl.todoOrder, t)
		pl.nameAction(pos, reason, name)
	}
	t.files = append(t.files, f)
	return t.name
}

// nameAction asks for the name of an action, which a constant has for now.
func (pl *planner) nameAction(pos token.Pos, reason, constant string) {
	if reason == "" {
		pl.note(pos, "action", Decide, "name the action of a variable reason: the constant %s", constant)
	} else {
		pl.note(pos, "action", Decide, "name the action of the reason %s: the constant %s", word(reason), constant)
	}
}

// pending reports the constants of an earlier run that nobody has named yet.
func (pl *planner) pending() {
	for _, f := range pl.Files {
		if f.Skip != "" || f.Outside {
			continue
		}
		for _, d := range f.AST.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST || g.Doc == nil || len(g.Specs) != 1 {
				continue
			}
			text := strings.TrimSpace(g.Doc.List[len(g.Doc.List)-1].Text)
			name := g.Specs[0].(*ast.ValueSpec).Names[0]
			if text == todoVariable {
				pl.nameAction(name.Pos(), "", name.Name)
			} else if reason, ok := strings.CutPrefix(text, todoReason); ok {
				reason = strings.TrimSuffix(reason, ".")
				if unquoted, err := strconv.Unquote(reason); err == nil {
					reason = unquoted
				}
				pl.nameAction(name.Pos(), reason, name.Name)
			}
		}
	}
}

// isCamelCase reports whether a name is one of an action.
func isCamelCase(name string) bool {
	return name != "" && len(name) <= 128 && !strings.ContainsFunc(name, func(r rune) bool { return r >= 0x80 || r == '_' || !isLetter(byte(r)) })
}

// word quotes a reason that is no name.
func word(reason string) string {
	if isCamelCase(reason) {
		return reason
	}
	return strconv.Quote(reason)
}

// placeConstants declares each constant in the first file that uses it, preferably one
// that is in all builds of the package.
func (pl *planner) placeConstants() {
	rank := func(f *File) int {
		switch {
		case f.isTest():
			return 2
		case f.constrained():
			return 1
		}
		return 0
	}
	for _, t := range pl.todoOrder {
		best := slices.MinFunc(t.files, func(a, b *File) int { return cmp.Or(rank(a)-rank(b), strings.Compare(a.Name, b.Name)) })
		pl.plan.constants[best] = append(pl.plan.constants[best], *t)
	}
}

// declared reports whether a package uses a name.
func (pl *planner) declared(f *File, name string) bool {
	if f.Pkg.Types.Scope().Lookup(name) != nil {
		return true
	}
	found := false
	for _, file := range pl.Files {
		if file.Pkg.Types.Path() != f.Pkg.Types.Path() {
			continue
		}
		ast.Inspect(file.AST, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && id.Name == name {
				found = true
			}
			return !found
		})
	}
	return found
}

// canName reports whether the method can have parameters related and action.
func (m *method) canName() bool {
	if m.body == nil {
		return len(m.decl.Params.List[0].Names) > 0 && m.free("related", "action")
	}
	return m.free("related", "action")
}

func (m *method) free(names ...string) bool {
	ok := true
	check := func(n ast.Node) bool {
		if id, is := n.(*ast.Ident); is && slices.Contains(names, id.Name) {
			ok = false
		}
		return ok
	}
	ast.Inspect(m.decl, check)
	if m.body != nil {
		ast.Inspect(m.body, check)
	}
	return ok
}

// methodDecls gives the methods of moved sets the new signature.
func (pl *planner) methodDecls() {
	for _, m := range sorted(pl.Program, pl.methods) {
		set, ok := pl.moves(ref{nodes: []node{m.name.Pos()}})
		if !ok || m.file.Skip != "" || !pl.connected(m) {
			continue
		}
		if m.list == nil && m.shape != shapeEventf {
			pl.note(m.name.Pos(), "tests", Decide, "a hand-written recorder: callers use Eventf now, and not %s", m.name.Name)
			continue
		}
		if m.shape == shapeEvent {
			if pl.sibling(m, shapeEventf) != nil {
				pl.removeMethod(m, set)
				continue
			}
			pl.edit(m.file, m.name.Pos(), m.name.End(), set, "Eventf")
		}
		pl.resign(m, set)
		if m.list == nil {
			pl.note(m.name.Pos(), "tests", Decide, "a hand-written recorder: Eventf has the new parameters; check what it does with them")
		} else {
			pl.note(m.name.Pos(), "types", Moved, "a method of an interface")
		}
	}
}

// mocks reports expectations that name a method as a string, if a recorder of the package
// moves.
func (pl *planner) mocks() {
	seen := map[token.Pos]bool{}
	for _, pos := range pl.expectations {
		f := pl.fileOf(pos)
		if f == nil || f.Skip != "" || seen[pos] || len(pl.plan.edits[f]) == 0 {
			continue
		}
		seen[pos] = true
		pl.note(pos, "tests", Decide, "an expectation of a mock names a method: callers use Eventf with the parameters related and action")
	}
}

// connected reports whether a legacy recorder is in the set of a method. Hand-written
// recorders that no legacy interface holds stay.
func (pl *planner) connected(m *method) bool {
	if pl.legacy == nil {
		pl.legacy = pl.legacySets()
	}
	return pl.legacy[pl.find(m.name.Pos())]
}

// legacySets returns the sets that contain a legacy recorder.
func (pl *planner) legacySets() map[node]bool {
	sets := map[node]bool{}
	for _, o := range pl.occurrences {
		sets[pl.find(o.expr.Pos())] = true
	}
	for _, l := range pl.lookups {
		sets[pl.find(l.node)] = true
	}
	for _, u := range pl.uses {
		sets[pl.find(u.node)] = true
	}
	return sets
}

func (pl *planner) removeMethod(m *method, set node) {
	for _, f := range m.list.List {
		if len(f.Names) == 1 && f.Names[0] == m.name {
			from, to := f.Pos(), f.End()
			if f.Doc != nil {
				from = f.Doc.Pos()
			}
			if f.Comment != nil {
				to = f.Comment.End()
			}
			pl.edit(m.file, m.file.lineStart(from), m.file.lineEnd(to), set, "")
			pl.note(m.name.Pos(), "types", Moved, "removed the method Event of an interface")
		}
	}
}

// lineStart returns the begin of the line, if only white space is before pos.
func (f *File) lineStart(pos token.Pos) token.Pos {
	before := lineBefore(f, pos)
	if strings.TrimSpace(before) == "" {
		return pos - token.Pos(len(before))
	}
	return pos
}

// lineEnd returns the begin of the next line, if only white space follows pos.
func (f *File) lineEnd(pos token.Pos) token.Pos {
	i := f.at(pos)
	for i < len(f.Src) && (f.Src[i] == ' ' || f.Src[i] == '\t' || f.Src[i] == '\r') {
		i++
	}
	if i < len(f.Src) && f.Src[i] == '\n' {
		return token.Pos(i + 1 + f.offset)
	}
	return pos
}

// resign inserts the parameters related and action.
func (pl *planner) resign(m *method, set node) {
	list := m.decl.Params.List
	object := m.file.text(list[0].Type)
	if len(list[0].Names) == 0 {
		pl.edit(m.file, list[0].End(), list[0].End(), set, ", "+object)
		pl.edit(m.file, list[2].End(), list[2].End(), set, ", string")
		if m.shape == shapeEvent {
			pl.edit(m.file, list[3].End(), list[3].End(), set, ", ...any")
		}
		return
	}
	related, action := "related", "action"
	if !m.canName() {
		related, action = "_", "_"
	}
	pl.edit(m.file, list[0].End(), list[0].End(), set, ", "+related+" "+object)
	var names []*ast.Ident
	for _, f := range list {
		names = append(names, f.Names...)
	}
	pl.edit(m.file, names[2].End(), names[2].End(), set, ", "+action)
	if m.shape == shapeEvent {
		end := list[len(list)-1].End()
		pl.edit(m.file, end, end, set, ", args ...any")
	}
}

// bridge adapts a recorder that moves to code that stays.
func (pl *planner) bridge(f *flow) {
	set, _ := pl.root(f.src)
	pl.edit(f.file, f.expr.Pos(), f.expr.Pos(), set, qualify(compatPath)+"NewRecorder(")
	pl.edit(f.file, f.expr.End(), f.expr.End(), set, ", nil)")
	to := f.dst.fixed
	if to == "" {
		if d, ok := pl.root(f.dst); ok && len(pl.left[d]) > 0 {
			to = pl.first(pl.left[d]).Text
		}
	}
	pl.note(f.expr.Pos(), "types", Moved, "compat.NewRecorder adapts the recorder to code that stays: %s", to)
	if f.handWritten && !pl.warned[f.file] {
		pl.warned[f.file] = true
		pl.note(f.expr.Pos(), "tests", Decide, "compat.NewRecorder calls only Eventf of the hand-written recorder, without annotations; check what depends on Event or AnnotatedEventf")
	}
}

func (pl *planner) whyLeft(r ref) string {
	if n, ok := pl.root(r); ok {
		if rs := pl.left[n]; len(rs) > 0 {
			return pl.reason(pl.first(rs))
		}
	}
	if r.fixed != "" {
		return r.fixed + " determines the type"
	}
	return "unknown"
}

// first returns the first reason in the order of the files.
func (pl *planner) first(rs []Reason) Reason {
	return slices.MinFunc(rs, func(a, b Reason) int { return cmp.Or(pl.compare(a.Pos, b.Pos), strings.Compare(a.Text, b.Text)) })
}

func (pl *planner) reason(r Reason) string {
	if pos := pl.Fset.Position(r.Pos); pos.IsValid() && pl.fileOf(r.Pos) != nil {
		return fmt.Sprintf("%s (%s:%d)", r.Text, shorten(pos.Filename), pos.Line)
	}
	return r.Text
}

func shorten(name string) string {
	parts := strings.Split(name, "/")
	return strings.Join(parts[max(0, len(parts)-2):], "/")
}

// reportLeft reports the types that stay.
func (pl *planner) reportLeft() {
	for _, o := range sorted(pl.Program, pl.occurrences) {
		r := ref{nodes: []node{o.expr.Pos()}}
		if o.file.Outside {
			continue
		}
		if _, ok := pl.moves(r); !ok {
			pl.note(o.expr.Pos(), "types", Left, "%s: %s", o.name, pl.whyLeft(r))
		}
	}
	for _, l := range sorted(pl.Program, pl.lookups) {
		r := ref{nodes: []node{l.node}}
		if l.file.Outside {
			continue
		}
		if _, ok := pl.moves(r); !ok {
			pl.note(l.call.Pos(), "GetEventRecorderFor", Left, "%s", pl.whyLeft(r))
		}
	}
	for _, v := range sorted(pl.Program, pl.values) {
		if _, ok := pl.moves(v.recv); !ok && !v.file.Outside {
			pl.note(v.sel.Pos(), "types", Left, "the method value %s: %s", v.file.text(v.sel), pl.whyLeft(v.recv))
		}
	}
}
