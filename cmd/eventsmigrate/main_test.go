package main

import (
	"bytes"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/eventseries/eventseries/cmd/eventsmigrate/analyzers"
	"github.com/eventseries/eventseries/cmd/eventsmigrate/internal/driver"
	"github.com/eventseries/eventseries/cmd/eventsmigrate/internal/move"
)

var update = flag.Bool("update", false, "write the golden files")

// moveTestdata moves the programs of a target.
func moveTestdata(t *testing.T, target string, overlay map[string][]byte) *driver.Result {
	t.Helper()
	dir, err := filepath.Abs("testdata")
	require.NoError(t, err)
	actions, err := readActions(filepath.Join(dir, "actions.yaml"))
	require.NoError(t, err)
	r, err := driver.Run(driver.Config{
		Dir: dir, Patterns: []string{"./" + target + "/..."}, Overlay: overlay,
		Options: move.Options{Target: move.Target(target), Related: true, Actions: actions},
	})
	require.NoError(t, err)
	return r
}

// The input of each golden file is the file beside it. A second run, which type-checks the
// golden files first, changes nothing.
func TestGolden(t *testing.T) {
	for _, target := range move.Targets {
		t.Run(string(target), func(t *testing.T) {
			r := moveTestdata(t, string(target), nil)
			dir, err := filepath.Abs("testdata")
			require.NoError(t, err)
			for _, name := range slices.Sorted(maps.Keys(r.Changed)) {
				golden(t, goldenName(dir, name, string(target)), r.Changed[name])
			}
			var b bytes.Buffer
			report(&b, dir, r, flags{fix: true, verbose: true})
			golden(t, filepath.Join(dir, string(target)+".report"), b.Bytes())
			assert.Equal(t, goldenFiles(t, dir, string(target)), len(r.Changed), "golden files without an output")

			again := moveTestdata(t, string(target), r.Changed)
			assert.Empty(t, slices.Sorted(maps.Keys(again.Changed)), "a second run changes files")
		})
	}
}

// goldenName adds the target to the names of manifests, which all targets share.
func goldenName(dir, name, target string) string {
	if filepath.Ext(name) == ".go" {
		return name + ".golden"
	}
	return filepath.Join(dir, target, strings.ReplaceAll(relative(dir, name), "/", "-")+".golden")
}

func goldenFiles(t *testing.T, dir, target string) (n int) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(filepath.Join(dir, target), func(path string, _ os.DirEntry, err error) error {
		if filepath.Ext(path) == ".golden" {
			n++
		}
		return err
	}))
	return n
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(name, got, 0o600))
	}
	want, err := os.ReadFile(name)
	require.NoError(t, err)
	assert.Equal(t, string(want), string(got), name)
}

func TestLint(t *testing.T) {
	analysistest.RunWithSuggestedFixes(t, filepath.Join(analysistest.TestData()), analyzers.Lint, "./lint/...")
}

func TestBadInput(t *testing.T) {
	t.Chdir("testdata")
	dir := t.TempDir()
	invalid, lower, broken := filepath.Join(dir, "invalid"), filepath.Join(dir, "lower"), filepath.Join(dir, "broken")
	require.NoError(t, os.WriteFile(invalid, []byte("- a list\n"), 0o600))
	require.NoError(t, os.WriteFile(lower, []byte("Created: create\n"), 0o600))
	require.NoError(t, os.Mkdir(broken, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(broken, "go.mod"), []byte("module example.com/broken\n\ngo 1.26.0\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(broken, "a.go"), []byte("package broken\n\nvar a int = \"\"\n"), 0o600))
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-to=nowhere", "./..."}, "unknown -to=nowhere"},
		{[]string{"-to", "record"}, "no packages"},
		{[]string{"-nonsense", "./..."}, "-nonsense"},
		{[]string{"-fix", "-diff", "./..."}, "exclude each other"},
		{[]string{"-actions=/does/not/exist", "./..."}, "/does/not/exist"},
		{[]string{"-actions=" + invalid, "./..."}, "want lines such as"},
		{[]string{"-actions=" + lower, "./..."}, `the action "create" of the reason Created`},
		{[]string{"./does/not/exist"}, "do not load"},
	} {
		var stdout, stderr bytes.Buffer
		assert.Equal(t, exitBadInput, run(c.args, &stdout, &stderr), "%v", c.args)
		assert.Contains(t, stderr.String(), c.want, "%v", c.args)
		assert.Equal(t, 1, strings.Count(stderr.String(), "\n"), "one line: %s", stderr.String())
		assert.Empty(t, stdout.String())
	}
	t.Chdir(broken)
	var stdout, stderr bytes.Buffer
	assert.Equal(t, exitBadInput, run([]string{"./..."}, &stdout, &stderr))
	assert.Contains(t, stderr.String(), "a.go:3")
}
