package move

import (
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/types/typeutil"
)

// maxDepth bounds how many calls are followed to find out how long a function runs.
const maxDepth = 5

// callSite is a direct call of a function of the program.
type callSite struct {
	call *ast.CallExpr
	file *File
	fun  *ast.FuncDecl // around it, or nil
	last bool          // in the last statement of main
}

// functions are the declared functions of the program, and where it calls them, by the
// position of their names.
type functions struct {
	decls  map[token.Pos]*ast.FuncDecl
	calls  map[token.Pos][]callSite
	values map[token.Pos]bool // also used without a call

	judged map[*types.Var]bool // by a call of variable that has not returned
}

func (pl *planner) functions() *functions {
	if pl.known != nil {
		return pl.known
	}
	k := &functions{decls: map[token.Pos]*ast.FuncDecl{}, calls: map[token.Pos][]callSite{}, values: map[token.Pos]bool{}, judged: map[*types.Var]bool{}}
	for _, f := range pl.Files {
		if f.isTest() {
			continue
		}
		for _, d := range f.AST.Decls {
			fun, _ := d.(*ast.FuncDecl)
			var last *ast.CallExpr
			if fun != nil {
				k.decls[fun.Name.Pos()] = fun
				if isMain(f, fun) && len(fun.Body.List) > 0 {
					last = callIn(f.Pkg.Info, fun.Body.List[len(fun.Body.List)-1])
				}
			}
			called := map[*ast.Ident]bool{}
			ast.Inspect(d, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CallExpr:
					if fn, ok := typeutil.Callee(f.Pkg.Info, n).(*types.Func); ok && pl.fileOf(fn.Origin().Pos()) != nil {
						at := fn.Origin().Pos()
						k.calls[at] = append(k.calls[at], callSite{n, f, fun, n == last})
						called[identOf(n.Fun)] = true
					}
				case *ast.Ident:
					if fn, ok := f.Pkg.Info.Uses[n].(*types.Func); ok && !called[n] {
						k.values[fn.Origin().Pos()] = true
					}
				}
				return true
			})
		}
	}
	pl.known = k
	return k
}

// identOf returns the identifier of a function that an expression names, or nil.
func identOf(e ast.Expr) *ast.Ident {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		return e
	case *ast.SelectorExpr:
		return e.Sel
	case *ast.IndexExpr:
		return identOf(e.X)
	case *ast.IndexListExpr:
		return identOf(e.X)
	}
	return nil
}

// callIn returns the call after which a statement does nothing but handle an error or
// exit, or nil.
func callIn(info *types.Info, s ast.Stmt) *ast.CallExpr {
	var e ast.Expr
	switch s := s.(type) {
	case *ast.ExprStmt:
		e = s.X
	case *ast.AssignStmt:
		e = s.Rhs[0]
	case *ast.IfStmt:
		if s.Else != nil || !fails(info, s.Cond) {
			return nil
		}
		if s.Init != nil {
			return callIn(info, s.Init)
		}
		e = ast.Unparen(s.Cond).(*ast.BinaryExpr).X
	}
	call, ok := e.(*ast.CallExpr)
	if ok && isExit(info, call) && len(call.Args) == 1 {
		call, _ = call.Args[0].(*ast.CallExpr)
	}
	return call
}

func isMain(f *File, fun *ast.FuncDecl) bool {
	return fun != nil && fun.Body != nil && fun.Name.Name == "main" && fun.Recv == nil && f.Pkg.Types.Name() == "main"
}

// outlives reports whether the end of a function is that of the program: it is main, or
// main calls it in its last statement, and nobody else does.
func (pl *planner) outlives(f *File, fun *ast.FuncDecl, body *ast.BlockStmt) bool {
	if fun == nil || fun.Body != body {
		return false
	}
	if isMain(f, fun) {
		return true
	}
	sites := pl.functions().calls[fun.Name.Pos()]
	return len(sites) == 1 && sites[0].last && f.Pkg.Types.Name() == "main"
}

