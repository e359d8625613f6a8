package analyzers

import (
	"fmt"
	"os"

	"golang.org/x/tools/go/analysis"

	"github.com/eventseries/eventseries/cmd/eventsmigrate/internal/move"
)

// Legacy reports calls of the legacy recorder. If no other package sees the recorders of
// a package, it suggests the move.
var Legacy = &analysis.Analyzer{
	Name: "eventslegacy",
	Doc: `find calls of the legacy recorder of client-go

The recorder of events.k8s.io/v1 has a related object and an action. The command eventsmigrate
moves whole programs.`,
	URL: "https://github.com/eventseries/eventseries/blob/main/cmd/eventsmigrate/README.md",
	Run: legacy,
}

var target = string(move.EventSeries)

func init() {
	Legacy.Flags.StringVar(&target, "to", target, "where the recorders move to: eventseries, client-go or controller-runtime")
}

func legacy(pass *analysis.Pass) (any, error) {
	to := move.Target(target)
	switch to {
	case move.EventSeries, move.ClientGo, move.ControllerRuntime:
	default:
		return nil, fmt.Errorf("unknown -to=%s: want eventseries, client-go or controller-runtime", target)
	}
	p := move.NewProgram(pass.Fset)
	p.Annotated = to == move.EventSeries
	read := pass.ReadFile
	if read == nil {
		read = os.ReadFile
	}
	pkg := &move.Package{Path: pass.Pkg.Path(), Types: pass.Pkg, Info: pass.TypesInfo, Files: pass.Files}
	for _, f := range pass.Files {
		src, err := read(pass.Fset.File(f.FileStart).Name())
		if err != nil {
			return nil, err
		}
		p.AddFile(pkg, f, src)
	}
	p.Collect(pkg)
	p.BlockExported(pkg)
	plan := p.Plan(move.Options{Target: to}, nil)
	edits := p.TextEdits(plan, to)
	first := true
	for _, i := range plan.Items {
		if !i.Call {
			continue
		}
		d := analysis.Diagnostic{Pos: i.Pos, Category: i.Rule, Message: fmt.Sprintf("%s of the legacy recorder has no related object and no action; run eventsmigrate", i.Rule)}
		if i.Status == move.Moved && first {
			first = false
			d.SuggestedFixes = []analysis.SuggestedFix{{Message: "Move the recorders of this package", TextEdits: edits}}
		}
		pass.Report(d)
	}
	return nil, nil
}
