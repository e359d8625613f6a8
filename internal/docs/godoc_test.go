package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Everything that is exported has a comment, in all modules, tests included.
func TestExportedIdentifiersHaveComments(t *testing.T) {
	n := 0
	for _, f := range sources(t, "") {
		for _, decl := range f.file.Decls {
			n += exported(f, decl, func(node ast.Node, name string) {
				t.Errorf("%s: %s has no comment", f.at(node.Pos()), name)
			})
		}
	}
	assert.Greater(t, n, 300)
}

// exported calls missing for each exported identifier of a declaration that has no
// comment, and returns how many there are in all. Functions that the go command
// calls need none, and methods that no document shows.
func exported(f *source, decl ast.Decl, missing func(node ast.Node, name string)) (n int) {
	check := func(node ast.Node, name string, comments ...*ast.CommentGroup) {
		if !ast.IsExported(name) {
			return
		}
		n++
		for _, comment := range comments {
			if strings.TrimSpace(comment.Text()) != "" {
				return
			}
		}
		missing(node, name)
	}
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			if !calledByTheGoCommand(d.Name.Name) {
				check(d, d.Name.Name, d.Doc)
			}
		} else if receiver := receiverOf(d.Recv.List[0].Type); ast.IsExported(receiver) {
			check(d, d.Name.Name, d.Doc)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				check(s, s.Name.Name, s.Doc, d.Doc)
				// In the modules of tests the comment of the type is for all of it.
				if ast.IsExported(s.Name.Name) && f.module == "." {
					n += exportedMembers(f, s, missing)
				}
			case *ast.ValueSpec:
				for _, name := range s.Names {
					check(s, name.Name, s.Doc, s.Comment, d.Doc)
				}
			}
		}
	}
	return n
}

// exportedMembers is exported for the fields and methods of a type. A comment is for
// those as well that follow it line by line, and the type's own for those on its
// line.
func exportedMembers(f *source, s *ast.TypeSpec, missing func(node ast.Node, name string)) (n int) {
	var fields *ast.FieldList
	switch typ := s.Type.(type) {
	case *ast.StructType:
		fields = typ.Fields
	case *ast.InterfaceType:
		fields = typ.Methods
	default:
		return 0
	}
	covered := f.line(s.Pos()) // the last line that a comment is for
	for _, field := range fields.List {
		first := f.line(field.Pos())
		if strings.TrimSpace(field.Doc.Text()+field.Comment.Text()) != "" || first == covered || first == covered+1 && first != f.line(s.Pos())+1 {
			covered = f.line(field.End())
		}
		for _, name := range field.Names {
			if !name.IsExported() {
				continue
			}
			n++
			if covered < first {
				missing(field, s.Name.Name+"."+name.Name)
			}
		}
	}
	return n
}

func receiverOf(expr ast.Expr) string {
	switch e := expr.(type) {
	case *ast.StarExpr:
		return receiverOf(e.X)
	case *ast.IndexExpr:
		return receiverOf(e.X)
	case *ast.IndexListExpr:
		return receiverOf(e.X)
	case *ast.Ident:
		return e.Name
	default:
		return ""
	}
}

func calledByTheGoCommand(name string) bool {
	for _, prefix := range []string{"Test", "Benchmark", "Fuzz", "Example"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// Every package says what it is. Those that users import say how it is used, what can
// be relied on, and what cannot.
func TestPackageComments(t *testing.T) {
	comments := map[string]string{}
	files := map[string]*source{}
	for _, f := range sources(t, "") {
		if strings.HasSuffix(f.pkg, "_test") {
			continue
		}
		if f.file.Doc != nil && f.file.Doc.Pos().IsValid() && f.file.Doc.End() < f.file.Package+token.Pos(1) {
			comments[f.dir] += f.file.Doc.Text()
		}
		files[f.dir] = f
	}
	public := 0
	for dir, f := range files {
		comment := comments[dir]
		begin := "Package " + f.pkg + " "
		if f.pkg == "main" {
			begin = ""
		}
		if !assert.NotEmpty(t, comment, "%s has no package comment", dir) || !assert.True(t, strings.HasPrefix(comment, begin), "%s: %q", dir, comment) {
			continue
		}
		if f.module != "." || f.pkg == "main" || strings.Contains("/"+dir+"/", "/internal/") {
			continue
		}
		public++
		at := 0
		// How it is used may have a heading for each use.
		for _, heading := range []string{"\n# ", "\n# Guarantees\n", "\n# Limitations\n"} {
			i := strings.Index(comment, heading)
			assert.Greater(t, i, at, "%s: no %q, or not in order", dir, strings.TrimSpace(heading))
			at = i
		}
	}
	assert.GreaterOrEqual(t, public, 4)
}

func TestExported(t *testing.T) {
	for code, want := range map[string][]string{
		"// A is.\ntype A struct {\n\tB, C int\n\td int\n}":                 {"A.B", "A.C"},
		"// A is.\ntype A struct{ B int }":                                  nil,
		"// A is.\ntype A struct {\n\t// B is, and C.\n\tB int\n\tC int\n}": nil,
		"// A is.\ntype A struct {\n\tB int // is\n\n\tC int\n}":            {"A.C"},
		"// A is.\ntype A interface {\n\tB()\n\t// C does.\n\tC()\n}":       {"A.B"},
		"type A int":                               {"A"},
		"// A does.\nfunc A() {}\nfunc B() {}":     {"B"},
		"func (a A) B() {}\nfunc (a *A) c() {}":    {"B"},
		"func (a a) B() {}\nfunc TestA() {}":       nil,
		"const A, b = 1, 2":                        {"A"},
		"// Both are.\nvar (\n\tA = 1\n\tB = 2\n)": nil,
		"const (\n\tA = 1 // is\n\tB = 2\n)":       {"B"},
	} {
		f := &source{module: ".", fset: token.NewFileSet()}
		var err error
		f.file, err = parser.ParseFile(f.fset, "x.go", "package x\n\n"+code, parser.ParseComments)
		require.NoError(t, err)
		var got []string
		for _, decl := range f.file.Decls {
			exported(f, decl, func(_ ast.Node, name string) { got = append(got, name) })
		}
		assert.Equal(t, want, got, code)
	}
}
