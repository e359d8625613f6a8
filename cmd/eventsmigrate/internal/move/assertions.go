package move

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// assertions reports the strings that tests expect from a fake: the new fake writes the same
// string for an event, but without its annotations.
func (pl *planner) assertions() {
	var packages []*Package
	for _, o := range pl.occurrences {
		if o.kind == fake && pl.annotated[pl.find(o.expr.Pos())] {
			packages = append(packages, o.file.Pkg)
		}
	}
	for _, c := range pl.constructors {
		if pl.annotated[pl.find(c.node)] {
			packages = append(packages, c.file.Pkg)
		}
	}
	for _, f := range pl.Files {
		if !slices.Contains(packages, f.Pkg) || !f.isTest() || f.Skip != "" {
			continue
		}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && strings.Contains(lit.Value, " map[") {
				pl.note(lit.Pos(), "tests", Decide, "the string of an event in the channel of the new FakeRecorder ends without the annotations")
			}
			return true
		})
	}
}
