package table

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/terminal"
	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/text"
)

var (
	columns = []Column{
		{Name: "STATE"},
		{Name: "COUNT", Right: true},
		{Name: "RATE", Right: true, Omit: 2},
		{Name: "RELATED", Min: 8, Omit: 1},
		{Name: "NOTE", Min: 10},
	}
	rows = [][]Cell{
		{{Text: "Ongoing", Color: terminal.Yellow}, {Text: "12002"}, {Text: "2/s"}, {Text: "Node/worker-3"}, {Text: "snapshot of orders-data failed: quota exceeded"}},
		{{Text: "Singleton"}, {Text: "1"}, {Text: "-"}, {Text: "-"}, {Text: "日本語"}},
	}
)

func format(t terminal.Terminal) string {
	layout := Fit(columns, rows, t)
	s := "\n" + layout.Header()
	for _, row := range rows {
		s += layout.Line(row)
	}
	return s
}

func TestTable(t *testing.T) {
	assert.Equal(t, `
STATE       COUNT   RATE   RELATED         NOTE
Ongoing     12002    2/s   Node/worker-3   snapshot of orders-data failed: quota exceeded
Singleton       1      -   -               日本語
`, format(terminal.Terminal{}))
	assert.Equal(t, `
STATE      COUNT  RATE  RELATED        NOTE
Ongoing    12002   2/s  Node/worker-3  snapshot of orders-data…
Singleton      1     -  -              日本語
`, format(terminal.Terminal{Width: 63}))
	assert.Equal(t, `
STATE      COUNT  RATE  RELATED      NOTE
Ongoing    12002   2/s  Node/worke…  snapshot o…
Singleton      1     -  -            日本語
`, format(terminal.Terminal{Width: 48}))
	assert.Equal(t, `
STATE      COUNT  NOTE
Ongoing    12002  snapshot o…
Singleton      1  日本語
`, format(terminal.Terminal{Width: 29}))
}

func TestColors(t *testing.T) {
	layout := Fit(columns, rows, terminal.Terminal{Color: true})
	assert.True(t, strings.HasPrefix(layout.Header(), "\x1b[1mSTATE\x1b[0m       "))
	assert.True(t, strings.HasPrefix(layout.Line(rows[0]), "\x1b[33mOngoing\x1b[0m     "))
}

func TestEmptyColumnsAreOmittedFirst(t *testing.T) {
	layout := Fit([]Column{{Name: "A", Omit: 1}, {Name: "EMPTY", Omit: 9}, {Name: "NOTE", Min: 4}},
		[][]Cell{{{Text: "value"}, {Text: text.None}, {Text: "a long note"}}}, terminal.Terminal{Width: 20})
	assert.Contains(t, layout.Header(), "A")
	assert.NotContains(t, layout.Header(), "EMPTY")
}

// TestNarrowTerminalShowsAllThatIsNotOmitted shows a part of each column instead of the
// first ones only.
func TestNarrowTerminalShowsAllThatIsNotOmitted(t *testing.T) {
	layout := Fit([]Column{{Name: "STATE"}, {Name: "REASON", Min: 16}, {Name: "OBJECT", Min: 18}},
		[][]Cell{{{Text: "Ongoing"}, {Text: "FailedScheduling"}, {Text: "Pod/analytics-0"}}}, terminal.Terminal{Width: 28})
	assert.Equal(t, "STATE    REASON    OBJECT\n", layout.Header())
}

// A value of any length pads no other row.
func TestLongValues(t *testing.T) {
	columns := []Column{{Name: "REASON", Min: 8}, {Name: "OBJECT", Min: 8, Middle: true}}
	rows := [][]Cell{{{Text: strings.Repeat("x", 100_000)}, {Text: "Pod/a"}}, {{Text: "BackOff"}, {Text: "Pod/web-6d4cf9b7c-9tq8d"}}}
	layout := Fit(columns, rows, terminal.Terminal{})
	assert.Equal(t, rows[0][0].Text+"   Pod/a\n", layout.Line(rows[0]))
	assert.Less(t, len(layout.Line(rows[1])), 150)
	layout = Fit(columns, rows, terminal.Terminal{Width: 20})
	assert.Equal(t, "xxxxxxxx…  Pod/a\nBackOff    Pod/…tq8d\n", layout.Line(rows[0])+layout.Line(rows[1]))
}

func TestInitials(t *testing.T) {
	columns := []Column{{Name: "TYPE", Initial: true}, {Name: "OBJECT", Min: 8}}
	rows := [][]Cell{{{Text: "Warning"}, {Text: "Pod/analytics-0"}}, {{Text: "Normal"}, {Text: "Pod/a"}}}
	for width, want := range map[int]string{0: "TYPE      OBJECT\nWarning   Pod/analytics-0\n", 25: "TYPE      OBJECT\nWarning   Pod/analytics-0\n", 18: "T  OBJECT\nW  Pod/analytics-0\n", 12: "T  OBJECT\nW  Pod/anal…\n"} {
		layout := Fit(columns, rows, terminal.Terminal{Width: width})
		assert.Equal(t, want, layout.Header()+layout.Line(rows[0]), width)
	}
}

func TestLinesFitAnyTerminal(t *testing.T) {
	for width := 1; width < 120; width++ {
		for line := range strings.Lines(format(terminal.Terminal{Width: width})) {
			assert.LessOrEqual(t, text.Width(strings.TrimSuffix(line, "\n")), width)
		}
	}
}

// TestLastResort gives the room of a state to the names, if they could not be read otherwise.
func TestLastResort(t *testing.T) {
	columns := []Column{
		{Name: "STATE", Initial: true, LastResort: true}, {Name: "LAST"}, {Name: "SERIES", Omit: 1, LastResort: true},
		{Name: "OBJECT", Min: 16},
	}
	rows := [][]Cell{{{Text: "Singleton"}, {Text: "5m"}, {Text: "3"}, {Text: "Pod/analytics-0"}}}
	for width, want := range map[int]string{
		39: "STATE      LAST  SERIES  OBJECT\nSingleton  5m    3       Pod/analytics…\n",
		32: "S  LAST  SERIES  OBJECT\nS  5m    3       Pod/analytics-0\n",
		20: "S  LAST  OBJECT\nS  5m    Pod/analyt…\n",
	} {
		layout := Fit(columns, rows, terminal.Terminal{Width: width})
		assert.Equal(t, want, layout.Header()+layout.Line(rows[0]), width)
	}
}
