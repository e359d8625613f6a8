package move

import (
	"go/ast"
	"go/constant"
	"go/token"
	"slices"
	"strings"

	"github.com/eventseries/eventseries/cmd/eventsmigrate/internal/rbac"
)

// needs tells in which groups the program writes events after the move.
func (pl *planner) needs() rbac.Needs {
	if pl.Target == Record {
		return rbac.Needs{Core: true}
	}
	n := rbac.Needs{Core: pl.leaderElection, New: pl.newRecorders}
	for _, o := range pl.occurrences {
		if _, ok := pl.moves(ref{nodes: []node{o.expr.Pos()}}); o.file.Outside {
			continue
		} else if ok {
			n.New = true
		} else {
			n.Core = true
		}
	}
	for _, l := range pl.lookups {
		if _, ok := pl.moves(ref{nodes: []node{l.node}}); ok {
			n.New = true
		} else {
			n.Core = true
		}
	}
	for _, u := range pl.uses {
		if _, ok := pl.moves(ref{nodes: []node{u.node}}); ok && u.method == "NewRecorder" {
			n.New = true
		}
	}
	return n
}

// markers changes the markers of kubebuilder.
func (pl *planner) markers() {
	needs := pl.needs()
	pl.plan.Needs = needs
	for _, f := range pl.Files {
		if f.Skip != "" || f.Outside || strings.HasSuffix(f.Name, "_test.go") {
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

// observe finds out whether a file uses leader election or a new recorder.
func (c *collector) observe(f *ast.File) {
	for _, s := range f.Imports {
		switch strings.Trim(s.Path.Value, `"`) {
		case "k8s.io/client-go/tools/leaderelection", "k8s.io/client-go/tools/leaderelection/resourcelock":
			c.leaderElection = true
		case clientPath, eventsPath:
			c.newRecorders = true
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
		case *ast.CallExpr:
			sel, ok := n.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if sel.Sel.Name == "GetEventRecorder" {
				c.newRecorders = true
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
