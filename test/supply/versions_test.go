package supply

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// Users would not get the replacement.
func TestReleasedModulesReplaceNothing(t *testing.T) {
	for _, module := range []string{".", "controllerruntime", "cmd/kubectl-series", "cmd/eventsmigrate"} {
		text, err := os.ReadFile(filepath.Join("..", "..", module, "go.mod"))
		require.NoError(t, err)
		assert.NotRegexp(t, `(?m)^replace`, string(text), module)
	}
}

// required returns the versions that the go.mod file of a module requires.
func required(t *testing.T, module string) map[string]string {
	t.Helper()
	name := filepath.Join("..", "..", module, "go.mod")
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	file, err := modfile.Parse(name, text, nil)
	require.NoError(t, err)
	versions := map[string]string{}
	for _, r := range file.Require {
		versions[r.Mod.Path] = r.Mod.Version
	}
	return versions
}

// The workspace of the control plane selects the versions of the control plane, and the
// plugin that it builds is the one that users install. So what they share compiles once.
func TestWorkspaceHasOneSetOfVersions(t *testing.T) {
	controlPlane, shared := required(t, "test/controlplane"), 0
	for path, version := range required(t, "cmd/kubectl-series") {
		if want, ok := controlPlane[path]; ok {
			shared++
			assert.Equal(t, want, version, path)
		}
	}
	assert.Greater(t, shared, 30)
	for path, version := range required(t, ".") {
		if most, ok := controlPlane[path]; ok {
			assert.LessOrEqual(t, semver.Compare(version, most), 0, "%s %s: newer than %s of the control plane", path, version, most)
		}
	}
}

var (
	action = regexp.MustCompile(`(?m)^\s*-? *uses: *(\S+)(.*)$`)
	pinned = regexp.MustCompile(`^[\w./-]+@[0-9a-f]{40}$`)
)

// A tag can move.
func TestActionsArePinned(t *testing.T) {
	workflows, err := filepath.Glob("../../.github/workflows/*.yml")
	require.NoError(t, err)
	require.NotEmpty(t, workflows)
	for _, name := range workflows {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, uses := range action.FindAllStringSubmatch(string(text), -1) {
			assert.Regexp(t, pinned, uses[1], name)
			assert.Regexp(t, `^ # v\d+\.\d+\.\d+$`, uses[2], "%s: %s: the version", name, uses[1])
		}
	}
}
