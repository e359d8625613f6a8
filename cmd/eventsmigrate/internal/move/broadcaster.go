package move

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
)

// planSinks decides which broadcasters move: their sink is an argument of the new
// constructor, so a clientset must be there.
func (pl *planner) planSinks() {
	type set struct {
		constructors []*constructor
		uses         []*use
	}
	sets := map[node]*set{}
	at := func(n node) *set {
		s := sets[pl.find(n)]
		if s == nil {
			s = &set{}
			sets[pl.find(n)] = s
		}
		return s
	}
	for _, c := range sorted(pl.Program, pl.constructors) {
		if c.kind == broadcaster {
			s := at(c.node)
			s.constructors = append(s.constructors, c)
		}
	}
	for _, u := range sorted(pl.Program, pl.uses) {
		if len(u.recv.nodes) > 0 {
			s := at(u.recv.nodes[0])
			s.uses = append(s.uses, u)
		}
	}
	for n, s := range sets {
		if len(pl.left[n]) > 0 {
			continue
		}
		if len(s.constructors) == 0 && !pl.hasType(n, broadcaster) {
			continue
		}
		for _, u := range s.uses {
			if text := pl.unsupportedUse(u); text != "" {
				pl.leave(n, Reason{u.call.Pos(), text, false, false})
			}
		}
		clients := map[token.Pos]string{}
		for _, c := range s.constructors {
			client := pl.clientAt(c, s.uses)
			if client == "" {
				pl.leave(n, Reason{c.call.Pos(), "there is no clientset where the broadcaster is constructed", false, false})
				break
			}
			clients[c.call.Pos()] = client
		}
		pl.clients[n] = clients
	}
}

func (pl *planner) hasType(n node, k kind) bool {
	for _, o := range pl.occurrences {
		if o.kind == k && pl.find(o.expr.Pos()) == n {
			return true
		}
	}
	return false
}

// isStatement reports whether a call is a statement of its own.
func isStatement(u *use) bool {
	if len(u.stack) == 0 {
		return false
	}
	if _, ok := u.stack[len(u.stack)-1].(*ast.ExprStmt); !ok || len(u.stack) < 2 {
		return false
	}
	switch u.stack[len(u.stack)-2].(type) {
	case *ast.BlockStmt, *ast.CaseClause, *ast.CommClause:
		return true
	}
	return false // in the header of an if or a for
}

// unsupportedUse tells why a use of a broadcaster has no equivalent, or returns "".
func (pl *planner) unsupportedUse(u *use) string {
	switch u.method {
	case "Shutdown":
		return ""
	case "NewRecorder":
		if len(u.call.Args) != 2 {
			return "NewRecorder receives the results of a call"
		}
		return ""
	case "StartStructuredLogging":
		if isStatement(u) {
			return ""
		}
	case "StartRecordingToSink":
		if isStatement(u) && len(u.call.Args) == 1 {
			return ""
		}
	case "StartLogging":
		if isStatement(u) {
			if _, ok := pl.verbosity(u); ok {
				return ""
			}
			return "StartLogging has a logger of its own"
		}
	default:
		return fmt.Sprintf("%s has no equivalent", u.method)
	}
	return fmt.Sprintf("the result of %s is used", u.method)
}

// verbosity returns the level of a klog function.
func (pl *planner) verbosity(u *use) (string, bool) {
	if len(u.call.Args) != 1 {
		return "", false
	}
	sel, ok := ast.Unparen(u.call.Args[0]).(*ast.SelectorExpr)
	if !ok {
		return "", false
	}
	f, ok := u.file.Pkg.Info.Uses[sel.Sel].(*types.Func)
	if !ok || f.Pkg() == nil || f.Name() != "Infof" || !slices.Contains([]string{klogPath, "k8s.io/klog", "github.com/golang/glog"}, f.Pkg().Path()) {
		return "", false
	}
	if f.Type().(*types.Signature).Recv() == nil {
		return "0", true
	}
	v, ok := ast.Unparen(sel.X).(*ast.CallExpr)
	if !ok || len(v.Args) != 1 {
		return "", false
	}
	if value := u.file.Pkg.Info.Types[v.Args[0]].Value; value != nil && value.Kind() == constant.Int {
		return value.ExactString(), true
	}
	return "", false
}

