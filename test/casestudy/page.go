package main

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"text/template"
	"time"
)

//go:embed page.md.tmpl
var pageText string

// heading is the first line of the section.
const heading = "## kube-controller-manager, moved by machine"

// explanations say why tests fail only afterwards: by program, and then by test as in
// [tests.Failed]. They also say why packages do not compile.
var explanations = map[string]map[string]string{
	"kubernetes": {
		"./pkg/controller/devicetainteviction TestCancelEviction":   otherGroup,
		"./pkg/controller/devicetainteviction TestEviction":         otherGroup,
		"./pkg/controller/devicetainteviction TestRetry":            otherGroup,
		"./pkg/controller/endpointslicemirroring TestSyncEndpoints": "It counts all requests of the client. The recorder lists Events before the first one.",
	},
	"sealed-secrets": {
		"./pkg/controller TestKeyCutoff":     goLine,
		"./pkg/controller TestLegacySecret":  goLine,
		"./pkg/controller TestReadKey":       goLine,
		"./pkg/controller TestRenewStaleKey": goLine,
		"./pkg/controller TestReuseKey":      goLine,
		"./pkg/controller TestWriteKey":      goLine,
	},
}

// Explanations of several tests.
const (
	otherGroup = "They list the Events of the core group in a fake clientset, which does not show those of events.k8s.io there. A server shows the same Events in both groups."
	goLine     = "The `go` line rises with the recorder's module, and with it the default of GODEBUG: keys of 512 bits are insecure. They pass with `GODEBUG=rsa1024min=0`."
)

// minutesPerPlace is how long a person is assumed to take for a place: to read it, choose
// an action or a related object, change it, and look at the result.
const minutesPerPlace = 3

// work returns how long a person takes for a number of places.
func work(places int) string { return fmt.Sprintf("%d minutes", minutesPerPlace*places) }

var pageTemplate = template.Must(template.New("page.md").Funcs(template.FuncMap{
	"rule": func(m *moved, name string) rule {
		if i := slices.IndexFunc(m.Rules, func(r rule) bool { return r.Name == name }); i >= 0 {
			return m.Rules[i]
		}
		return rule{Name: name}
	},
	"places": groups,
	"total":  func(m *moved) int { return m.CallsMoved + m.CallsLeft },

	"minutesPerPlace": func() int { return minutesPerPlace },
	"work":            func(m *moved) string { return work(len(m.Left) + len(m.Decide)) },
	"workByHand":      func(m *moved) string { return work(m.CallsMoved + m.CallsLeft) },
	// orNot hides the figures of steps that did not run.
	"orNot": func(ran bool, text string) string {
		if !ran {
			return "not measured"
		}
		return text
	},
	"seconds": func(s float64) string {
		return time.Duration(s * float64(time.Second)).Round(seconds(s)).String()
	},
	"minutes":     func(d time.Duration) string { return fmt.Sprintf("%g minutes", d.Minutes()) },
	"kB":          func(n int) string { return fmt.Sprintf("%.1f kB", float64(n)/1000) },
	"MB":          func(n int64) string { return fmt.Sprintf("%.0f MB", float64(n)/1e6) },
	"newFailures": newFailures,
	"why":         func(m *moved, test string) string { return explanations[program{Module: m.Module}.name()][test] },
	"reasons":     (*story).rows,
	"story": func(r *results, name string) *story {
		for _, m := range r.Programs {
			if (program{Module: m.Module}).name() == name {
				return m.Story
			}
		}
		return nil
	},
	"join": strings.Join,
	"sum":  sum,
	"name": func(m *moved) string { return program{Module: m.Module}.name() + " " + m.Version },
	"code": func(s string) string { return "`" + strings.ReplaceAll(s, "|", `\|`) + "`" },
}).Parse(pageText))

// render returns the section.
func render(r *results) (string, error) {
	shown := *r
	shown.Programs = slices.DeleteFunc(slices.Clone(r.Programs), func(m *moved) bool { return len(m.Rules) == 0 }) // not yet moved
	return renderRuns(pageTemplate, &shown)
}

// sum adds up counts.
func sum(counts map[string]int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

// replaceSection writes the section with a heading into a page. It keeps the others.
func replaceSection(name, heading, section string) error {
	content, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("casestudy: %w", err)
	}
	page := string(content)
	if page == "" {
		page = "# Case studies\n"
	}
	before, after, found := strings.Cut(page, heading+"\n")
	if found {
		if i := strings.Index(after, "\n## "); i >= 0 {
			after = after[i+1:]
		} else {
			after = ""
		}
	}
	page = strings.TrimRight(before, "\n") + "\n\n" + strings.TrimRight(section, "\n") + "\n"
	if after != "" {
		page += "\n" + after
	}
	if err := os.WriteFile(name, []byte(page), 0o644); err != nil {
		return fmt.Errorf("casestudy: %w", err)
	}
	return nil
}

// seconds returns the precision of a duration on the page.
func seconds(s float64) time.Duration {
	if s < 10 {
		return 10 * time.Millisecond
	}
	return time.Second
}

// failure explains tests that fail only afterwards.
type failure struct {
	Tests []string
	Why   string
}

// newFailures returns the tests that fail only afterwards, by explanation.
func newFailures(m *moved) (all []failure) {
	for _, test := range m.After.Failed {
		if slices.Contains(m.Before.Failed, test) {
			continue
		}
		why := explanations[program{Module: m.Module}.name()][test]
		i := slices.IndexFunc(all, func(f failure) bool { return f.Why == why })
		if i < 0 {
			all = append(all, failure{Why: why})
			i = len(all) - 1
		}
		all[i].Tests = append(all[i].Tests, "`"+test+"`")
	}
	return all
}

var (
	// names are what differs in texts of the report for the same reason.
	names = regexp.MustCompile(`\b(reason|constant|type) [A-Z]?\w*[A-Z]\w*`)
	// origin is the place of the reason.
	origin = regexp.MustCompile(` \([^() ]+:\d+\)$`)
)

// group is places with the same rule and text.
type group struct {
	Rule, Text string
	Count      int
	Example    string
}

// groups sums up places by rule and text. Texts that differ only in names are the same.
func groups(list []place) (all []group) {
	for _, p := range list {
		text := names.ReplaceAllString(origin.ReplaceAllString(p.Text, ""), "$1 …")
		i := slices.IndexFunc(all, func(g group) bool { return g.Rule == p.Rule && g.Text == text })
		if i < 0 {
			all = append(all, group{Rule: p.Rule, Text: text, Example: p.Place})
			i = len(all) - 1
		}
		all[i].Count++
	}
	slices.SortStableFunc(all, func(a, b group) int { return b.Count - a.Count })
	return all
}

// reasonRow compares a reason on all sides.
type reasonRow struct {
	Kind, Reason string
	Sides        []reason
}

func (s *story) rows() (rows []reasonRow) {
	sides := s.Sides()
	for i, side := range sides {
		for _, r := range side.Reasons {
			at := slices.IndexFunc(rows, func(row reasonRow) bool { return row.Kind == r.Kind && row.Reason == r.Reason })
			if at < 0 {
				rows = append(rows, reasonRow{r.Kind, r.Reason, make([]reason, len(sides))})
				at = len(rows) - 1
			}
			rows[at].Sides[i] = r
		}
	}
	slices.SortFunc(rows, func(a, b reasonRow) int { return strings.Compare(a.Kind+" "+a.Reason, b.Kind+" "+b.Reason) })
	return rows
}
