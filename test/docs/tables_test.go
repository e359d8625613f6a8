package docs

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/events/metrics"
)

const operations = "docs/operations.md"

// TestNamedTestsExist looks for the tests.
func TestDifferencesOfManagersAreTested(t *testing.T) {
	for _, row := range readPage(t, "docs/manager.md").tableAfter(t, "## What differs") {
		assert.Regexp(t, "^`"+testName.String()+"`$", row[len(row)-1], row)
	}
}

func TestDropReasonsAreDocumented(t *testing.T) {
	var documented []string
	for _, row := range readPage(t, "docs/oncall.md").tableAfter(t, "### EventSeriesDropped") {
		documented = append(documented, codes(row[0])...)
	}
	_, values := exposed(t)
	assert.ElementsMatch(t, values["reason"], documented)
}

// statistics are those of a broadcaster.
type statistics events.Stats

func (s statistics) Stats() events.Stats { return events.Stats(s) }

// exposed returns the name, type and labels of each metric, and the values of each label. The
// metrics by reason come from reasons.
func exposed(t *testing.T, reasons ...events.ReasonStats) (all []string, values map[string][]string) {
	t.Helper()
	stats := statistics{Reasons: reasons, Namespaces: []events.NamespaceStats{{PausedUntil: time.Now()}}}
	for _, outcome := range []string{"pushedBack", "troubled", "denied", "gone", "changed", "taken", "refused"} {
		stats.Requests = append(stats.Requests, events.RequestStats{Kind: "create", Verb: "create", Outcome: outcome, Count: 1})
	}
	registry := prometheus.NewRegistry()
	require.NoError(t, registry.Register(metrics.NewCollector(stats, metrics.Options{ByReason: len(reasons) > 0})))
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
	for _, label := range []string{"kind", "outcome"} {
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

var (
	logMessage  = regexp.MustCompile(`\.(?:Info|Error)\((?:\w+, )?("[^"]+")`)
	userPackage = regexp.MustCompile("^(compat|controllerruntime|events|internal/(apigroup|tracker))/")
)

// The table of the log contains the messages of the packages that users' programs include.
func TestLogIsDocumented(t *testing.T) {
	var text strings.Builder
	walk(t, ".go", func(path string) {
		if !strings.HasSuffix(path, "_test.go") && userPackage.MatchString(path) {
			text.WriteString(read(t, path))
		}
	})
	documented := sets.New[string]()
	for _, row := range readPage(t, operations).tableAfter(t, "## Log") {
		for _, message := range codes(row[0]) {
			documented.Insert(strconv.Quote(message))
			assert.True(t, strings.Contains(text.String(), strconv.Quote(message)), "only in the table: %s", message)
		}
	}
	for _, match := range logMessage.FindAllStringSubmatch(text.String(), -1) {
		assert.True(t, documented.Has(match[1]), "not in the table: %s", match[1])
	}
}
