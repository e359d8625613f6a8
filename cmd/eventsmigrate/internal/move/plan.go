package move

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

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
	Cause  Reason // the place stays for it
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
	// Calls are all, those that change, those that stay on the legacy interface, and those that
	// emit series: their recorders move, or are those of managers that have a broadcaster of this
	// project.
	Calls struct{ All, Moved, Left, Series int }
	// Stock reports whether events of the program certainly go on through the recorder of
	// client-go, and Others is the number of calls that do.
	Stock  bool
	Others int
	// Group reports whether the program writes events of events.k8s.io.
	Group bool
	// Managers reports whether the result imports [ManagerPath].
	Managers bool

	swap      map[string]bool // the imports of client-go whose replacement has an effect
	edits     map[*File][]edit
	constants map[*File][]*todo
}

// todo is a constant for an action that a person must name.
type todo struct {
	name  string
	text  string  // what to do
	files []*File // that use it
}

// planner makes a Plan.
type planner struct {
	*Program
	Options
	plan *Plan

	blocked map[token.Pos]string

	left    map[node][]Reason // by root
	legacy  map[node]bool     // the sets that contain a legacy type
	todos   map[string]*todo
	created []*creation
	notOurs map[token.Pos]bool // the calls that get a recorder of what nothing here creates
	from    map[string]*origin
	counted map[token.Pos]bool // the calls; true if their recorder moves, or is that of a test

	gathered map[string]int // the items that are one line for several places
}

// Plan decides what moves. Blocked are places that must stay, with the reasons.
func (p *Program) Plan(opts Options, blocked map[token.Pos]string) *Plan {
	pl := &planner{
		Program: p, Options: opts, blocked: blocked,
		plan: &Plan{swap: map[string]bool{}, edits: map[*File][]edit{}, constants: map[*File][]*todo{}},
		left: map[node][]Reason{}, legacy: map[node]bool{}, todos: map[string]*todo{}, counted: map[token.Pos]bool{}, gathered: map[string]int{},
	}
	pl.findForeign()
	pl.findOrigins()
	if opts.Target == Record {
		pl.planCreations()
	} else {
		saved := maps.Clone(p.parent)
		defer func() { p.parent = saved }()
		pl.decide()
		pl.moveSets()
	}
	pl.moveCreations()
	pl.permissions()
	pl.reportOrigins()
	slices.SortStableFunc(pl.plan.Items, func(a, b Item) int { return pl.compare(a.Pos, b.Pos) })
	return pl.plan
}

// moveSets writes the edits of the sets that move, and reports the others.
func (pl *planner) moveSets() {
	for _, m := range sorted(pl.Program, pl.places) {
		r := ref{nodes: []node{m.node}}
		set, ok := pl.moves(r)
		switch {
		case ok && m.file.Skip == "":
			m.move(pl, set)
		case !ok && m.left.Rule != "" && !m.file.Outside:
			pl.leaves(m.node, m.left.Rule, m.left.Text, r)
		}
	}
	for _, c := range sorted(pl.Program, pl.calls) {
		pl.call(c)
	}
	bridged := map[token.Pos]bool{} // test variants have the same flows
	for _, f := range pl.flows {
		set, from := pl.moves(f.src)
		if _, to := pl.moves(f.dst); from && !to && !bridged[f.expr.Pos()] {
			bridged[f.expr.Pos()] = true
			pl.bridge(f, set)
		}
	}
	pl.pending()
	pl.placeConstants()
}

// sorted returns the values in the order of their files. Positions do not order files,
// which parse concurrently.
func sorted[T any](p *Program, m map[token.Pos]T) (list []T) {
	for _, k := range slices.SortedFunc(maps.Keys(m), p.compare) {
		list = append(list, m[k])
	}
	return list
}

func (pl *planner) note(pos token.Pos, rule string, s Status, format string, args ...any) {
	pl.plan.Items = append(pl.plan.Items, Item{Pos: pos, Rule: rule, Status: s, Text: fmt.Sprintf(format, args...)})
}

// gather notes what a person must decide once for each key, and adds the items of the others
// to the line.
func (pl *planner) gather(key string, pos token.Pos, rule, text, item string) {
	if i, ok := pl.gathered[key]; !ok {
		pl.gathered[key] = len(pl.plan.Items)
		pl.note(pos, rule, Decide, "%s%s", text, item)
	} else if text := &pl.plan.Items[i].Text; !strings.Contains(*text+",", " "+item+",") {
		*text += ", " + item
	}
}

