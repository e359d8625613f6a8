package main

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/eventseries/eventseries/test/casestudy/recorders"
)

//go:embed flux.md.tmpl
var fluxText string

const (
	fluxHeading = "## kustomize-controller"
	maxNote     = 130 // bytes of a note on the page
)

var fluxTemplate = template.Must(template.New("flux.md").Funcs(template.FuncMap{
	"kB":     func(n int) string { return fmt.Sprintf("%.0f kB", float64(n)/1000) },
	"MB":     func(n int64) string { return fmt.Sprintf("%.0f MB", float64(n)/1e6) },
	"groups": func() []string { return fluxGroups },
	// share compares the requests for one Kustomization of a group with those of tools/events.
	"share": func(runs []*fluxRun, run *fluxRun, group int) string {
		i := slices.IndexFunc(runs, func(r *fluxRun) bool { return r.Recorder == recorders.ToolsEvents })
		if i < 0 {
			return "–"
		}
		return fmt.Sprintf("%.1f %%", 100*run.Groups[group].PerOne()/runs[i].Groups[group].PerOne())
	},
	"imported": func(runs []*fluxRun) bool {
		return slices.ContainsFunc(runs, func(r *fluxRun) bool { return r.Recorder == recorders.Import })
	},
	"hour": func(scale int) string { return fmt.Sprintf("%g minutes", (time.Hour / time.Duration(scale)).Minutes()) },
	"latest": func(e fluxExample) string {
		if len(e.Events) == 0 {
			return "none"
		}
		event := e.Events[0]
		note := strings.ReplaceAll(strings.TrimSpace(event.Note), "|", `\|`)
		if len(note) > maxNote {
			note = note[:maxNote] + "…"
		}
		return fmt.Sprintf("%s, %d, %s, `%s`", event.Reason, event.Count, cmp.Or(event.State, "–"), note)
	},
}).Parse(fluxText))

// renderFlux returns the section about kustomize-controller.
func renderFlux(r *fluxResults) (string, error) {
	var b bytes.Buffer
	if err := fluxTemplate.Execute(&b, r); err != nil {
		return "", fmt.Errorf("casestudy: page: %w", err)
	}
	return b.String(), nil
}
