package docs

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the tables of options and of constants")

// seeAlso are the sections about options.
var seeAlso = map[string]string{
	"Scope": "#leader-election-and-several-replicas", "List": "#the-list", "EventTTL": "#a-short-event-ttl", "MaxWindow": "#the-window",
	"Filter": "#which-events-are-recorded", "Capacity": "oncall.md#memory",
}

var (
	optionsTable  = regexp.MustCompile(`(?s)<!-- Generated from the comments .*?-->\n\n(.*?)\n\n`)
	optionDefault = regexp.MustCompile(` ?If (?:zero|empty|nil), ([^.]+)\.`)
	docLink       = regexp.MustCompile(`\[([A-Z][\w.]*)\]`)
)

// The table of options has the first paragraph of each comment of events.Options. To write it:
//
//	go test ./docs -run TestOptionsAreGenerated -update
func TestOptionsAreGenerated(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "events", "options.go"), nil, parser.ParseComments|parser.SkipObjectResolution)
	require.NoError(t, err)
	var options *ast.StructType
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.TypeSpec); ok && spec.Name.Name == "Options" {
			options, _ = spec.Type.(*ast.StructType)
		}
		return options == nil
	})
	require.NotNil(t, options)
	rows := []string{"| option | default | what it is |", "| --- | --- | --- |"}
	for _, field := range options.Fields.List {
		name := field.Names[0].Name
		if !ast.IsExported(name) {
			continue
		}
		text, _, _ := strings.Cut(field.Doc.Text(), "\n\n")
		text = docLink.ReplaceAllString(strings.Join(strings.Fields(text), " "), "`$1`")
		match := optionDefault.FindStringSubmatch(text)
		require.NotNil(t, match, "%s: the first paragraph says no default: “If zero, ….”", name)
		text = optionDefault.ReplaceAllString(text, "")
		if section := seeAlso[name]; section != "" {
			text += " See [more](" + section + ")."
		}
		rows = append(rows, "| `"+name+"` | "+match[1]+" | "+text+" |")
	}
	page, table := read(t, operations), strings.Join(rows, "\n")
	at := optionsTable.FindStringSubmatchIndex(page)
	require.NotNil(t, at, operations)
	if *update {
		require.NoError(t, os.WriteFile(filepath.Join(root, operations), []byte(page[:at[2]]+table+page[at[3]:]), 0o600))
		return
	}
	assert.Equal(t, table, page[at[2]:at[3]], "run go test ./docs -run TestOptionsAreGenerated -update")
}