// isClientset reports whether t has the clients of both groups of Events.
func isClientset(t types.Type, pkg *types.Package) bool {
	if t == nil {
		return false
	}
	for _, name := range []string{"CoreV1", "EventsV1", "Discovery"} {
		o, _, _ := types.LookupFieldOrMethod(t, true, pkg, name)
		if _, ok := o.(*types.Func); !ok {
			return false
		}
	}
	return true
}

// clientAt returns the expression of a clientset at a constructor, or "".
func (pl *planner) clientAt(c *constructor, uses []*use) string {
	info, pkg := c.file.Pkg.Info, c.file.Pkg.Types
	for _, u := range uses {
		if u.method != "StartRecordingToSink" || len(u.call.Args) != 1 {
			continue
		}
		client := clientOf(u.file.Pkg.Info, u.file.Pkg.Types, u.fun, u.call.Args[0])
		if client == nil {
			continue
		}
		if u.fun == c.fun && pl.visible(info, pkg, client, c.call.Pos()) {
			return u.file.text(client)
		}
		if sel, ok := ast.Unparen(client).(*ast.SelectorExpr); ok && c.fun != nil {
			if f, ok := u.file.Pkg.Info.Uses[sel.Sel].(*types.Var); ok && f.IsField() {
				if e := assigned(info, c.fun, f); e != nil && isClientset(info.TypeOf(e), pkg) && pl.visible(info, pkg, e, c.call.Pos()) {
					return c.file.text(e)
				}
			}
		}
	}
	var found []string
	for s := scopeAt(pkg, c.call.Pos()); s != nil && s != pkg.Scope() && s != types.Universe; s = s.Parent() {
		for _, name := range s.Names() {
			v, ok := s.Lookup(name).(*types.Var)
			if !ok || name == "_" || !isClientset(v.Type(), pkg) {
				continue
			}
			if _, o := scopeAt(pkg, c.call.Pos()).LookupParent(name, c.call.Pos()); o == v {
				found = append(found, name)
			}
		}
	}
	if len(found) == 1 {
		return found[0]
	}
	// client.Interface in a struct that the function receives is too far to be sure.
	return ""
}

func scopeAt(pkg *types.Package, pos token.Pos) *types.Scope {
	return pkg.Scope().Innermost(pos)
}

// clientOf returns the clientset in the argument of StartRecordingToSink, or nil.
func clientOf(info *types.Info, pkg *types.Package, fun *ast.FuncDecl, e ast.Expr) ast.Expr {
	for range 4 {
		switch x := ast.Unparen(e).(type) {
		case *ast.UnaryExpr:
			e = x.X
		case *ast.CompositeLit:
			if !isNamed(info.TypeOf(x), typedPath, "EventSinkImpl") || len(x.Elts) != 1 {
				return nil
			}
			e = valueOf(x.Elts[0])
		case *ast.Ident:
			v, ok := info.Uses[x].(*types.Var)
			if !ok || fun == nil {
				return nil
			}
			if e = assigned(info, fun, v); e == nil {
				return nil
			}
		case *ast.CallExpr: // X.Events(namespace)
			sel, ok := ast.Unparen(x.Fun).(*ast.SelectorExpr)
			if !ok || sel.Sel.Name != "Events" {
				return nil
			}
			return clientsetIn(info, pkg, sel.X)
		default:
			return nil
		}
	}
	return nil
}

// clientsetIn returns the clientset in client.CoreV1() or New(client.CoreV1().RESTClient()).
func clientsetIn(info *types.Info, pkg *types.Package, e ast.Expr) (found ast.Expr) {
	ast.Inspect(e, func(n ast.Node) bool {
		if x, ok := n.(ast.Expr); ok && found == nil && isClientset(info.TypeOf(x), pkg) {
			found = x
		}
		return found == nil
	})
	return found
}

