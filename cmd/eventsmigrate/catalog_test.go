package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/eventseries/eventseries/cmd/eventsmigrate/internal/catalog"
	"github.com/eventseries/eventseries/cmd/eventsmigrate/internal/driver"
)

func TestCatalog(t *testing.T) {
	programs, packages, err := driver.LoadProgram(driver.Config{Dir: "testdata", Patterns: []string{"./catalog"}})
	require.NoError(t, err)
	for format, render := range renderers {
		c, _ := catalog.New(programs, packages, catalog.Options{})
		got, err := render(c)
		require.NoError(t, err)
		golden(t, filepath.Join("testdata", "catalog", format+".golden"), got)
	}
}

// A changed event is a difference, until somebody updates the file.
func TestCatalogCheck(t *testing.T) {
	dir := copyModule(t, "catalog/backups")
	t.Chdir(dir)
	check := func(want int, args ...string) string {
		t.Helper()
		var stdout, stderr bytes.Buffer
		assert.Equal(t, want, runCatalog(append(args, "-check=events.md", "./catalog/backups"), &stdout, &stderr), stderr.String())
		return stdout.String()
	}
	check(exitBadInput) // no file
	assert.Empty(t, check(exitOK, "-update"))
	assert.Empty(t, check(exitOK))

	name := filepath.Join("catalog", "backups", "backups.go")
	src, err := os.ReadFile(name)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(name, append([]byte("// A comment moves all lines.\n"), src...), 0o600))
	assert.Empty(t, check(exitOK))

	require.NoError(t, os.WriteFile(name, bytes.ReplaceAll(src, []byte("QuotaExceeded"), []byte("DiskFull")), 0o600))
	diff := check(exitFindings)
	assert.Contains(t, diff, "\n-| `QuotaExceeded` | Warning |")
	assert.Contains(t, diff, "\n+| `DiskFull` | Warning |")
	assert.Equal(t, diff, check(exitOK, "-update"))
	assert.Empty(t, check(exitOK))
}

func TestCatalogBadInput(t *testing.T) {
	t.Chdir("testdata")
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "no packages"},
		{[]string{"-format=xml", "./catalog"}, "unknown -format=xml"},
		{[]string{"-check=events.txt", "./catalog"}, "does not tell the format"},
		{[]string{"-update", "./catalog"}, "-update needs -check"},
		{[]string{"./catalog", "-lines"}, "-lines follows the packages"},
		{[]string{"./does/not/exist"}, "do not load"},
	} {
		var stdout, stderr bytes.Buffer
		assert.Equal(t, exitBadInput, runCatalog(c.args, &stdout, &stderr), "%v", c.args)
		assert.Contains(t, stderr.String(), c.want, "%v", c.args)
		assert.Equal(t, 1, strings.Count(stderr.String(), "\n"), "one line: %s", stderr.String())
		assert.Empty(t, stdout.String())
	}
}
