package metrics

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/eventseries/eventseries/internal/tracker"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var quoted = regexp.MustCompile("`([^`]+)`")

// words returns the words of a text that are quoted as code, sorted.
func words(text string) (found []string) {
	for _, match := range quoted.FindAllStringSubmatch(text, -1) {
		found = append(found, match[1])
	}
	slices.Sort(found)
	return found
}

// tables returns the cells of all rows in docs/metrics.md that begin with code.
func tables(t *testing.T) (rows [][]string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/metrics.md")
	require.NoError(t, err)
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, "| `") {
			var cells []string
			for _, cell := range strings.Split(strings.Trim(line, "|\n"), "|") {
				cells = append(cells, strings.TrimSpace(cell))
			}
			rows = append(rows, cells)
		}
	}
	return rows
}

func TestDocumentationListsAllMetrics(t *testing.T) {
	var want, got []string // name, type and labels
	metrics, err := registryOf(t, someStats()).Gather()
	require.NoError(t, err)
	for _, f := range metrics {
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		want = append(want, fmt.Sprint(f.GetName(), strings.ToLower(f.GetType().String()), labels))
	}
	for _, row := range tables(t) {
		if name := strings.Trim(row[0], "`"); strings.HasPrefix(name, "eventseries_") {
			require.GreaterOrEqual(t, len(row), 4, "%q", row)
			assert.NotEmpty(t, row[3])
			got = append(got, fmt.Sprint(name, row[1], words(row[2])))
		}
	}
	assert.ElementsMatch(t, want, got)
}

func TestDocumentationExplainsAllLabelValues(t *testing.T) {
	var explained []string
	for _, row := range tables(t) {
		explained = append(explained, words(row[0])...)
	}
	assert.Subset(t, explained, []string{"written", "pushedBack", "troubled", "denied", "gone", "changed", "taken", "refused", "list"})
	for kind := range tracker.Kinds {
		if kind != 0 {
			assert.Contains(t, explained, kind.String())
		}
	}
	for _, reason := range dropReasons {
		assert.Contains(t, explained, string(reason))
	}
}
