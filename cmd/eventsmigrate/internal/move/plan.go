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
	// Group reports whether the program writes events of events.k8s.io.
	Group bool
	// Unused are the reasons in Actions that no call has.
	Unused []string

	managers  bool // the result imports ManagerPath
	swap      bool // an import of compat/record instead of package record has an effect
	edits     map[*File][]edit
	constants map[*File][]todo
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
	legacy    map[node]bool // the sets that contain a legacy type
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
		plan:    &Plan{edits: map[*File][]edit{}, constants: map[*File][]todo{}},
		left:    map[node][]Reason{},
		bridges: map[*flow]bool{}, todos: map[string]*todo{}, todoNames: map[*types.Package]map[string]bool{},
	}
	pl.findOrigins()
	if opts.Target == Record {
		pl.planCreations(blocked)
		pl.moveCreations()
		pl.reportOrigins()
		pl.permissions()
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
	pl.newRecorders()
	pl.lookUps()
	for _, c := range sorted(p, p.calls) {
		pl.call(c)
	}
	pl.methodDecls()
	pl.pending()
	bridged := map[token.Pos]bool{} // test variants have the same flows
	for i := range p.flows {
		if f := &p.flows[i]; pl.bridges[f] && !bridged[f.expr.Pos()] {
			bridged[f.expr.Pos()] = true
			pl.bridge(f)
		}
	}
	pl.moveCreations()
	pl.placeConstants()
	pl.permissions()
	pl.reportLeft()
	pl.reportOrigins()
	pl.sort()
	return pl.plan
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

// decide determines the sets, and which of them stay. Sets that only code outside of the
// program holds back adapt at their borders. All others stay as a whole, so they unite.
func (pl *planner) decide(blocked map[token.Pos]string) {
	for n, rs := range pl.why {
		for _, r := range rs {
			pl.leave(n, r)
		}
	}
	for pos, text := range blocked {
		pl.leave(pos, Reason{pos, text, false, false})
	}
	pl.unsupported()
	pl.leaveRecorders()
	pl.planCreations(blocked)
	pl.keepFakes()
	outside := map[node]bool{}
	for n, rs := range pl.left {
		outside[n] = !slices.ContainsFunc(rs, func(r Reason) bool { return !r.Outside })
	}
	for _, f := range pl.flows {
		d, dok := pl.root(f.dst)
		s, sok := pl.root(f.src)
		if dok && sok && !outside[d] && !outside[s] {
			pl.union(d, s)
		}
	}
	rekeyed := map[node][]Reason{}
	for n, rs := range pl.left {
		rekeyed[pl.find(n)] = append(rekeyed[pl.find(n)], rs...)
	}
	pl.left = rekeyed
	pl.leaveOutside()
	pl.propagate()
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

// propagate leaves what depends on sets that stay, and finds the flows that compat adapts.
func (pl *planner) propagate() {
	for changed := true; changed; {
		changed = false
		for i := range pl.flows {
			changed = pl.settle(&pl.flows[i]) || changed
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
func (pl *planner) settle(f *flow) bool {
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
		if !f.fake && f.file.Skip == "" {
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

// unsupported leaves sets that use what the new recorders do not have.
func (pl *planner) unsupported() {
	leave := func(r ref, pos token.Pos, text string) {
		if n, ok := pl.root(r); ok {
			pl.leave(n, Reason{pos, text, false, false})
		}
	}
	for _, c := range sorted(pl.Program, pl.calls) {
		if c.sel == nil || len(c.expr.Args) < 4 {
			leave(c.recv, c.expr.Pos(), "the method receives the results of a call")
		}
	}
	for _, m := range sorted(pl.Program, pl.methods) {
		self := ref{nodes: []node{m.name.Pos()}}
		switch {
		case m.shape == shapeAnnotated && m.list != nil:
			leave(self, m.name.Pos(), "an interface declares AnnotatedEventf")
		case m.shape == shapeEvent && m.list == nil && pl.sibling(m, shapeEventf) == nil:
			leave(self, m.name.Pos(), "a type declares Event without Eventf")
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

// types moves the occurrences of types and the constructors of fakes.
func (pl *planner) types() {
	for _, o := range sorted(pl.Program, pl.occurrences) {
		if set, ok := pl.moves(ref{nodes: []node{o.expr.Pos()}}); ok && o.file.Skip == "" {
			pl.edit(o.file, o.expr.Pos(), o.expr.End(), set, qualify(eventsPath)+o.name)
			pl.note(o.expr.Pos(), "types", Moved, "%s", o.name)
		}
	}
	for _, c := range sorted(pl.Program, pl.constructors) {
		if set, ok := pl.moves(ref{nodes: []node{c.node}}); ok {
			pl.edit(c.file, c.call.Fun.Pos(), c.call.Fun.End(), set, qualify(eventsPath)+"NewFakeRecorder")
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

// nolint is a comment that only allows a deprecated call.
var nolint = regexp.MustCompile(`^//(nolint:\s*(staticcheck|SA1019|deprecat\w+)|lint:ignore SA1019)\b[^,]*$`)

// removeNolint removes the comment that allows the deprecated call, on its line or above it.
func (pl *planner) removeNolint(f *File, call *ast.CallExpr, set node) {
	line := pl.Fset.Position(call.Pos()).Line
	for _, group := range f.AST.Comments {
		for _, c := range group.List {
			alone := strings.TrimSpace(lineBefore(f, c.Pos())) == ""
			switch at := pl.Fset.Position(c.Pos()).Line; {
			case !nolint.MatchString(c.Text):
			case alone && at == line-1:
				pl.edit(f, f.lineStart(c.Pos()), f.lineEnd(c.End()), set, "")
			case at == line || at == pl.Fset.Position(call.Lparen).Line:
				before := lineBefore(f, c.Pos())
				pl.edit(f, c.Pos()-token.Pos(len(before)-len(strings.TrimRight(before, " \t"))), c.End(), set, "")
			}
		}
	}
}

func lineBefore(f *File, pos token.Pos) string {
	before := f.Src[:f.at(pos)]
	return string(before[bytes.LastIndexByte(before, '\n')+1:])
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
	args := c.expr.Args
	reason := 2
	if c.shape == shapeAnnotated {
		reason = 3
		info := c.file.Pkg.Info
		if isNilExpr(c, 1) {
			pl.edit(c.file, args[1].Pos(), args[2].Pos(), set, "")
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
			pl.edit(c.file, c.sel.X.End(), c.sel.X.End(), set, x+".("+qualify(eventsPath)+"AnnotatedEventRecorder)")
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
	related, plain := pl.relatedOf(c, reason+1)
	text := "nil"
	within := pl.wrapper(c)
	switch {
	case within != nil && pl.isParam(c.file, args[0], within.fn, 0):
		text = "related"
	case plain && pl.Related:
		text = related
		pl.note(c.expr.Pos(), "related", Moved, "%s", related)
	case plain:
		pl.note(c.expr.Pos(), "related", Decide, "-related sets the object that the message names: %s", related)
	case related != "":
		pl.note(c.expr.Pos(), "related", Decide, "if %s exists here, and came from the API server, pass it in place of nil", related)
	}
	pl.edit(c.file, args[0].End(), args[0].End(), set, ", "+text)
	var action string
	switch {
	case within != nil && pl.isParam(c.file, args[reason], within.fn, 2):
		action = "action"
	case pl.passesReason(c, args[reason]):
		action = c.file.text(args[reason])
	default:
		action = pl.actionFor(c.file, c.fun, args[reason].Pos(), StringOf(c.file.Pkg.Info, args[reason]), set)
	}
	pl.edit(c.file, args[reason].End(), args[reason].End(), set, ", "+action)
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
	if s := sprintf(info, m); s != nil && !c.file.commented(m, s) {
		pl.textEdits(c.file, Unwrapped(m, s), set)
		return
	}
	pl.edit(c.file, m.Pos(), m.Pos(), set, `"%s", `)
}

// Unwrapped returns the edits that replace e, which is a call of Sprintf or the same in
// parentheses, by the arguments of the call.
func Unwrapped(e ast.Expr, call *ast.CallExpr) []analysis.TextEdit {
	last := call.Args[len(call.Args)-1].End()
	if call.Ellipsis.IsValid() {
		last = call.Ellipsis + 3
	}
	return []analysis.TextEdit{{Pos: e.Pos(), End: call.Args[0].Pos()}, {Pos: last, End: e.End()}}
}

// commented reports whether comments are in what an unwrapped call of Sprintf loses.
func (f *File) commented(e ast.Expr, call *ast.CallExpr) bool {
	edits := Unwrapped(e, call)
	return slices.ContainsFunc(f.AST.Comments, func(g *ast.CommentGroup) bool {
		return slices.ContainsFunc(edits, func(x analysis.TextEdit) bool { return x.Pos <= g.Pos() && g.End() <= x.End })
	})
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
		for i := 2; taken[name] || f.Pkg.Types.Scope().Lookup(name) != nil; i++ {
			name = fmt.Sprintf("action%s%d", base, i)
		}
		taken[name] = true
		t = &todo{name: name, reason: reason}
		pl.todos[key] = t
		pl.todoOrder = append(pl.todoOrder, t)
		pl.nameAction(pos, word(reason), name)
	}
	t.files = append(t.files, f)
	return t.name
}

// nameAction asks for the name of an action, which a constant has for now.
func (pl *planner) nameAction(pos token.Pos, reason, constant string) {
	if reason == "" {
		pl.note(pos, "action", Decide, "name the action of a variable reason: the constant %s", constant)
	} else {
		pl.note(pos, "action", Decide, "name the action of the reason %s: the constant %s", reason, constant)
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
			if !ok || g.Tok != token.CONST || g.Doc == nil {
				continue
			}
			text := g.Doc.List[len(g.Doc.List)-1].Text
			reason, ok := strings.CutPrefix(text, todoReason)
			if name := g.Specs[0].(*ast.ValueSpec).Names[0]; ok || text == todoVariable {
				if text == todoVariable {
					reason = ""
				}
				pl.nameAction(name.Pos(), strings.TrimSuffix(reason, "."), name.Name)
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
	if reason == "" || isCamelCase(reason) {
		return reason
	}
	return strconv.Quote(reason)
}

// placeConstants declares each constant in the first file that uses it.
func (pl *planner) placeConstants() {
	for _, t := range pl.todoOrder {
		slices.SortFunc(t.files, func(a, b *File) int { return strings.Compare(a.Name, b.Name) })
		first := t.files[0]
		if i := slices.IndexFunc(t.files, func(f *File) bool { return !f.isTest() }); i > 0 {
			first = t.files[i]
		}
		pl.plan.constants[first] = append(pl.plan.constants[first], *t)
	}
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
}
