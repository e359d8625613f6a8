package docs

import (
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// source is a file of Go.
type source struct {
	path, dir, pkg string
	module         string // the folder of its module
	test           bool
	file           *ast.File
	fset           *token.FileSet
}

// sources returns the files of a module of this repository, or of all if module is
// empty. The module of the root is ".".
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

// at returns a position for people.
func (s *source) at(pos token.Pos) string { return s.fset.Position(pos).String() }

// line returns the line of a position.
func (s *source) line(pos token.Pos) int { return s.fset.Position(pos).Line }

// text returns what a node looks like.
func (s *source) text(node ast.Node) string {
	var b strings.Builder
	_ = printer.Fprint(&b, s.fset, node) // a Builder takes everything
	return b.String()
}