// waits reports whether a function certainly waits for the end of the program after a
// position: it reaches, on all paths that do not fail, a wait for a context or a channel
// that ends with the program.
func (pl *planner) waits(f *File, fun *ast.FuncDecl, body *ast.BlockStmt, after token.Pos, depth int) bool {
	if fun == nil || depth > maxDepth {
		return false
	}
	w := &waiting{pl, f, fun, depth}
	for _, s := range body.List {
		if s.Pos() < after {
			continue
		}
		if w.statement(s) {
			return true
		}
		if w.leaves(s) {
			return false
		}
	}
	return false
}

// waiting judges the statements of a function.
type waiting struct {
	*planner
	file  *File
	fun   *ast.FuncDecl
	depth int
}

// statement reports whether a statement waits whenever it runs.
func (w *waiting) statement(s ast.Stmt) bool {
	switch s := s.(type) {
	case *ast.ExprStmt:
		return w.expr(s.X)
	case *ast.AssignStmt:
		return slices.ContainsFunc(s.Rhs, w.expr)
	case *ast.ReturnStmt:
		return slices.ContainsFunc(s.Results, w.expr)
	case *ast.BlockStmt:
		return slices.ContainsFunc(s.List, w.statement)
	case *ast.LabeledStmt:
		return w.statement(s.Stmt)
	case *ast.IfStmt:
		return s.Init != nil && w.statement(s.Init) || w.expr(s.Cond)
	case *ast.SelectStmt:
		// Also an empty one, which waits for ever.
		return !slices.ContainsFunc(s.Body.List, func(c ast.Stmt) bool { return !w.isEnd(c.(*ast.CommClause)) })
	case *ast.ForStmt:
		return s.Cond == nil && w.endless(s.Body)
	}
	return false
}

// endless reports whether a loop without a condition ends only where it has received from
// a channel that ends with the program.
func (w *waiting) endless(body *ast.BlockStmt) bool {
	ok := true
	ast.PreorderStack(body, nil, func(n ast.Node, stack []ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.CommClause:
			return !w.isEnd(n)
		case *ast.ReturnStmt:
			ok = false
		case *ast.BranchStmt:
			inner := slices.ContainsFunc(stack, func(s ast.Node) bool {
				switch s.(type) {
				case *ast.ForStmt, *ast.RangeStmt, *ast.SwitchStmt, *ast.TypeSwitchStmt, *ast.SelectStmt:
					return true
				}
				return false
			})
			if n.Tok == token.GOTO || n.Tok == token.BREAK && (n.Label != nil || !inner) {
				ok = false
			}
		}
		return ok
	})
	return ok
}

// isEnd reports whether a case of a select receives from a channel that ends with the
// program.
func (w *waiting) isEnd(c *ast.CommClause) bool {
	var e ast.Expr
	switch s := c.Comm.(type) {
	case *ast.ExprStmt:
		e = s.X
	case *ast.AssignStmt:
		e = s.Rhs[0]
	}
	u, ok := e.(*ast.UnaryExpr)
	return ok && u.Op == token.ARROW && w.lasts(u.X)
}

// expr reports whether the evaluation of an expression waits.
func (w *waiting) expr(e ast.Expr) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.BinaryExpr:
			if n.Op == token.LAND || n.Op == token.LOR {
				found = found || w.expr(n.X)
				return false
			}
		case *ast.UnaryExpr:
			found = found || n.Op == token.ARROW && w.lasts(n.X)
		case *ast.CallExpr:
			found = found || w.call(n)
		}
		return !found
	})
	return found
}

// waitPath is the package of Kubernetes with loops.
const waitPath = "k8s.io/apimachinery/pkg/util/wait"

// waiters are functions that return when the context or the channel among their arguments
// ends.
var waiters = []string{
	"(" + runtimeManagerPath + ".Manager).Start", "k8s.io/client-go/tools/leaderelection.RunOrDie", "(*k8s.io/client-go/tools/leaderelection.LeaderElector).Run",
	waitPath + ".Until", waitPath + ".UntilWithContext", waitPath + ".NonSlidingUntil", waitPath + ".NonSlidingUntilWithContext",
	waitPath + ".JitterUntil", waitPath + ".JitterUntilWithContext",
}

