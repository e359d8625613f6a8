package docs

import (
	"fmt"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/events/metrics"
	"github.com/eventseries/eventseries/heartbeat"
	"github.com/eventseries/eventseries/series"
)

func TestOptionsAreDocumented(t *testing.T) {
	var fields, documented []string
	for _, field := range reflect.VisibleFields(reflect.TypeFor[events.Options]()) {
		fields = append(fields, field.Name)
	}
	for _, row := range readPage(t, operations).tableAfter(t, "## Options") {
		require.Len(t, row, 3, row)
		documented = append(documented, codes(row[0])...)
	}
	assert.Equal(t, fields, documented)
}

var dropReason = regexp.MustCompile(`(?m)^\tDrop\w+ +(?:DropReason )?= +(?:"(\w+)"|DropReason\(tracker\.Drop(\w+)\))$`)

func TestDropReasonsAreDocumented(t *testing.T) {
	var reasons, documented []string
	for _, match := range dropReason.FindAllStringSubmatch(read(t, "events/drop.go"), -1) {
		reasons = append(reasons, match[1]+match[2])
	}
	require.GreaterOrEqual(t, len(reasons), 9)
	require.Equal(t, events.DropTableFull, events.DropReason("TableFull"), "the constants are named after their values")
	for _, row := range readPage(t, operations).tableAfter(t, "### Drops") {
		documented = append(documented, codes(row[0])...)
	}
	assert.ElementsMatch(t, reasons, documented)
	_, values := exposed(t)
	assert.ElementsMatch(t, reasons, values["reason"], "metrics start at zero for each reason")
}

// statistics are those of a broadcaster.
type statistics events.Stats

func (s statistics) Stats() events.Stats { return events.Stats(s) }

// exposed returns the name, type and labels of each metric, and the values of each label. The
// metrics by reason come from reasons.
func exposed(t *testing.T, reasons ...events.ReasonStats) (all []string, values map[string][]string) {
	t.Helper()
	stats := statistics{Reasons: reasons, Writes: map[events.WriteKey]uint64{}, Durations: map[string]events.Histogram{"create": {}}}
	for _, outcome := range []string{"pushedBack", "troubled", "denied", "gone", "changed", "taken", "refused"} {
		stats.Writes[events.WriteKey{Kind: "create", Outcome: outcome}] = 1
	}
	registry := prometheus.NewRegistry()
	require.NoError(t, registry.Register(metrics.NewCollector(stats, metrics.Options{})))
	families, err := registry.Gather()
	require.NoError(t, err)
	values = map[string][]string{}
	for _, family := range families {
		var labels []string
		for i, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				values[label.GetName()] = append(values[label.GetName()], label.GetValue())
				if i == 0 {
					labels = append(labels, label.GetName())
				}
			}
		}
		all = append(all, fmt.Sprintf("%s %s %s", family.GetName(), strings.ToLower(family.GetType().String()), labels))
	}
	return all, values
}

func TestMetricsAreDocumented(t *testing.T) {
	var documented, explained []string
	for _, text := range readPage(t, "docs/metrics.md").prose {
		row := cells(text)
		if !strings.HasPrefix(row[0], "`") {
			continue
		}
		explained = append(explained, codes(row[0])...)
		if name := codes(row[0])[0]; strings.HasPrefix(name, "eventseries_") {
			require.Len(t, row, 4, row)
			assert.NotEmpty(t, row[3], name)
			labels := codes(row[2])
			slices.Sort(labels)
			documented = append(documented, fmt.Sprintf("%s %s %s", name, row[1], labels))
		}
	}
	all, values := exposed(t)
	byReason, _ := exposed(t, events.ReasonStats{})
	assert.ElementsMatch(t, sets.New(all...).Insert(byReason...).UnsortedList(), documented)
	for _, label := range []string{"kind", "outcome", "reason"} {
		assert.Subset(t, explained, values[label])
	}
}

var (
	metricName   = regexp.MustCompile(`eventseries_[a-z_]+`)
	metricValues = regexp.MustCompile(`\b(kind|outcome|reason)[!=]~?\\?"([^"\\]+)\\?"`)
)

// Panels and alerts use all metrics and existing values of their labels, and no others.
func TestMetricsAreUsed(t *testing.T) {
	all, values := exposed(t)
	byReason, _ := exposed(t, events.ReasonStats{})
	unused := sets.New[string]()
	for _, metric := range slices.Concat(all, byReason) {
		unused.Insert(metricName.FindString(metric))
	}
	names := unused.Clone()
	text := read(t, "docs/monitoring/dashboard.json") + read(t, "docs/monitoring/alerts.yaml")
	for _, name := range metricName.FindAllString(text, -1) {
		name = strings.TrimSuffix(name, "_bucket") // of the histogram
		assert.True(t, names.Has(name), "no metric %s", name)
		unused.Delete(name)
	}
	assert.Empty(t, unused)
	for _, match := range metricValues.FindAllStringSubmatch(text, -1) {
		assert.Subset(t, values[match[1]], strings.Split(match[2], "|"), match[0])
	}
}