// assigned returns the only expression that a function assigns to a variable, or nil.
func assigned(info *types.Info, fun *ast.FuncDecl, v *types.Var) ast.Expr {
	var found []ast.Expr
	ast.Inspect(fun, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			if id, ok := n.Key.(*ast.Ident); ok && info.Uses[id] == v {
				found = append(found, n.Value)
			}
		case *ast.AssignStmt:
			for i, l := range n.Lhs {
				if ObjectOf(info, l) == v {
					if len(n.Lhs) == len(n.Rhs) {
						found = append(found, n.Rhs[i])
					} else {
						found = append(found, nil)
					}
				}
			}
		case *ast.ValueSpec:
			for i, l := range n.Names {
				if info.Defs[l] == v && i < len(n.Values) {
					found = append(found, n.Values[i])
				}
			}
		}
		return true
	})
	if len(found) != 1 {
		return nil
	}
	return found[0]
}

// ObjectOf returns the object of an identifier or of the field that a selector selects.
func ObjectOf(info *types.Info, e ast.Expr) types.Object {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		if o := info.Defs[e]; o != nil {
			return o
		}
		return info.Uses[e]
	case *ast.SelectorExpr:
		return info.Uses[e.Sel]
	}
	return nil
}

// visible reports whether an expression of names has the same meaning at pos.
func (pl *planner) visible(info *types.Info, pkg *types.Package, e ast.Expr, pos token.Pos) bool {
	ok := true
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			ok = ok && pl.visible(info, pkg, n.X, pos)
			return false
		case *ast.Ident:
			o := info.Uses[n]
			scope := scopeAt(pkg, pos)
			if o == nil || scope == nil {
				ok = false
				return false
			}
			if _, at := scope.LookupParent(n.Name, pos); at != o {
				ok = false
			}
		case *ast.CallExpr, *ast.FuncLit, *ast.CompositeLit:
			ok = false
		}
		return ok
	})
	return ok
}

// contextAt returns the expression of a context at pos.
func contextAt(pkg *types.Package, pos token.Pos) string {
	inner := scopeAt(pkg, pos)
	for s := inner; s != nil && s != types.Universe; s = s.Parent() {
		for _, name := range append([]string{"ctx"}, s.Names()...) {
			v, ok := s.Lookup(name).(*types.Var)
			if !ok || name == "_" || !isNamed(v.Type(), "context", "Context") || v.Parent() == pkg.Scope() {
				continue
			}
			if _, o := inner.LookupParent(name, pos); o == v {
				return name
			}
		}
	}
	return ""
}

// broadcasters moves the constructors of broadcasters.
func (pl *planner) broadcasters() {
	for _, c := range sorted(pl.Program, pl.constructors) {
		if c.kind != broadcaster {
			continue
		}
		set, ok := pl.moves(ref{nodes: []node{c.node}})
		if !ok && c.file.Outside {
			continue
		}
		if !ok {
			pl.note(c.call.Pos(), "types", Left, "a broadcaster: %s", pl.whyLeft(ref{nodes: []node{c.node}}))
			continue
		}
		client := pl.clients[set][c.call.Pos()]
		text := fmt.Sprintf("%sNewBroadcaster(%sNewSink(%s))", qualify(eventsPath), qualify(compatPath), client)
		switch {
		case pl.Target == EventSeries:
			// What is not written when the program ends is lost. With this option, the
			// server knows at least half of it, as with compat/record.
			text = fmt.Sprintf("%[1]sNewBroadcasterWithOptions(%[2]sNewSink(%[3]s), %[1]sOptions{FirstHeartbeat: %[4]sSecond})",
				qualify(eventsPath), qualify(compatPath), client, qualify("time"))
		case pl.Target != EventSeries:
			text = fmt.Sprintf("%[1]sNewBroadcaster(&%[1]sEventSinkImpl{Interface: %[2]s.EventsV1()})", qualify(clientPath), client)
		}
		pl.edit(c.file, c.call.Pos(), c.call.End(), set, text)
		pl.note(c.call.Pos(), "types", Moved, "a broadcaster with the clientset %s", client)
		pl.droppedOptions(c)
	}
}

func (pl *planner) droppedOptions(c *constructor) {
	for _, a := range c.call.Args {
		if call, ok := ast.Unparen(a).(*ast.CallExpr); ok {
			if o := ObjectOf(c.file.Pkg.Info, call.Fun); o != nil && o.Name() == "WithContext" {
				continue // StartRecordingToSinkWithContext has it
			}
		}
		pl.note(a.Pos(), "types", Decide, "the new broadcaster has no option %s", c.file.text(a))
	}
}

