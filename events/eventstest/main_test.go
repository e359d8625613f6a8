package eventstest

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const module = "github.com/eventseries/eventseries"

// The imports of this package end up in the go.sum of every program that uses it. In
// particular, it must not import testify.
func TestNothingBeyondClientGoIsImported(t *testing.T) {
	has := goList(t, "-deps", module+"/events",
		// Other packages of the same modules, which import nothing else.
		"k8s.io/client-go/tools/reference", "k8s.io/apimachinery/pkg/util/rand", "github.com/go-logr/logr/testr")
	imported := slices.DeleteFunc(goList(t, "-deps", module+"/events/eventstest"), func(pkg string) bool {
		standard := !strings.Contains(pkg, ".")
		return standard || strings.HasPrefix(pkg, module) || strings.HasPrefix(pkg, "vendor/")
	})
	require.NotEmpty(t, imported)
	assert.Subset(t, has, imported)
}

func TestOnlyTestsImportEventstest(t *testing.T) {
	others := slices.DeleteFunc(goList(t, module+"/..."), func(pkg string) bool { return pkg == module+"/events/eventstest" })
	assert.NotContains(t, goList(t, append([]string{"-deps"}, others...)...), module+"/events/eventstest")
}

// goList returns the output of go list.
func goList(t *testing.T, args ...string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", append([]string{"list"}, args...)...).Output()
	require.NoError(t, err)
	return strings.Fields(string(out))
}