// call reports whether a call waits: it gets a context or a channel that ends with the
// program, and waits for it.
func (w *waiting) call(n *ast.CallExpr) bool {
	fn, ok := typeutil.Callee(w.file.Pkg.Info, n).(*types.Func)
	if !ok {
		return false
	}
	fn = fn.Origin()
	if fn.FullName() == waitPath+".Forever" {
		return true
	}
	lasting, given := false, false
	for _, a := range n.Args {
		if isSignal(w.file.Pkg.Info.TypeOf(a)) {
			given = true
			lasting = lasting || w.lasts(a)
		}
	}
	if slices.Contains(waiters, fn.FullName()) {
		return lasting
	}
	decl, file := w.functions().decls[fn.Pos()], w.fileOf(fn.Pos())
	if decl == nil || decl.Body == nil || file == nil || given && !lasting {
		return false
	}
	return w.waits(file, decl, decl.Body, token.NoPos, w.depth+1)
}

// leaves reports whether a statement can return without an error.
func (w *waiting) leaves(s ast.Stmt) (found bool) {
	info := w.file.Pkg.Info
	ast.PreorderStack(s, nil, func(n ast.Node, stack []ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.BranchStmt:
			found = found || n.Tok == token.GOTO
		case *ast.ReturnStmt:
			failed := len(n.Results) > 0 && isNewError(info, n.Results[len(n.Results)-1])
			for i, s := range stack {
				if branch, ok := s.(*ast.IfStmt); ok && i+1 < len(stack) && stack[i+1] == ast.Node(branch.Body) {
					failed = failed || fails(info, branch.Cond)
				}
			}
			found = found || !failed
		}
		return !found
	})
	return found
}

// isNewError reports whether e is a call of fmt.Errorf or errors.New.
func isNewError(info *types.Info, e ast.Expr) bool {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return false
	}
	fn, ok := typeutil.Callee(info, call).(*types.Func)
	return ok && (fn.FullName() == "fmt.Errorf" || fn.FullName() == "errors.New")
}

// fails reports whether a condition tells that something has failed: err != nil, or
// !cache.WaitForCacheSync(…).
func fails(info *types.Info, cond ast.Expr) bool {
	switch e := ast.Unparen(cond).(type) {
	case *ast.BinaryExpr:
		return e.Op == token.NEQ && info.Types[e.Y].IsNil() && types.Identical(info.TypeOf(e.X), types.Universe.Lookup("error").Type())
	case *ast.UnaryExpr:
		call, ok := ast.Unparen(e.X).(*ast.CallExpr)
		if !ok || e.Op != token.NOT {
			return false
		}
		o := ObjectOf(info, call.Fun)
		return o != nil && strings.HasPrefix(o.Name(), "WaitFor")
	}
	return false
}

// isSignal reports whether values of a type can tell that the program ends: a context, or
// a channel of struct{} or of os.Signal.
func isSignal(t types.Type) bool {
	if t == nil {
		return false
	}
	if isNamed(t, "context", "Context") {
		return true
	}
	c, ok := t.Underlying().(*types.Chan)
	if !ok {
		return false
	}
	s, ok := c.Elem().Underlying().(*types.Struct)
	return ok && s.NumFields() == 0 || isNamed(c.Elem(), "os", "Signal")
}

// stopName are the names of channels that close at the end of a program.
var stopName = regexp.MustCompile(`(?i)stop|quit|exit|term|shutdown`)

// lasts reports whether a context or a channel ends with the program, and not before.
func (w *waiting) lasts(e ast.Expr) bool { return w.lastsAt(e, 0) }

