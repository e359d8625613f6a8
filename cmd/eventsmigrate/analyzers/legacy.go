package analyzers

import (
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/types/typeutil"

	"github.com/eventseries/eventseries/cmd/eventsmigrate/internal/move"
)

// Legacy reports calls of the legacy recorder.
var Legacy = &analysis.Analyzer{
	Name: "eventslegacy",
	Doc: `find calls of the legacy recorder of client-go

The recorder of events.k8s.io/v1 has a related object and an action. The command eventsmigrate
moves whole programs.`,
	URL: "https://github.com/eventseries/eventseries/blob/main/cmd/eventsmigrate/README.md",
	Run: legacy,
}

func legacy(pass *analysis.Pass) (any, error) {
	for _, f := range pass.Files {
		for n := range ast.Preorder(f) {
			if call, ok := n.(*ast.CallExpr); ok {
				if fn, ok := typeutil.Callee(pass.TypesInfo, call).(*types.Func); ok && move.IsLegacyMethod(fn) {
					pass.Reportf(call.Pos(), "%s of the legacy recorder has no related object and no action; run eventsmigrate", fn.Name())
				}
			}
		}
	}
	return nil, nil
}
