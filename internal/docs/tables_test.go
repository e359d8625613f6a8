package docs

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/series"
)

// The table of options has each field, in order.
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

var dropReason = regexp.MustCompile(`(?m)^\tDrop\w+ +(?:DropReason )?= +(?:"(\w+)"|tracker\.Drop(\w+))$`)

// The table of drops has each reason.
func TestDropsAreDocumented(t *testing.T) {
	var reasons, documented []string
	for _, match := range dropReason.FindAllStringSubmatch(read(t, "events/drop.go"), -1) {
		reasons = append(reasons, match[1]+match[2])
	}
	require.GreaterOrEqual(t, len(reasons), 9)
	require.Equal(t, events.DropTableFull, events.DropReason("TableFull"), "the names are the values")
	for _, row := range readPage(t, operations).tableAfter(t, "### Drops") {
		documented = append(documented, codes(row[0])...)
	}
	assert.ElementsMatch(t, reasons, documented)
}

// The diagram has each state, and what an Event says of it.
func TestStatesAreDocumented(t *testing.T) {
	var diagram *block
	p := readPage(t, "docs/design.md")
	for i, b := range p.blocks {
		if b.language == "mermaid" {
			require.Nil(t, diagram, "one diagram")
			diagram = &p.blocks[i]
		}
	}
	require.NotNil(t, diagram)
	transition := regexp.MustCompile(`^ +(\[\*\]|\w+) --> (\[\*\]|\w+)(: .+)?$`)
	drawn := map[string]bool{}
	require.Equal(t, "stateDiagram-v2", diagram.lines[0])
	for _, text := range diagram.lines[1:] {
		match := transition.FindStringSubmatch(text)
		require.NotNil(t, match, text)
		drawn[match[1]], drawn[match[2]] = true, true
	}
	delete(drawn, "[*]")
	states := map[string]bool{}
	for s := series.Singleton; !strings.HasPrefix(s.String(), "State("); s++ {
		states[s.String()] = true
	}
	assert.Equal(t, states, drawn)
	text := read(t, p.path)
	for state := range states {
		assert.Contains(t, text, "\n**"+state+".** ", "a paragraph for each")
	}
	for _, annotation := range []string{series.AnnotationState, series.AnnotationLastNote, series.AnnotationSuccessor} {
		assert.Contains(t, text, "| annotation `"+annotation+"` |")
	}
}