func (w *waiting) lastsAt(e ast.Expr, depth int) bool {
	info := w.file.Pkg.Info
	t := info.TypeOf(e)
	if depth > maxDepth || !isSignal(t) {
		return false
	}
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		v, ok := info.Uses[e].(*types.Var)
		return ok && w.variable(v, depth)
	case *ast.SelectorExpr: // a field can end at any time
		o := info.Uses[e.Sel]
		return o != nil && o.Pkg() != nil && o.Pkg().Path() == waitPath && o.Name() == "NeverStop"
	case *ast.CallExpr:
		if sel, ok := ast.Unparen(e.Fun).(*ast.SelectorExpr); ok && sel.Sel.Name == "Done" && isNamed(info.TypeOf(sel.X), "context", "Context") {
			return w.lastsAt(sel.X, depth)
		}
		o := ObjectOf(info, e.Fun) // a function, or a variable such as ctrl.SetupSignalHandler
		if o == nil {
			return false
		}
		switch name := describe(o); {
		case name == "context.Background", name == "context.TODO", name == "knative.dev/pkg/signals.NewContext", strings.HasPrefix(o.Name(), "SetupSignal"):
			return true
		}
		if decl := w.functions().decls[o.Pos()]; decl != nil {
			return w.returns(decl, depth)
		}
		// A function that adds a value to a context, such as klog.NewContext.
		return len(e.Args) > 0 && isNamed(t, "context", "Context") && w.lastsAt(e.Args[0], depth)
	}
	return false
}

// returns reports whether a function of the program returns only contexts or channels that
// end with the program.
func (w *waiting) returns(decl *ast.FuncDecl, depth int) bool {
	f := w.fileOf(decl.Pos())
	if decl.Body == nil || f == nil {
		return false
	}
	callee := &waiting{w.planner, f, decl, w.depth}
	found, ok := false, true
	ast.Inspect(decl.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.ReturnStmt:
			found = true
			ok = ok && len(n.Results) == 1 && callee.lastsAt(n.Results[0], depth+1)
		}
		return ok
	})
	return found && ok
}

// variable reports whether a variable ends with the program: a parameter for which all
// callers pass such a value, or a local variable that only such values are assigned to.
func (w *waiting) variable(v *types.Var, depth int) bool {
	if c, ok := v.Type().Underlying().(*types.Chan); ok && isNamed(c.Elem(), "os", "Signal") {
		return w.terminates(v)
	}
	k := w.functions()
	if k.judged[v] { // ctx = f(ctx), or a recursion: the other values decide
		return true
	}
	k.judged[v] = true
	defer delete(k.judged, v)
	index, isParam := w.parameter(v)
	if isParam {
		if k.values[w.fun.Name.Pos()] || !isNamed(v.Type(), "context", "Context") && !stopName.MatchString(v.Name()) {
			return false
		}
		for _, site := range k.calls[w.fun.Name.Pos()] {
			if index >= len(site.call.Args) {
				return false
			}
			caller := &waiting{w.planner, site.file, site.fun, w.depth}
			if site.fun == nil || site.fun != w.fun && !caller.lastsAt(site.call.Args[index], depth+1) {
				return false
			}
		}
	}
	values, ok := w.assigned(v)
	return ok && (isParam || len(values) > 0) && !slices.ContainsFunc(values, func(e ast.Expr) bool { return !w.lastsAt(e, depth) })
}

// terminates reports whether the function sends to a channel only the signals that end
// programs.
func (w *waiting) terminates(v *types.Var) (yes bool) {
	info := w.file.Pkg.Info
	ast.Inspect(w.fun, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) < 2 || ObjectOf(info, call.Args[0]) != v {
			return true
		}
		fn, ok := typeutil.Callee(info, call).(*types.Func)
		yes = ok && fn.FullName() == "os/signal.Notify" && areFatal(info, call.Args[1:])
		return false
	})
	return yes
}

// areFatal reports whether expressions are signals that end programs. Without one, the
// functions of package signal take all signals.
func areFatal(info *types.Info, signals []ast.Expr) bool {
	return len(signals) > 0 && !slices.ContainsFunc(signals, func(e ast.Expr) bool {
		o := ObjectOf(info, e)
		return o == nil || !slices.Contains([]string{"Interrupt", "Kill", "SIGINT", "SIGTERM", "SIGQUIT"}, o.Name())
	})
}

