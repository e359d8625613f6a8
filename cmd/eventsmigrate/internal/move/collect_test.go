package move

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A place that the tool cannot read is in the report, and the file stays.
func TestCollectReportsFailures(t *testing.T) {
	fset := token.NewFileSet()
	const src = "package a\n\nfunc b() { c() }\n\nfunc c() {}\n"
	f, err := parser.ParseFile(fset, "a.go", src, 0)
	require.NoError(t, err)
	pkg := &Package{Path: "a", Types: types.NewPackage("a", "a"), Files: []*ast.File{f}} // without types
	p := NewProgram(fset)
	p.AddFile(pkg, f, []byte(src))
	p.Collect(pkg)
	plan := p.Plan(Options{Target: ClientGo}, nil)
	require.Len(t, plan.Items, 1)
	assert.Equal(t, Left, plan.Items[0].Status)
	assert.Contains(t, plan.Items[0].Text, "the tool cannot judge this place: ")
}
