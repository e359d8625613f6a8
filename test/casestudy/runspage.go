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

//go:embed runs.md.tmpl
var runsText string

//go:embed flux.md.tmpl
var fluxText string

//go:embed kubelet.md.tmpl
var kubeletText string

const (
	fluxHeading    = "## kustomize-controller"
	kubeletHeading = "## kubelet"
	maxNote        = 130 // bytes of a note on the page
)

var (
	// runsTemplate contains what the sections have in common.
	runsTemplate = template.Must(template.New("runs.md").Funcs(template.FuncMap{
		"kB": func(n int) string { return fmt.Sprintf("%.0f kB", float64(n)/1000) },
		"MB": func(n int64) string { return fmt.Sprintf("%.0f MB", float64(n)/1e6) },
		"figures": func(program string, runs []*recorderRun) any {
			return struct {
				Program string
				Runs    []*recorderRun
			}{program, runs}
		},
		// share compares the requests for one object of a group with those of tools/events.
		"share": func(runs []*recorderRun, run *recorderRun, group int) string {
			i := slices.IndexFunc(runs, func(r *recorderRun) bool { return r.Recorder == recorders.ToolsEvents })
			if i < 0 {
				return "–"
			}
			return fmt.Sprintf("%.1f %%", 100*run.Groups[group].PerOne()/runs[i].Groups[group].PerOne())
		},
		"has": func(runs []*recorderRun, recorder string) bool {
			return slices.ContainsFunc(runs, func(r *recorderRun) bool { return r.Recorder == recorder })
		},
		"groups": func(runs []*recorderRun) (names []string) {
			for _, group := range runs[0].Groups {
				names = append(names, group.Name)
			}
			return names
		},
		"hour":    func(scale int) string { return fmt.Sprintf("%g minutes", (time.Hour / time.Duration(scale)).Minutes()) },
		"reasons": reasons,
		"percent": func(part, whole int) string { return fmt.Sprintf("%.0f %%", 100*float64(part)/float64(whole)) },
		"note": func(event seenEvent) string {
			note := strings.ReplaceAll(strings.TrimSpace(event.Note), "|", `\|`)
			if len(note) > maxNote {
				note = note[:maxNote] + "…"
			}
			return note
		},
		"state": func(event seenEvent) string { return cmp.Or(event.State, "–") },
	}).Parse(runsText))

	fluxTemplate    = extend("flux.md", fluxText)
	kubeletTemplate = extend("kubelet.md", kubeletText)
)

// extend returns a template for a section.
func extend(name, text string) *template.Template {
	return template.Must(template.Must(runsTemplate.Clone()).New(name).Parse(text))
}

// renderRuns returns a section.
func renderRuns(section *template.Template, results any) (string, error) {
	var b bytes.Buffer
	if err := section.Execute(&b, results); err != nil {
		return "", fmt.Errorf("casestudy: page: %w", err)
	}
	return b.String(), nil
}

// reasons returns the reasons of a group in all runs, sorted.
func reasons(runs []*recorderRun, group int) (all []string) {
	for _, run := range runs {
		for reason := range run.Groups[group].Reasons {
			if !slices.Contains(all, reason) {
				all = append(all, reason)
			}
		}
	}
	slices.Sort(all)
	return all
}