// parameter returns the index of a parameter of the function.
func (w *waiting) parameter(v *types.Var) (int, bool) {
	i := 0
	for _, f := range w.fun.Type.Params.List {
		for _, name := range f.Names {
			if w.file.Pkg.Info.Defs[name] == v {
				return i, true
			}
			i++
		}
	}
	return 0, false
}

// assigned returns what the function assigns to a variable. It returns false for a value
// that can end earlier, such as a context with a timeout.
func (w *waiting) assigned(v *types.Var) (values []ast.Expr, ok bool) {
	info := w.file.Pkg.Info
	ok = true
	ast.Inspect(w.fun, func(n ast.Node) bool {
		a, is := n.(*ast.AssignStmt)
		if !is {
			return true
		}
		for i, l := range a.Lhs {
			if ObjectOf(info, l) != v {
				continue
			}
			if len(a.Lhs) == len(a.Rhs) {
				values = append(values, a.Rhs[i])
				continue
			}
			value := w.cancelable(a)
			if ok = ok && value != nil; ok {
				values = append(values, value)
			}
		}
		return true
	})
	return values, ok
}

// cancelable returns the context from which an assignment of a context and its cancel
// function derives them, or nil if the new context can end earlier.
func (w *waiting) cancelable(a *ast.AssignStmt) ast.Expr {
	call, ok := ast.Unparen(a.Rhs[0]).(*ast.CallExpr)
	if !ok || len(a.Lhs) != 2 || len(call.Args) == 0 {
		return nil
	}
	fn, _ := typeutil.Callee(w.file.Pkg.Info, call).(*types.Func)
	switch {
	case fn == nil || !w.onlyDeferred(a.Lhs[1]):
		return nil
	case strings.HasPrefix(fn.FullName(), "context.WithCancel"), fn.FullName() == "os/signal.NotifyContext" && areFatal(w.file.Pkg.Info, call.Args[1:]):
		return call.Args[0]
	}
	return nil
}

// onlyDeferred reports whether the function calls cancel when it returns, and not before.
func (w *waiting) onlyDeferred(cancel ast.Expr) bool {
	if blank(cancel) {
		return true
	}
	info := w.file.Pkg.Info
	o := ObjectOf(info, cancel)
	ok := o != nil
	ast.PreorderStack(w.fun, nil, func(n ast.Node, stack []ast.Node) bool {
		if id, is := n.(*ast.Ident); is && info.Uses[id] == o && o != nil {
			ok = ok && len(stack) > 1
			if ok {
				_, ok = stack[len(stack)-2].(*ast.DeferStmt)
			}
		}
		return ok
	})
	return ok
}

// escapes reports whether a function stores a broadcaster, or what it makes of it, where it
// outlives the function: in a package variable, or in a field of a parameter or of the
// receiver.
func escapes(pkg *Package, fun *ast.FuncDecl, broadcaster types.Object) (found bool) {
	info := pkg.Info
	derived := map[types.Object]bool{broadcaster: true}
	uses := func(e ast.Expr) (yes bool) {
		ast.Inspect(e, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && derived[info.Uses[id]] {
				yes = true
			}
			return !yes
		})
		return yes
	}
	local := func(o types.Object) bool { // declared in the body
		return o != nil && fun.Body.Pos() <= o.Pos() && o.Pos() < fun.Body.End()
	}
	ast.Inspect(fun, func(n ast.Node) bool {
		a, ok := n.(*ast.AssignStmt)
		if !ok || !slices.ContainsFunc(a.Rhs, uses) {
			return true
		}
		for _, l := range a.Lhs {
			if blank(l) {
				continue
			}
			if root := base(info, l); !local(root) {
				found = true
			} else if _, isIdent := ast.Unparen(l).(*ast.Ident); isIdent && mentions(root.Type()) {
				derived[root] = true
			}
		}
		return true
	})
	return found
}

// base returns the variable at the begin of an expression such as v.field[i].
func base(info *types.Info, e ast.Expr) types.Object {
	for {
		switch x := ast.Unparen(e).(type) {
		case *ast.Ident:
			return ObjectOf(info, x)
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		default:
			return nil
		}
	}
}