func (pl *planner) edit(f *File, pos, end token.Pos, set node, text string) {
	pl.plan.edits[f] = append(pl.plan.edits[f], edit{pos, end, text, set})
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
func (pl *planner) decide() {
	for n, rs := range pl.why {
		for _, r := range rs {
			pl.leave(n, r)
		}
	}
	for pos, text := range pl.blocked {
		pl.leave(pos, Reason{pos, text, false})
	}
	pl.unsupported()
	pl.planCreations()
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
	for changed := true; changed; {
		changed = false
		for _, f := range pl.flows {
			changed = pl.settle(f) || changed
		}
	}
	for n, m := range pl.places {
		pl.legacy[pl.find(n)] = pl.legacy[pl.find(n)] || m.typ != ""
	}
}

// keepFakes leaves the fakes that code outside of the program gets, if the program asserts
// that what such code returns is one.
func (pl *planner) keepFakes() {
	for _, f := range pl.flows {
		if n, ok := pl.root(f.src); ok && pl.asserted && f.fake && f.dst.fixed != "" && len(f.dst.nodes) == 0 {
			pl.leave(n, Reason{f.expr.Pos(), f.dst.fixed + " receives the fake, which must be one of package record", true})
		}
	}
}

// leaveOutside leaves the other sets of which no place is in a package of the patterns.
func (pl *planner) leaveOutside() {
	inside := map[node]bool{}
	for n, m := range pl.places {
		inside[pl.find(n)] = inside[pl.find(n)] || !m.file.Outside
	}
	for n, yes := range inside {
		if !yes && len(pl.left[n]) == 0 {
			pl.leave(n, Reason{n, notNamed, true})
		}
	}
}

// settle propagates that one side of a flow stays. It reports whether anything changed.
func (pl *planner) settle(f flow) bool {
	d, to := pl.moves(f.dst)
	s, from := pl.moves(f.src)
	switch {
	case to && !from && d != 0:
		text := "receives a legacy recorder"
		if f.src.fixed != "" {
			text = fmt.Sprintf("%s returns a legacy recorder", f.src.fixed)
		}
		pl.leave(d, Reason{f.expr.Pos(), text, true})
		return true
	case from && !to:
		if !f.rigid && f.file.Skip == "" {
			return false
		}
		text := "code that stays receives the recorder"
		if f.dst.fixed != "" {
			text = fmt.Sprintf("%s receives the recorder", f.dst.fixed)
		}
		pl.leave(s, Reason{f.expr.Pos(), text, true})
		return true
	}
	return false
}

// unsupported leaves sets that use what the new recorders do not have.
func (pl *planner) unsupported() {
	for pos, m := range pl.methods {
		switch {
		case m.fn.Name() == "AnnotatedEventf" && m.list != nil:
			pl.leave(pos, Reason{pos, "an interface declares AnnotatedEventf", false})
		case m.fn.Name() == "Event" && m.list == nil && !m.besideEventf():
			pl.leave(pos, Reason{pos, "a type declares Event without Eventf", false})
		}
	}
	for n, m := range pl.places {
		if m.given && !pl.hasBroadcaster(m.file.Pkg) {
			pl.leave(n, Reason{n, "nothing here makes the broadcaster", true})
		}
	}
}

// hasBroadcaster reports whether a package can receive a broadcaster that the program makes for
// its recorders, and not for a manager.
func (pl *planner) hasBroadcaster(pkg *Package) bool {
	for pos, f := range pl.broadcasters {
		if pl.options[pos] == nil && pl.meet(f, pkg) {
			return true
		}
	}
	return false
}

// besideEventf reports whether the type of a method has Eventf, too.
func (m *method) besideEventf() bool {
	o, _, _ := types.LookupFieldOrMethod(receiverType(m.fn), true, m.fn.Pkg(), "Eventf")
	f, ok := o.(*types.Func)
	return ok && isLegacySignature(f)
}

func receiverType(f *types.Func) types.Type { return f.Signature().Recv().Type() }

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

func hasCall(e ast.Expr) bool {
	for n := range ast.Preorder(e) {
		if _, ok := n.(*ast.CallExpr); ok {
			return true
		}
	}
	return false
}

// lookUp makes GetEventRecorderFor the method that returns a structured recorder.
func (pl *planner) lookUp(f *File, call *ast.CallExpr, sel *ast.SelectorExpr, set node) {
	pl.edit(f, sel.Sel.Pos(), sel.Sel.End(), set, "GetEventRecorder")
	pl.note(call.Pos(), "GetEventRecorderFor", Moved, "GetEventRecorder")
	pl.removeNolint(f, call, set)
}

// allowed is a comment that only allows a deprecated call.
var allowed = regexp.MustCompile(`^//(nolint:\s*(staticcheck|SA1019|deprecat\w+)|lint:ignore SA1019)\b[^,]*$`)

// removeNolint removes the comment that allows the deprecated call, on its line or above it.
func (pl *planner) removeNolint(f *File, call *ast.CallExpr, set node) {
	line := pl.Fset.Position(call.Pos()).Line
	for _, group := range f.AST.Comments {
		for _, c := range group.List {
			alone := strings.TrimSpace(lineBefore(f, c.Pos())) == ""
			switch at := pl.Fset.Position(c.Pos()).Line; {
			case !allowed.MatchString(c.Text):
			case alone && at == line-1:
				pl.edit(f, f.lineStart(c.Pos()), f.lineEnd(c.End()), set, "")
			case at == line || at == pl.Fset.Position(call.Lparen).Line:
				pl.edit(f, c.Pos(), c.End(), set, "")
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
			pl.plan.Calls.All++
			pl.plan.Calls.Left++
			pl.counted[c.expr.Lparen] = c.file.isTest()
			pl.leaves(c.expr.Pos(), c.name, "", c.recv)
		}
		return
	}
	if c.own {
		m := pl.methods[c.recv.nodes[0]]
		if m == nil || !pl.legacy[set] || m.list == nil && c.name != "Eventf" {
			return // the method keeps its signature
		}
	}
	if c.file.Skip != "" {
		return
	}
	pl.plan.Calls.All++
	pl.plan.Calls.Moved++
	pl.counted[c.expr.Lparen] = true
	args := c.expr.Args
	reason := 2
	switch c.name {
	case "AnnotatedEventf":
		reason = 3
		pl.annotations(c, set)
	case "Event":
		pl.edit(c.file, c.sel.Sel.Pos(), c.sel.Sel.End(), set, "Eventf")
	}
	pl.message(c, reason+1, set)
	within := pl.wrapper(c, args[reason])
	var action string
	related := "nil"
	switch x, plain := pl.relatedOf(c, reason+1); {
	case within != nil && within.fn.Name() == "Eventf" && within.isParam(args[0], 0):
		related = "related"
	case plain && pl.Related:
		related = x
		pl.note(c.expr.Pos(), "related", Moved, "%s", x)
	case plain:
		pl.related(c, "-related sets what messages name: ", x)
	case x != "":
		pl.related(c, "in place of nil, pass what exists here, and came from the API server: ", x)
	}
	switch {
	case within == nil:
		action = pl.actionFor(c, args[reason])
	case within.fn.Name() == "Eventf":
		action = "action"
	default: // as in package compat
		action = c.file.text(args[reason])
	}
	pl.edit(c.file, args[0].End(), args[0].End(), set, ", "+related)
	pl.edit(c.file, args[reason].End(), args[reason].End(), set, ", "+action)
	pl.note(c.expr.Pos(), c.name, Moved, "action %s", action)
}

// related reports an object that the messages of a function name, in one line for each file.
func (pl *planner) related(c *call, text, x string) {
	if c.fun != nil {
		x = fmt.Sprintf("%s (%s)", x, c.fun.Name.Name)
	}
	pl.gather(text+c.file.Name, c.expr.Pos(), "related", text, x)
}

// annotations makes AnnotatedEventf a method of the new recorder: Eventf without
// annotations, and that of another interface with them.
func (pl *planner) annotations(c *call, set node) {
	info := c.file.Pkg.Info
	sel := info.Selections[c.sel]
	if args := c.expr.Args; info.Types[args[1]].IsNil() {
		pl.edit(c.file, args[1].Pos(), args[2].Pos(), set, "")
		pl.edit(c.file, c.sel.Sel.Pos(), c.sel.Sel.End(), set, "Eventf")
		return
	}
	if recorderOf(receiverType(sel.Obj().(*types.Func))) == fake {
		return
	}
	embedding := ""
	for _, f := range embedded(sel.Recv(), sel.Index()) {
		embedding += "." + f.Name()
	}
	// It is around what moves at the same position.
	first := edit{c.sel.X.Pos(), c.sel.X.Pos(), qualify(compatPath) + "Annotated(", set}
	pl.plan.edits[c.file] = append([]edit{first}, pl.plan.edits[c.file]...)
	pl.edit(c.file, c.sel.X.End(), c.sel.X.End(), set, embedding+")")
}

// wrapper returns the method of a hand-written recorder that passes its reason to a call, or
// nil. If it is Eventf, it gets the parameters related and action.
func (pl *planner) wrapper(c *call, reason ast.Expr) *method {
	if c.fun == nil {
		return nil
	}
	m := pl.methods[c.fun.Name.Pos()]
	if m == nil {
		return nil
	}
	set, ok := pl.moves(ref{nodes: []node{m.fn.Pos()}})
	if s, _ := SignatureOf(m.fn); !m.isParam(reason, s.Reason) || m.fn.Name() == "Eventf" && (!ok || !pl.legacy[set]) {
		return nil
	}
	return m
}

// isParam reports whether e is the i-th parameter of a method.
func (m *method) isParam(e ast.Expr, i int) bool {
	o := ObjectOf(m.file.Pkg.Info, e)
	return o != nil && o.Pos() == m.fn.Signature().Params().At(i).Pos()
}

// message makes the message of Event a format, and the variable format of a call without
// arguments an argument.
func (pl *planner) message(c *call, i int, set node) {
	m, info := c.expr.Args[i], c.file.Pkg.Info
	if len(c.expr.Args) > i+1 || info.Types[m].Value != nil && (c.name != "Event" || !strings.Contains(StringOf(info, m), "%")) {
		return
	}
	if s := Sprintf(info, m); s != nil && !c.file.commented(m, s) {
		for _, e := range Unwrapped(m, s) {
			pl.edit(c.file, e.Pos, e.End, set, "")
		}
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

// Sprintf returns e as a call of fmt.Sprintf with a constant format, or nil.
func Sprintf(info *types.Info, e ast.Expr) *ast.CallExpr {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok || len(call.Args) == 0 || info.Types[call.Args[0]].Value == nil {
		return nil
	}
	if f, ok := typeutil.Callee(info, call).(*types.Func); ok && f.FullName() == "fmt.Sprintf" {
		return call
	}
	return nil
}

// actionFor returns the expression of an action for a reason, which is "" if it is not
// constant: that of the user, the verb of the reason, or a constant that a person must name.
func (pl *planner) actionFor(c *call, e ast.Expr) string {
	reason := c.file.constant(c.fun, e)
	if a := cmp.Or(pl.Actions[reason], verb.Action(reason)); token.IsIdentifier(a) {
		return strconv.Quote(a)
	}
	base := strings.Join(verb.Words(reason), "")
	if !token.IsIdentifier(base) {
		base = "Unknown"
		if c.fun != nil {
			base = c.fun.Name.Name
		}
	}
	first := []rune(base)
	first[0] = unicode.ToUpper(first[0])
	name := "action" + string(first)
	pkg := c.file.Pkg.Types
	if _, ok := pkg.Scope().Lookup(name).(*types.Const); ok {
		return name // of an earlier run
	}
	key := pkg.Path() + "." + name // test variants are other packages with the same files
	if pl.todos[key] == nil {
		pl.todos[key] = &todo{name: name, text: todoOf(c, reason, e)}
		pl.nameAction(e.Pos(), name, pl.todos[key].text)
	}
	pl.todos[key].files = append(pl.todos[key].files, c.file)
	return name
}

// todoOf tells what a person must do about an action. It comes from where a variable reason does.
func todoOf(c *call, reason string, e ast.Expr) string {
	owner, field := FieldOf(c.file.Pkg.Info, e)
	switch {
	case reason == "" && Forwards(c.file.Pkg.Info, c.fun, e):
		return fmt.Sprintf("give %s a parameter for the action", c.fun.Name.Name)
	case reason == "" && owner != "":
		return fmt.Sprintf("give %s a field for the action, beside %s", owner, field)
	}
	return "name what the controller does"
}

// constant returns the value of an expression in a function, which can be nil.
func (f *File) constant(fun *ast.FuncDecl, e ast.Expr) string {
	if fun == nil {
		return StringOf(f.Pkg.Info, e)
	}
	return ConstantOf(f.Pkg.Info, fun, e)
}

// nameAction asks for an action, for which a constant stands for now, in each package.
func (pl *planner) nameAction(pos token.Pos, constant, text string) {
	text += ": the constant " + constant + " of package "
	pl.gather(text, pos, "action", text, pl.fileOf(pos).Pkg.Types.Name())
}

// pending reports the constants of an earlier run that nobody has named yet.
func (pl *planner) pending() {
	for _, f := range pl.Files {
		for _, d := range f.AST.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.CONST && g.Doc != nil && !f.Outside {
				text, ok := strings.CutPrefix(g.Doc.List[len(g.Doc.List)-1].Text, todoPrefix)
				if name := g.Specs[0].(*ast.ValueSpec).Names[0]; ok {
					pl.nameAction(name.Pos(), name.Name, strings.TrimSuffix(text, "."))
				}
			}
		}
	}
}

// placeConstants declares each constant in the first file that uses it, preferably no test.
func (pl *planner) placeConstants() {
	for _, key := range slices.Sorted(maps.Keys(pl.todos)) {
		t := pl.todos[key]
		slices.SortFunc(t.files, func(a, b *File) int { return strings.Compare(a.Name, b.Name) })
		first := t.files[max(0, slices.IndexFunc(t.files, func(f *File) bool { return !f.isTest() }))]
		pl.plan.constants[first] = append(pl.plan.constants[first], t)
	}
}

// method gives a method the new signature. Hand-written recorders that no legacy interface
// holds stay.
func (pl *planner) method(m *method, set node) {
	pos := m.fn.Pos()
	switch name := m.fn.Name(); {
	case !pl.legacy[set]:
	case m.list != nil && name == "Event" && m.besideEventf():
		pl.removeMethod(m, set)
	case m.list == nil && name != "Eventf":
		pl.handWritten(m)
	case m.list == nil:
		pl.resign(m, set)
		pl.handWritten(m)
	default:
		pl.resign(m, set)
		pl.note(pos, "types", Moved, "a method of an interface")
	}
}

// handWritten reports a method of a hand-written recorder, in one line for each type.
func (pl *planner) handWritten(m *method) {
	pl.gather(types.TypeString(receiverType(m.fn), nil), m.fn.Pos(), "tests", "a hand-written recorder: callers use only Eventf now, with the new parameters; check what becomes of ", m.fn.Name())
}

func (pl *planner) removeMethod(m *method, set node) {
	for _, f := range m.list.List {
		if len(f.Names) == 1 && f.Names[0].Pos() == m.fn.Pos() {
			from := f.Pos()
			if f.Doc != nil {
				from = f.Doc.Pos()
			}
			pl.edit(m.file, m.file.lineStart(from), m.file.lineEnd(m.file.restOfLine(f.End())), set, "")
			pl.note(m.fn.Pos(), "types", Moved, "removed the method Event of an interface")
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
	object, related, action, arguments := list[0], "", "string", "...any"
	var names []ast.Node
	for _, f := range list {
		for _, name := range f.Names {
			names = append(names, name)
		}
		if len(f.Names) == 0 {
			names = append(names, f)
		}
	}
	if len(object.Names) > 0 {
		related, action, arguments = "related ", "action", "args ...any"
	}
	pl.edit(m.file, object.End(), object.End(), set, ", "+related+m.file.text(object.Type))
	pl.edit(m.file, names[2].End(), names[2].End(), set, ", "+action)
	if m.fn.Name() == "Event" {
		pl.edit(m.file, m.fn.Pos(), m.decl.Pos(), set, "Eventf")
		pl.edit(m.file, m.decl.Params.Closing, m.decl.Params.Closing, set, ", "+arguments)
	}
}

// bridge adapts a recorder that moves to code that stays.
func (pl *planner) bridge(f flow, set node) {
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

// leaves reports a place that stays, after a text.
func (pl *planner) leaves(pos token.Pos, rule, text string, r ref) {
	cause := Reason{Text: "unknown"}
	if n, ok := pl.root(r); ok && len(pl.left[n]) > 0 {
		cause = pl.first(pl.left[n])
	} else if r.fixed != "" {
		cause.Text = r.fixed + " determines the type"
	}
	pl.plan.Items = append(pl.plan.Items, Item{pos, rule, Left, text + pl.reason(cause), cause})
}

// first returns the first reason in the order of the files.
func (pl *planner) first(rs []Reason) Reason {
	return slices.MinFunc(rs, func(a, b Reason) int { return cmp.Or(pl.compare(a.Pos, b.Pos), strings.Compare(a.Text, b.Text)) })
}

func (pl *planner) reason(r Reason) string {
	if pos := pl.Fset.Position(r.Pos); pos.IsValid() && pl.fileOf(r.Pos) != nil {
		return fmt.Sprintf("%s (%s:%d)", r.Text, filepath.Join(filepath.Base(filepath.Dir(pos.Filename)), filepath.Base(pos.Filename)), pos.Line)
	}
	return r.Text
}