func (pl *planner) use(u *use) {
	b, moves := pl.moves(u.recv)
	if u.method == "NewRecorder" {
		pl.newRecorder(u, moves)
		return
	}
	if !moves {
		return
	}
	switch u.method {
	case "StartLogging":
		v, _ := pl.verbosity(u)
		pl.edit(u.file, u.sel.Sel.Pos(), u.sel.Sel.End(), b, "StartStructuredLogging")
		pl.edit(u.file, u.call.Args[0].Pos(), u.call.Args[0].End(), b, v)
	case "StartRecordingToSink":
		pkg := u.file.Pkg.Types
		ctx := contextAt(pkg, u.call.Pos())
		logger := qualify(klogPath) + "FromContext(" + ctx + ")"
		if ctx == "" {
			ctx, logger = qualify("context")+"Background()", qualify(klogPath)+"Background()"
		}
		handle := fmt.Sprintf("%s.Error(err, \"Failed to record events\")", logger)
		pl.edit(u.file, u.call.Pos(), u.call.Pos(), b, "if err := ")
		pl.edit(u.file, u.sel.Sel.Pos(), u.sel.Sel.End(), b, "StartRecordingToSinkWithContext")
		pl.edit(u.file, u.call.Args[0].Pos(), u.call.Args[0].End(), b, ctx)
		pl.edit(u.file, u.call.End(), u.call.End(), b, fmt.Sprintf("; err != nil {\n\t%s\n}", handle))
		pl.note(u.call.Pos(), "types", Moved, "StartRecordingToSinkWithContext")
	}
}

// newRecorder moves NewRecorder. Its broadcaster can move or stay.
func (pl *planner) newRecorder(u *use, broadcasterMoves bool) {
	set, moves := pl.moves(ref{nodes: []node{u.node}})
	if len(u.call.Args) == 2 && (moves || broadcasterMoves) {
		pl.source(u, set)
	}
	switch {
	case moves && broadcasterMoves:
		pl.note(u.call.Pos(), "types", Moved, "NewRecorder")
	case moves:
		b, _ := pl.root(u.recv)
		pl.edit(u.file, u.sel.X.End(), u.sel.X.End(), set, ".(*"+qualify(dropInPath)+"Broadcaster).Events()")
		pl.note(u.call.Pos(), "types", Moved, "NewRecorder of the broadcaster of compat/record, which stays: %s", pl.whyLeft(ref{nodes: []node{b}}))
	case broadcasterMoves:
		b, _ := pl.root(u.recv)
		pl.edit(u.file, u.call.Pos(), u.call.Pos(), b, qualify(compatPath)+"NewRecorder(")
		pl.edit(u.file, u.call.End(), u.call.End(), b, ", nil)")
		pl.note(u.call.Pos(), "types", Moved, "compat.NewRecorder adapts a recorder that stays: %s", pl.whyLeft(ref{nodes: []node{u.node}}))
	}
}

// source replaces an EventSource by its component.
func (pl *planner) source(u *use, set node) {
	arg := u.call.Args[1]
	lit, ok := ast.Unparen(arg).(*ast.CompositeLit)
	if !ok {
		pl.edit(u.file, arg.End(), arg.End(), set, ".Component")
		return
	}
	var component ast.Expr
	for i, e := range lit.Elts {
		kv, ok := e.(*ast.KeyValueExpr)
		switch {
		case !ok && i == 0:
			component = e
		case ok && kv.Key.(*ast.Ident).Name == "Component":
			component = kv.Value
		default:
			pl.note(e.Pos(), "types", Decide, "the reporting instance was the host %s; now it is the name of the controller and of the host", u.file.text(valueOf(e)))
		}
	}
	if component == nil {
		pl.edit(u.file, arg.Pos(), arg.End(), set, `""`)
		pl.note(arg.Pos(), "types", Decide, "the recorder has no component, but the API server requires a reporting controller")
		return
	}
	pl.textEdits(u.file, without(u.file.AST, arg, component.Pos(), component.End()), set)
	pl.checkName(u.file, component, "types")
}
