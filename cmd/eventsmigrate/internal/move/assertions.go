package move

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
)

// annotations are those behind the string of an event in the channel of the legacy fake.
var annotations = regexp.MustCompile(` map\[[^\[\]]*\]("|` + "`" + `)$`)

// assertions changes the strings that tests expect from a fake. The new fake writes the
// same string for an event, but without its annotations.
func (pl *planner) assertions() {
	var packages []*Package
	add := func(n node, k kind, f *File) {
		if pl.annotated[pl.find(n)] && k == fake && f.Skip == "" && !slices.Contains(packages, f.Pkg) {
			packages = append(packages, f.Pkg)
		}
	}
	for _, c := range sorted(pl.Program, pl.constructors) {
		add(c.node, c.kind, c.file)
	}
	for _, o := range sorted(pl.Program, pl.occurrences) {
		add(o.expr.Pos(), o.kind, o.file)
	}
	for _, f := range pl.Files {
		if !slices.Contains(packages, f.Pkg) || !f.isTest() || f.Skip != "" {
			continue
		}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING || !strings.Contains(lit.Value, " map[") {
				return true
			}
			at := annotations.FindStringIndex(lit.Value)
			if at == nil || !strings.HasPrefix(lit.Value[1:], "Normal ") && !strings.HasPrefix(lit.Value[1:], "Warning ") {
				pl.note(lit.Pos(), "tests", Decide, "the string of an event in the channel of the new FakeRecorder ends without the annotations")
				return true
			}
			pl.edit(f, lit.Pos()+token.Pos(at[0]), lit.End()-1, 0, "")
			pl.note(lit.Pos(), "tests", Moved, "the string of an event ends without the annotations")
			return true
		})
	}
}
