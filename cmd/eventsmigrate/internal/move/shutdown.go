package move

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// NoShutdown is the finding about a broadcaster without Shutdown, in the report and in the
// linter.
const NoShutdown = "nothing shuts down the broadcaster: call Shutdown when its last emitter has ended"

// shutdowns adds the deferred call of Shutdown that most programs lack, and reports where
// nobody can tell how long the owner lives.
func (pl *planner) shutdowns() {
	shut := map[node]bool{}
	for _, r := range pl.shutdownUses {
		if n, ok := pl.root(r); ok {
			shut[n] = true
		}
	}
	for _, u := range pl.uses {
		if n, ok := pl.root(u.recv); ok && u.method == "Shutdown" {
			shut[n] = true
		}
	}
	for _, c := range sorted(pl.Program, pl.constructors) {
		n := pl.find(c.node)
		if c.kind != broadcaster || shut[n] || c.file.Skip != "" || c.file.Outside {
			continue
		}
		shut[n] = true // once for each set
		if pl.deferAtConstructor(c, n) || pl.deferAtStart(n) {
			continue
		}
		if !c.file.isTest() { // as the linter
			pl.note(c.call.Pos(), "shutdown", Decide, NoShutdown)
			pl.unshut[n] = true
		}
	}
}

// deferAtConstructor handles a local variable of a function that lives as long as the
// program, or as long as the emitters.
func (pl *planner) deferAtConstructor(c *constructor, set node) bool {
	if len(c.list) == 0 {
		return false
	}
	assign, ok := c.list[len(c.list)-1].(*ast.AssignStmt)
	if !ok || len(assign.Lhs) != 1 {
		return false
	}
	id, ok := assign.Lhs[0].(*ast.Ident)
	if !ok || id.Name == "_" {
		return false
	}
	body, typ := enclosing(c.list)
	if body == nil || !slices.Contains(body.List, ast.Stmt(assign)) {
		return false
	}
	o := ObjectOf(c.file.Pkg.Info, id)
	if v, ok := o.(*types.Var); !ok || v.Parent() == c.file.Pkg.Types.Scope() || v.IsField() {
		return false
	}
	isMain := c.fun != nil && c.fun.Name.Name == "main" && c.fun.Recv == nil && c.file.Pkg.Types.Name() == "main" && c.fun.Body == body
	if !isMain && (!blocks(c.file.Pkg.Info, body, assign.End(), c.file.Pkg.Types.Name() == "main") || !returnsNothing(c.file.Pkg.Info, typ) || returned(c.file.Pkg.Info, body, o)) {
		return false
	}
	pl.insertDefer(c.file, assign, id.Name, set, body)
	return true
}

// deferAtStart handles a field: the method that starts the recording and then waits
// outlives the emitters.
func (pl *planner) deferAtStart(set node) bool {
	for _, u := range sorted(pl.Program, pl.uses) {
		n, ok := pl.root(u.recv)
		if !ok || n != set || u.method != "StartRecordingToSink" || u.file.Skip != "" || u.file.Outside || hasCall(u.sel.X) {
			continue
		}
		body, typ := enclosing(u.stack)
		if body == nil || len(u.stack) == 0 {
			continue
		}
		stmt, ok := u.stack[len(u.stack)-1].(*ast.ExprStmt)
		if !ok || !slices.Contains(body.List, ast.Stmt(stmt)) {
			continue
		}
		info := u.file.Pkg.Info
		if _, isField := ast.Unparen(u.sel.X).(*ast.SelectorExpr); !isField || !blocks(info, body, stmt.End(), false) || !returnsNothing(info, typ) {
			continue
		}
		pl.insertDefer(u.file, stmt, u.file.text(u.sel.X), set, body)
		return true
	}
	return false
}

