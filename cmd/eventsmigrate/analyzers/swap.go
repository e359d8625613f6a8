package analyzers

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/eventseries/eventseries/cmd/eventsmigrate/internal/move"
)

// recorders is a fact about a package and those that it imports, apart from tests.
type recorders struct {
	Swapped string // a package that imports compat/record, if any
	Stock   string // where one creates a manager of controller-runtime, if any does
	Series  bool   // one makes recorders of series
}

func (*recorders) AFact() {}
func (r *recorders) String() string {
	return fmt.Sprintf("swapped %q, stock %q, series %t", r.Swapped, r.Stock, r.Series)
}

// swaps reports managers whose recorders are those of client-go, although packages of the
// program import compat/record, and nothing makes recorders of series: the change of the
// import has no effect.
func (l *linter) swaps() {
	if move.IsOurs(l.Pkg.Path()) {
		return // not the program
	}
	var all recorders
	for _, p := range l.Pkg.Imports() {
		var r recorders
		if l.ImportPackageFact(p, &r) {
			all.Series = all.Series || r.Series
			all.Swapped, all.Stock = cmp.Or(all.Swapped, r.Swapped), cmp.Or(all.Stock, r.Stock)
		}
	}
	var managers []token.Pos
	for _, f := range l.Files {
		if strings.HasSuffix(l.Fset.File(f.FileStart).Name(), "_test.go") {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ImportSpec:
				if move.IsDropIn(strings.Trim(n.Path.Value, `"`)) {
					all.Swapped = cmp.Or(all.Swapped, l.Pkg.Path())
				}
			case *ast.Ident:
				if fn, ok := l.TypesInfo.Uses[n].(*types.Func); ok && move.MakesSeries(fn) {
					all.Series = true
				}
			case *ast.CallExpr:
				if move.CreatesManager(l.TypesInfo, n) {
					managers = append(managers, n.Pos())
				}
			}
			return true
		})
	}
	const text = "the manager has recorders of client-go, so the import of compat/record in %s has no effect: use NewManager of package controllerruntime"
	if !all.Series && all.Swapped != "" {
		for _, pos := range managers {
			l.Report(analysis.Diagnostic{Pos: pos, Category: "manager", Message: fmt.Sprintf(text, all.Swapped)})
		}
		if len(managers) == 0 && all.Stock != "" && l.Pkg.Name() == "main" && len(l.Files) > 0 {
			l.Report(analysis.Diagnostic{Pos: l.Files[0].Name.Pos(), Category: "manager", Message: fmt.Sprintf(text+" ("+all.Stock+")", all.Swapped)})
		}
	}
	if len(managers) > 0 {
		pos := l.Fset.Position(managers[0])
		all.Stock = fmt.Sprintf("%s/%s:%d", l.Pkg.Path(), filepath.Base(pos.Filename), pos.Line)
	}
	if all != (recorders{}) {
		l.ExportPackageFact(&all)
	}
}
