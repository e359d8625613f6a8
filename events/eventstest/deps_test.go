package eventstest

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const module = "github.com/eventseries/eventseries"

// The imports of this package end up in the go.sum of every program that uses it, and
// it must not force testify on anybody.
func TestNothingBeyondClientGoIsImported(t *testing.T) {
	has := make(map[string]bool)
	for _, pkg := range deps(t,
		module+"/events",
		// Other packages of the same modules, which import nothing else.
		"k8s.io/client-go/tools/reference", "k8s.io/apimachinery/pkg/util/rand", "github.com/go-logr/logr/testr",
	) {
		has[pkg] = true
	}
	for _, pkg := range deps(t, module+"/events/eventstest") {
		if !strings.HasPrefix(pkg, module) {
			assert.True(t, has[pkg], "%s is imported", pkg)
		}
		assert.NotContains(t, pkg, "testify")
	}
}

func TestOnlyTestsImportEventstest(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.ImportPath}} {{.Deps}}", module+"/...").Output()
	require.NoError(t, err)
	for line := range strings.Lines(string(out)) {
		assert.NotContains(t, line[strings.IndexByte(line, ' '):], module+"/events/eventstest", "%s", line)
	}
}

// deps returns the dependencies of packages outside the standard library.
func deps(t *testing.T, packages ...string) []string {
	t.Helper()
	args := append([]string{"list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}"}, packages...)
	out, err := exec.CommandContext(t.Context(), "go", args...).Output()
	require.NoError(t, err)
	list := strings.Fields(string(out))
	require.Subset(t, list, packages)
	return list
}
