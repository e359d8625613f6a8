package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/eventseries/eventseries/cmd/eventsmigrate/internal/catalog"
	"github.com/eventseries/eventseries/cmd/eventsmigrate/internal/driver"
)

func TestCatalog(t *testing.T) {
	t.Parallel()
	programs, packages, err := driver.LoadProgram(driver.Config{Dir: "testdata", Patterns: []string{"./catalog"}})
	require.NoError(t, err)
	for format, render := range renderers {
		c, _ := catalog.New(programs, packages, false)
		got, err := render(c)
		require.NoError(t, err)
		golden(t, filepath.Join("testdata", "catalog", format+".golden"), got)
	}
}

// The events of an imported package are in the catalogue, also if the package is in a vendor directory.
func TestCatalogOfAVendoredPackage(t *testing.T) {
	t.Parallel()
	dir := copyStubs(t)
	for name, text := range map[string]string{
		"library/go.mod": "module example.com/library\n\ngo 1.26.0\n\nrequire k8s.io/client-go v0.0.0\n",
		"library/library.go": "package library\n\nimport (\n\t\"fmt\"\n\n\t\"k8s.io/client-go/tools/record\"\n)\n\n" +
			"func Emit(r record.EventRecorder) {\n\tr.Event(nil, \"Normal\", \"Imported\", fmt.Sprint(1))\n}\n",
		"program/main.go": "package main\n\nimport \"example.com/library\"\n\nfunc main() { library.Emit(nil) }\n",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o777))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666))
	}
	for _, args := range [][]string{
		{"mod", "edit", "-require=example.com/library@v0.0.0", "-replace=example.com/library=./library"}, {"mod", "vendor"},
	} {
		out, code := start(t, dir, "go", args...)
		require.Zero(t, code, out)
	}
	programs, packages, err := driver.LoadProgram(driver.Config{Dir: dir, Patterns: []string{"./program"}})
	require.NoError(t, err)
	c, _ := catalog.New(programs, packages, false)
	got, err := renderers["json"](c)
	require.NoError(t, err)
	assert.Contains(t, string(got), `"Imported"`)
}

// What a program emits through interfaces, copies of functions, and the like is in the
// catalogue, or listed as open. The program names each of its reasons as it expects.
func TestCatalogOfIndirectCalls(t *testing.T) {
	t.Parallel()
	programs, packages, err := driver.LoadProgram(driver.Config{Dir: "testdata", Patterns: []string{"./catalog/callers"}})
	require.NoError(t, err)
	c, _ := catalog.New(programs, packages, false)
	var got, want []string
	for _, e := range c.Events {
		if strings.HasPrefix(e.Reason, "Want") {
			got = append(got, e.Reason)
		}
		assert.False(t, strings.HasPrefix(e.Reason, "Of"), e.Reason)
	}
	for _, name := range []string{"main.go", "testing/helper/helper.go"} {
		src, err := os.ReadFile(filepath.Join("testdata", "catalog", "callers", filepath.FromSlash(name)))
		require.NoError(t, err)
		want = append(want, regexp.MustCompile(`Want[A-Z]\w+`).FindAllString(string(src), -1)...)
	}
	assert.ElementsMatch(t, want, got)
	var open []string
	for _, o := range c.Open {
		open = append(open, o.File+" "+o.Function+" "+o.Field+" "+o.Expression)
	}
	assert.Equal(t, []string{"catalog/callers/main.go (*decorator).Event regarding object", "catalog/callers/main.go forms event r.Event"}, open)
}

// A large program has a wrapper with very many callers.
func TestCatalogOfManyCallers(t *testing.T) {
	t.Parallel()
	const callers = 1000
	dir := copyStubs(t)
	src := strings.Builder{}
	src.WriteString("package main\n\nimport (\n\tcorev1 \"k8s.io/api/core/v1\"\n\t\"k8s.io/client-go/tools/record\"\n)\n\n" +
		"var r record.EventRecorder\n\nfunc warn(reason string) { r.Event(&corev1.Pod{}, \"Warning\", reason, \"note\") }\n\nfunc main() {\n")
	for i := range callers {
		fmt.Fprintf(&src, "\twarn(\"Reason%d\")\n", i)
	}
	src.WriteString("}\n")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "many"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "many", "main.go"), []byte(src.String()), 0o600))
	programs, packages, err := driver.LoadProgram(driver.Config{Dir: dir, Patterns: []string{"./many"}})
	require.NoError(t, err)
	c, _ := catalog.New(programs, packages, false)
	assert.Len(t, c.Events, callers)
	assert.Empty(t, c.Open)
}

// A changed event is a difference, until somebody updates the file.
func TestCatalogCheck(t *testing.T) {
	dir := copyStubs(t)
	t.Chdir(dir)
	check := func(want int, args ...string) string {
		t.Helper()
		var stdout, stderr bytes.Buffer
		assert.Equal(t, want, runCatalog(append(args, "-check=events.md", "."), &stdout, &stderr), stderr.String())
		return stdout.String()
	}
	check(exitBadInput) // no file
	assert.Empty(t, check(exitOK, "-update"))
	assert.Empty(t, check(exitOK))

	// git writes other line ends on Windows.
	page, err := os.ReadFile("events.md")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile("events.md", bytes.ReplaceAll(page, []byte("\n"), []byte("\r\n")), 0o600))
	assert.Empty(t, check(exitOK))

	const name = "vet.go"
	src, err := os.ReadFile(name)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(name, append([]byte("// A comment moves all lines.\n"), src...), 0o600))
	assert.Empty(t, check(exitOK))

	require.NoError(t, os.WriteFile(name, bytes.ReplaceAll(src, []byte("Created"), []byte("DiskFull")), 0o600))
	diff := check(exitFindings)
	assert.Contains(t, diff, "\n-| `Created` | Normal |")
	assert.Contains(t, diff, "\n+| `DiskFull` | Normal |")
	assert.Equal(t, diff, check(exitOK, "-update"))
	assert.Empty(t, check(exitOK))
}

// copyStubs returns a copy of a module with few dependencies, and with packages of the large one.
func copyStubs(t *testing.T, packages ...string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "stubs"))))
	for _, name := range packages {
		require.NoError(t, os.CopyFS(filepath.Join(dir, name), os.DirFS(filepath.Join("testdata", name))))
	}
	return dir
}