func (pl *planner) insertDefer(f *File, stmt ast.Stmt, name string, set node, body *ast.BlockStmt) {
	at := f.restOfLine(stmt.End()) // a comment can be behind it
	pl.edit(f, at, at, set, "\ndefer "+name+".Shutdown()")
	pl.note(stmt.Pos(), "shutdown", Moved, "defer %s.Shutdown()", name)
	if exit := exits(f.Pkg.Info, body, stmt.End()); exit != nil {
		pl.note(exit.Pos(), "shutdown", Decide, "%s does not run deferred functions: call %s.Shutdown() before it", f.text(exit.Fun), name)
	}
}

// enclosing returns the innermost function around a node.
func enclosing(stack []ast.Node) (*ast.BlockStmt, *ast.FuncType) {
	for _, s := range slices.Backward(stack) {
		switch s := s.(type) {
		case *ast.FuncLit:
			return s.Body, s.Type
		case *ast.FuncDecl:
			return s.Body, s.Type
		}
	}
	return nil, nil
}

// returnsNothing reports whether a function returns nothing or an error: constructors
// return what needs the broadcaster.
func returnsNothing(info *types.Info, t *ast.FuncType) bool {
	if t.Results == nil || len(t.Results.List) == 0 {
		return true
	}
	return len(t.Results.List) == 1 && len(t.Results.List[0].Names) <= 1 &&
		types.Identical(info.TypeOf(t.Results.List[0].Type), types.Universe.Lookup("error").Type())
}

func returned(info *types.Info, body *ast.BlockStmt, o types.Object) (found bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		if r, ok := n.(*ast.ReturnStmt); ok {
			ast.Inspect(r, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok && info.Uses[id] == o {
					found = true
				}
				return !found
			})
		}
		return !found
	})
	return found
}

// blocks reports whether a function waits after a position: it receives from a channel,
// or it runs something if it belongs to a program.
func blocks(info *types.Info, body *ast.BlockStmt, after token.Pos, program bool) bool {
	for _, s := range body.List {
		if s.Pos() < after {
			continue
		}
		switch s.(type) {
		case *ast.GoStmt, *ast.DeferStmt:
			continue
		}
		found := false
		ast.Inspect(s, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncLit, *ast.GoStmt:
				return false
			case *ast.UnaryExpr:
				if n.Op == token.ARROW && endless(info, n.X) {
					found = true
				}
			case *ast.CallExpr:
				if program && runs(n) {
					found = true
				}
			}
			return !found
		})
		if found {
			return true
		}
	}
	return false
}

// endless reports whether a channel tells that the program ends: a channel of struct{}.
func endless(info *types.Info, e ast.Expr) bool {
	t := info.TypeOf(e)
	if t == nil {
		return false
	}
	c, ok := t.Underlying().(*types.Chan)
	if !ok {
		return false
	}
	s, ok := c.Elem().Underlying().(*types.Struct)
	return ok && s.NumFields() == 0
}

// runs reports whether a call runs what the program consists of.
func runs(c *ast.CallExpr) bool {
	name := ""
	switch f := ast.Unparen(c.Fun).(type) {
	case *ast.SelectorExpr:
		name = f.Sel.Name
	case *ast.Ident:
		name = f.Name
	}
	return slices.Contains([]string{"Start", "Run", "RunOrDie", "RunUntil", "Wait", "ListenAndServe", "ListenAndServeTLS", "Serve"}, name)
}

// exits returns a call after a position that ends the program without deferred functions.
func exits(info *types.Info, body *ast.BlockStmt, after token.Pos) (found *ast.CallExpr) {
	ast.Inspect(body, func(n ast.Node) bool {
		if _, ok := n.(*ast.FuncLit); ok || found != nil {
			return false
		}
		if c, ok := n.(*ast.CallExpr); ok && c.Pos() > after {
			if f, ok := ObjectOf(info, c.Fun).(*types.Func); ok {
				switch f.FullName() {
				case "os.Exit", "log.Fatal", "log.Fatalf", "log.Fatalln", klogPath + ".Fatal", klogPath + ".Fatalf", klogPath + ".Exit", klogPath + ".Exitf",
					klogPath + ".FlushAndExit":
					found = c
				}
			}
		}
		return true
	})
	return found
}
