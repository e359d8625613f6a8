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

// shutdownUse is a mention of Shutdown of a broadcaster.
type shutdownUse struct {
	recv     ref
	variable types.Object // the receiver, if it is a variable or a field
}

// shutdowns adds the deferred call of Shutdown that most programs lack, and reports where
// nobody can tell how long the owner lives.
func (pl *planner) shutdowns() {
	uses := slices.Clone(pl.shutdownUses)
	for _, u := range pl.uses {
		if u.method == "Shutdown" {
			uses = append(uses, shutdownUse{u.recv, ObjectOf(u.file.Pkg.Info, u.sel.X)})
		}
	}
	// A variable that gets the result of a constructor is this broadcaster only. A field or
	// a parameter can be each broadcaster of its set.
	own := map[types.Object]bool{}
	for _, c := range pl.constructors {
		if v := c.variable(); v != nil {
			own[v] = true
		}
	}
	shut := map[node]bool{}
	closed := map[types.Object]bool{}
	for _, u := range uses {
		if own[u.variable] {
			closed[u.variable] = true
		} else if n, ok := pl.root(u.recv); ok {
			shut[n] = true
		}
	}
	for _, c := range sorted(pl.Program, pl.constructors) {
		n := pl.find(c.node)
		v := c.variable()
		if c.kind != broadcaster || shut[n] || v != nil && closed[v] || c.file.Skip != "" || c.file.Outside {
			continue
		}
		if pl.deferAtConstructor(c, n) {
			continue
		}
		if shut[n] = pl.deferAtStart(n); !shut[n] && !c.file.isTest() { // as the linter
			pl.note(c.call.Pos(), "shutdown", Decide, NoShutdown)
			pl.unshut[c] = true
		}
	}
}

// variable returns the local variable that gets the broadcaster, or nil.
func (c *constructor) variable() *types.Var {
	if len(c.list) == 0 {
		return nil
	}
	assign, ok := c.list[len(c.list)-1].(*ast.AssignStmt)
	if !ok || len(assign.Lhs) != 1 {
		return nil
	}
	v, ok := ObjectOf(c.file.Pkg.Info, assign.Lhs[0]).(*types.Var)
	if !ok || v.Parent() == c.file.Pkg.Types.Scope() || v.IsField() {
		return nil
	}
	return v
}

// deferAtConstructor handles a local variable of a function that certainly ends with the
// program, and gives its recorders to nothing that outlives it.
func (pl *planner) deferAtConstructor(c *constructor, set node) bool {
	o := c.variable()
	if o == nil {
		return false
	}
	assign := c.list[len(c.list)-1].(*ast.AssignStmt)
	body, typ := enclosing(c.list)
	if body == nil || !slices.Contains(body.List, ast.Stmt(assign)) {
		return false
	}
	if !pl.outlives(c.file, c.fun, body) {
		ends := pl.waits(c.file, c.fun, body, assign.End(), 0) && returnsNothing(c.file.Pkg.Info, typ)
		if !ends || returned(c.file.Pkg.Info, body, o) || escapes(c.file.Pkg, c.fun, o) {
			return false
		}
	}
	pl.insertDefer(c.file, assign, o.Name(), set, body)
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
		if _, isField := ast.Unparen(u.sel.X).(*ast.SelectorExpr); !isField || !pl.waits(u.file, u.fun, body, stmt.End(), 0) || !returnsNothing(info, typ) {
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
	return t.Results.NumFields() == 0 || returnsError(info, t)
}

// returnsError reports whether a function returns an error, and nothing else.
func returnsError(info *types.Info, t *ast.FuncType) bool {
	return t.Results.NumFields() == 1 && types.Identical(info.TypeOf(t.Results.List[0].Type), types.Universe.Lookup("error").Type())
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

// exits returns a call after a position that ends the program without deferred functions.
func exits(info *types.Info, body *ast.BlockStmt, after token.Pos) (found *ast.CallExpr) {
	ast.Inspect(body, func(n ast.Node) bool {
		if _, ok := n.(*ast.FuncLit); ok || found != nil {
			return false
		}
		if c, ok := n.(*ast.CallExpr); ok && c.Pos() > after && isExit(info, c) {
			found = c
		}
		return true
	})
	return found
}

// isExit reports whether a call ends the program without deferred functions.
func isExit(info *types.Info, c *ast.CallExpr) bool {
	f, ok := ObjectOf(info, c.Fun).(*types.Func)
	return ok && slices.Contains([]string{
		"os.Exit", "log.Fatal", "log.Fatalf", "log.Fatalln", klogPath + ".Fatal", klogPath + ".Fatalf", klogPath + ".Exit", klogPath + ".Exitf",
		klogPath + ".FlushAndExit",
	}, f.FullName())
}
