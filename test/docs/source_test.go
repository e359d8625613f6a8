package docs

import (
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// source is a Go file.
type source struct {
	path, dir, pkg string
	module         string // the directory of its module
	test           bool
	file           *ast.File
	fset           *token.FileSet
}

// sources returns the Go files of the module in the given directory, or of all modules if
// module is empty.
func sources(t *testing.T, module string) (all []*source) {
	t.Helper()
	modules := map[string]bool{}
	walk(t, "go.mod", func(p string) { modules[path.Dir(p)] = true })
	walk(t, ".go", func(p string) {
		s := &source{path: p, dir: path.Dir(p), test: strings.HasSuffix(p, "_test.go"), fset: token.NewFileSet()}
		for s.module = s.dir; !modules[s.module]; {
			s.module = path.Dir(s.module)
		}
		if module != "" && s.module != module {
			return
		}
		file, err := parser.ParseFile(s.fset, p, read(t, p), parser.ParseComments|parser.SkipObjectResolution)
		require.NoError(t, err)
		s.file, s.pkg = file, file.Name.Name
		all = append(all, s)
	})
	require.NotEmpty(t, all)
	return all
}

// released reports whether users can import the file: the modules below test have no
// versions.
func (s *source) released() bool { return s.module == "." || s.module == "controllerruntime" }

func (s *source) line(pos token.Pos) int { return s.fset.Position(pos).Line }

// text returns the source code of a node.
func (s *source) text(node ast.Node) string {
	var b strings.Builder
	_ = printer.Fprint(&b, s.fset, node) // a Builder returns no error
	return b.String()
}

func TestExportedIdentifiersHaveComments(t *testing.T) {
	n := 0
	for _, f := range sources(t, "") {
		total, missing := exported(f)
		n += total
		for _, name := range missing {
			t.Errorf("%s: %s has no comment", f.path, name)
		}
	}
	assert.Greater(t, n, 300)
}

// testFunctionName matches the functions that the go command calls.
var testFunctionName = regexp.MustCompile(`^(Test|Benchmark|Fuzz|Example)`)

// exported returns the number of exported identifiers in a file, and those that lack a
// comment. It skips test functions, and removes unexported identifiers from the file.
func exported(f *source) (total int, missing []string) {
	check := func(name string, documented bool) {
		total++
		if !documented {
			missing = append(missing, name)
		}
	}
	ast.FileExports(f.file)
	for _, decl := range f.file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			public := !testFunctionName.MatchString(d.Name.Name)
			if d.Recv != nil {
				public = ast.IsExported(strings.TrimPrefix(f.text(d.Recv.List[0].Type), "*"))
			}
			if public {
				check(d.Name.Name, hasText(d.Doc))
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					check(s.Name.Name, hasText(s.Doc, d.Doc))
					// In test modules, the comment of a type is enough.
					if f.released() {
						checkMembers(f, s, check)
					}
				case *ast.ValueSpec:
					for _, name := range s.Names {
						check(name.Name, hasText(s.Doc, s.Comment, d.Doc))
					}
				}
			}
		}
	}
	return total, missing
}

// checkMembers calls check for the fields or methods of a type. A comment covers a member
// and those on the lines directly below it. The comment of the type covers the members on
// its line.
func checkMembers(f *source, s *ast.TypeSpec, check func(name string, documented bool)) {
	var members []*ast.Field
	switch typ := s.Type.(type) {
	case *ast.StructType:
		members = typ.Fields.List
	case *ast.InterfaceType:
		members = typ.Methods.List
	}
	typeLine := f.line(s.Pos())
	covered := typeLine
	for _, member := range members {
		first := f.line(member.Pos())
		if hasText(member.Doc, member.Comment) || first == covered || first == covered+1 && first != typeLine+1 {
			covered = f.line(member.End())
		}
		for _, name := range member.Names {
			check(s.Name.Name+"."+name.Name, first <= covered)
		}
	}
}

func hasText(comments ...*ast.CommentGroup) bool {
	return slices.ContainsFunc(comments, func(c *ast.CommentGroup) bool { return strings.TrimSpace(c.Text()) != "" })
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
		_, missing := exported(f)
		assert.Equal(t, want, missing, code)
	}
}

func TestPackageComments(t *testing.T) {
	comments := map[string]string{}
	files := map[string]*source{}
	for _, f := range sources(t, "") {
		if !strings.HasSuffix(f.pkg, "_test") {
			comments[f.dir] += f.file.Doc.Text()
			files[f.dir] = f
		}
	}
	public := 0
	for dir, f := range files {
		want := "^Package " + f.pkg + " "
		if f.pkg == "main" {
			want = "."
		} else if f.released() && !strings.Contains("/"+dir+"/", "/internal/") {
			public++
			// Each use may have a heading.
			want += `(?s:.*\n# .*\n# Guarantees\n.*\n# Limitations\n)`
		}
		assert.Regexp(t, want, comments[dir], dir)
	}
	assert.GreaterOrEqual(t, public, 6)
}

// The package documentation of the tracker says in which order to read its files.
func TestFilesOfTheTrackerAreListed(t *testing.T) {
	const dir = "internal/tracker"
	var files, listed []string
	for _, f := range sources(t, ".") {
		if f.dir == dir && !f.test && path.Base(f.path) != "doc.go" {
			files = append(files, path.Base(f.path))
		}
	}
	for _, match := range regexp.MustCompile(`(?m)^//\t(\w+\.go) +\w`).FindAllStringSubmatch(read(t, dir+"/doc.go"), -1) {
		listed = append(listed, match[1])
	}
	assert.ElementsMatch(t, files, listed)
}
