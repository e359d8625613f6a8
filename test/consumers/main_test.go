package consumers

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/eventseries/eventseries/test/internal/apiserver"
)

var write = flag.Bool("write", false, "write what the programs show into the page")

// page describes what the programs show.
var page = filepath.Join("..", "..", "docs", "consumers.md")

// TestMain runs the tests, or kubectl if [kubectl] has started this process. It does not
// search for leaks: the goroutines of other programs are not ours.
func TestMain(m *testing.M) {
	if os.Getenv(runsKubectl) != "" {
		mainOfKubectl()
		return
	}
	os.Exit(apiserver.Main(m))
}

// requireOnPage fails the test unless the page contains text between the marks of a
// section.
func requireOnPage(t *testing.T, section, text string) {
	t.Helper()
	begin, end := "<!-- begin "+section+" -->\n\n", "\n<!-- end "+section+" -->"
	content, err := os.ReadFile(page)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(content), begin)
	require.True(t, ok, "no %q", begin)
	on, after, ok := strings.Cut(rest, end)
	require.True(t, ok, "no %q", end)
	if *write {
		require.NoError(t, os.WriteFile(page, []byte(before+begin+text+end+after), 0o644))
		return
	}
	assert.Equal(t, text, on, "docs/consumers.md is wrong; go test . -write corrects it")
}

// block formats the output of a program as a block of code.
func block(output string) string {
	return "```text\n" + trailingSpace.ReplaceAllString(output, "") + "```\n"
}

var trailingSpace = regexp.MustCompile(`(?m) +$`)

// table formats rows as a table. The first row is the header.
func table(rows ...[]string) string {
	var b strings.Builder
	for i, row := range rows {
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
		if i == 0 {
			b.WriteString("|" + strings.Repeat(" --- |", len(row)) + "\n")
		}
	}
	return b.String()
}

// The page names the versions that go.mod requires.
func TestVersions(t *testing.T) {
	modules, err := os.ReadFile("go.mod")
	require.NoError(t, err)
	content, err := os.ReadFile(page)
	require.NoError(t, err)
	for _, module := range []string{"k8s.io/kubectl", "receiver/k8seventsreceiver", "receiver/k8sobjectsreceiver"} {
		match := regexp.MustCompile(regexp.QuoteMeta(module) + ` (v\S+)`).FindSubmatch(modules)
		require.NotNil(t, match, module)
		assert.Contains(t, string(content), "`"+filepath.Base(module)+"` "+string(match[1]))
	}
}
