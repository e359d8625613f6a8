package metrics

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/eventseries/eventseries/internal/tracker"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const page = "../../docs/metrics.md"

// described is a metric as the documentation has it.
type described struct {
	kind   string
	labels []string
}

var quoted = regexp.MustCompile("`([^`]+)`")

// words returns what is quoted as code.
func words(text string) (found []string) {
	for _, match := range quoted.FindAllStringSubmatch(text, -1) {
		found = append(found, match[1])
	}
	slices.Sort(found)
	return found
}

// tables returns the cells of all rows of the page whose first cell begins with code.
func tables(t *testing.T) (rows [][]string) {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
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

// The documentation has every metric, with its type and its labels, and no other.
func TestDocumentationHasAllMetrics(t *testing.T) {
	want := make(map[string]described)
	families, err := registryOf(t, NewCollector(someStats(), Options{})).Gather()
	require.NoError(t, err)
	for _, f := range families {
		d := described{kind: strings.ToLower(f.GetType().String())}
		for _, l := range f.GetMetric()[0].GetLabel() {
			d.labels = append(d.labels, l.GetName())
		}
		want[f.GetName()] = d
	}
	got := make(map[string]described)
	for _, row := range tables(t) {
		if name := strings.Trim(row[0], "`"); strings.HasPrefix(name, "eventseries_") {
			require.GreaterOrEqual(t, len(row), 4, "%q", row)
			assert.NotEmpty(t, row[3])
			got[name] = described{kind: row[1], labels: words(row[2])}
		}
	}
	assert.Equal(t, want, got)
}

// It explains every value of the labels that are words of this project.
func TestDocumentationHasAllWords(t *testing.T) {
	explained := make(map[string]bool)
	for _, row := range tables(t) {
		for _, word := range words(row[0]) {
			explained[word] = true
		}
	}
	expect := []string{"written", "pushedBack", "troubled", "denied", "gone", "changed", "taken", "refused", "list"}
	for kind := range tracker.WriteKinds {
		if kind != 0 {
			expect = append(expect, kind.String())
		}
	}
	for _, reason := range dropReasons {
		expect = append(expect, string(reason))
	}
	for _, word := range expect {
		assert.True(t, explained[word], "%q is not explained", word)
	}
}