func TestStatesAreDocumented(t *testing.T) {
	const page = "docs/design.md"
	diagrams := slices.DeleteFunc(readPage(t, page).blocks, func(b block) bool { return b.language != "mermaid" })
	require.Len(t, diagrams, 1)
	lines := diagrams[0].lines
	require.Equal(t, "stateDiagram-v2", lines[0])
	drawn := map[string]bool{}
	for _, text := range lines[1:] {
		require.Regexp(t, `^ +(\[\*\]|\w+) --> (\[\*\]|\w+)(: .+)?$`, text)
		words := strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ':' })
		drawn[words[0]], drawn[words[2]] = true, true
	}
	delete(drawn, "[*]")
	states := map[string]bool{}
	for s := series.Singleton; !strings.HasPrefix(s.String(), "State("); s++ {
		states[s.String()] = true
	}
	assert.Equal(t, states, drawn)
	text := read(t, page)
	for state := range states {
		assert.Contains(t, text, "\n**"+state+".** ", "no paragraph for the state")
	}
	for _, field := range []string{
		"label `" + series.LabelState, "label `" + series.LabelRelatedUID, "annotation `" + series.AnnotationHeartbeat,
		"annotation `" + series.AnnotationWindow,
		"annotation `" + series.AnnotationLastNote, "annotation `" + series.AnnotationSuccessor,
	} {
		assert.Contains(t, text, "| "+field+"` |")
	}
}

func TestWindowsAreDocumented(t *testing.T) {
	duration := func(text string) time.Duration {
		d, err := time.ParseDuration(strings.NewReplacer(" min", "m", " s", "s", ",", "").Replace(text))
		require.NoError(t, err)
		return d
	}
	window := heartbeat.Window{Min: series.FinishAfter, Max: 36 * time.Minute}
	for _, row := range readPage(t, "docs/design.md").tableAfter(t, "### The window") {
		require.Len(t, row, 3, row)
		var rhythm heartbeat.Rhythm
		window.Observe(&rhythm, duration(row[1]), 0)
		assert.Equal(t, duration(row[2]), window.Of(rhythm, 0), row)
	}
}

func TestModulesAreListed(t *testing.T) {
	var modules, listed []string
	walk(t, "go.mod", func(file string) { modules = append(modules, path.Dir(file)) })
	for _, row := range readPage(t, "CONTRIBUTING.md").tableAfter(t, "### Modules") {
		require.Len(t, row, 3, row)
		listed = append(listed, codes(row[0])...)
	}
	assert.ElementsMatch(t, modules, listed)
}

func TestVersionsAreTested(t *testing.T) {
	find := func(path, pattern string) []string {
		match := regexp.MustCompile(`(?m)` + pattern).FindStringSubmatch(read(t, path))
		require.NotNil(t, match, "%s: %s", path, pattern)
		return strings.Fields(match[1])
	}
	const clientGo, controllerRuntime = `^\tk8s\.io/client-go (\S+)$`, `^\tsigs\.k8s\.io/controller-runtime (\S+)$`
	servers := append(find("Makefile", `^SERVERS \?= (.+)$`), find("test/controlplane/go.mod", `^\tk8s\.io/kubernetes (\S+)$`)...)
	tested := map[string][]string{
		"client-go":             append(find("go.mod", clientGo), find("test/go.mod", clientGo)...),
		"controller-runtime":    append(find("controllerruntime/go.mod", controllerRuntime), find("test/go.mod", controllerRuntime)...),
		"Kubernetes API server": strings.Fields(strings.ReplaceAll(strings.Join(servers, " "), "v", "")),
		"Go":                    find(".github/workflows/ci.yml", `go-version: "(\S+)"$`),
	}
	rows := readPage(t, "docs/compatibility.md").tableAfter(t, "## Versions")
	require.Len(t, rows, len(tested))
	for _, row := range rows {
		require.Len(t, row, 3)
		assert.Equal(t, strings.Join(tested[row[0]], ", "), row[2], row[0])
		for _, version := range tested[row[0]] {
			if minor := regexp.MustCompile(`^v\d+\.\d+`).FindString(version); minor != "" {
				assert.Contains(t, row[1], minor, row[0])
			}
		}
	}
	oldest := find("go.mod", `^go (\d+\.\d+)`)[0]
	assert.Contains(t, rows[len(rows)-1][1], oldest)
}
