package driver

import (
	"cmp"
	"go/token"
	"os"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/eventseries/eventseries/cmd/eventsmigrate/internal/move"
)

// Diagnostic is a result of the linter. Pos is in the file before the move.
type Diagnostic struct {
	Pos  token.Position
	Rule string
	Text string
}

// lint runs an analyzer without requirements and facts on the packages of a build. It reads the
// files with the edits, so a run reports what another run would report afterwards.
func (l *loader) lint(a *analysis.Analyzer, out map[string]*move.Output) (list []Diagnostic, err error) {
	seen := map[string]bool{}
	for _, p := range l.roots {
		pass := &analysis.Pass{
			Analyzer: a, Fset: l.fset, Files: p.Syntax, Pkg: p.Types, TypesInfo: p.TypesInfo, TypesSizes: p.TypesSizes, ReadFile: os.ReadFile,
			Report: func(d analysis.Diagnostic) {
				pos := l.fset.Position(l.origin(d.Pos, l.after[p] != nil, out))
				rule, id := "lint", pos.String()+d.Message
				category, name, _ := strings.Cut(d.Category, " ")
				switch category {
				case "shutdown", "series":
					rule = d.Category
				case "wrapper": // one line for each file
					const text = "wrappers pass on reasons and formats: give them a parameter for the action, and pass constants to them: "
					d.Message = text + name
					for i, o := range list {
						if o.Pos.Filename == pos.Filename && strings.HasPrefix(o.Text, text) {
							if !strings.Contains(o.Text+",", " "+name+",") {
								list[i].Text += ", " + name
							}
							return
						}
					}
				}
				if !seen[id] {
					seen[id] = true
					list = append(list, Diagnostic{pos, rule, d.Message})
				}
			},
		}
		if r := l.after[p]; r != nil {
			pass.Files, pass.Pkg, pass.TypesInfo = r.files, r.types, r.info
		}
		if _, err := a.Run(pass); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(list, func(x, y Diagnostic) int {
		return cmp.Or(strings.Compare(x.Pos.Filename, y.Pos.Filename), x.Pos.Offset-y.Pos.Offset)
	})
	return list, nil
}

// origin returns the position in the file before the move.
func (l *loader) origin(pos token.Pos, moved bool, out map[string]*move.Output) token.Pos {
	f := l.fset.File(pos)
	if o := out[f.Name()]; moved && o != nil {
		return o.Origin(f.Offset(pos))
	}
	return pos
}
