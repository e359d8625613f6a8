package events

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const module = "github.com/eventseries/eventseries"

// Users get all that these packages import. They have client-go already. In particular,
// eventstest must not import testify.
func TestNothingBeyondClientGoIsImported(t *testing.T) {
	for pkg, may := range map[string][]string{
		"events": {
			"k8s.io/client-go/tools/events", // for the interfaces, which have no other name
			"k8s.io/client-go/kubernetes/typed/events/v1",
			"k8s.io/client-go/util/workqueue",
			"k8s.io/klog/v2",
			"github.com/go-logr/logr",
			"k8s.io/utils/clock",
		},
		"events/eventstest": {
			module + "/events",
			// Other packages of the same modules, which import nothing else.
			"k8s.io/client-go/tools/reference", "k8s.io/apimachinery/pkg/util/rand", "github.com/go-logr/logr/testr",
		},
	} {
		isOurs := func(dep string) bool { return strings.HasPrefix(dep, module+"/") }
		got := deps(t, module+"/"+pkg)
		others := slices.DeleteFunc(slices.Clone(got), isOurs)
		assert.Less(t, len(others), len(got))
		assert.Subset(t, deps(t, may...), others)
	}
}

func TestWhoImportsPrometheusAndEventstest(t *testing.T) {
	const metrics, eventstest = module + "/events/metrics", module + "/events/eventstest"
	others := slices.DeleteFunc(goList(t, module+"/..."), func(pkg string) bool { return pkg == metrics || pkg == eventstest })
	require.Contains(t, others, module+"/events")
	isPrometheus := func(dep string) bool { return strings.HasPrefix(dep, "github.com/prometheus/") }
	assert.False(t, slices.ContainsFunc(deps(t, append(others, eventstest)...), isPrometheus))
	assert.NotContains(t, deps(t, append(others, metrics)...), eventstest, "only tests import it")
	assert.Contains(t, deps(t, metrics), "github.com/prometheus/client_golang/prometheus")
}

func TestImportsRunOneWay(t *testing.T) {
	tracker := []string{"internal/tracker", "internal/schedule", "heartbeat", "series", "internal/eventtext"}
	events := append([]string{"events", "internal/eventclient", "internal/legacyrecorder", "internal/safelog", "internal/wiring",
		"internal/apigroup", "internal/filter", "internal/reference", "internal/sanitize"}, tracker...)
	for pkg, may := range map[string][]string{
		"series":               {"series", "internal/eventtext"},
		"internal/tracker":     tracker,
		"heartbeat":            {"heartbeat"},
		"internal/schedule":    {"internal/schedule"},
		"internal/eventclient": {"internal/eventclient"},
		"internal/filter":      {"internal/filter", "internal/eventtext", "series"},
		"internal/reference":   {"internal/reference", "internal/eventtext", "series"},
		"internal/sanitize":    {"internal/sanitize", "internal/eventtext", "series"},
		"events":               events,
		"events/metrics":       append([]string{"events/metrics"}, events...),
		"events/eventstest":    append([]string{"events/eventstest", "internal/fakeapi"}, events...),
		"compat":               append([]string{"compat", "internal/legacybroadcaster"}, events...),
		"query":                {"query", "series", "internal/apigroup", "internal/eventclient", "internal/eventtext", "internal/safelog", "internal/schedule"},
		"compat/record":        append([]string{"compat", "compat/record", "internal/legacybroadcaster"}, events...),
	} {
		t.Run(pkg, func(t *testing.T) {
			var got []string
			for _, dep := range deps(t, module+"/"+pkg) {
				if name, ok := strings.CutPrefix(dep, module+"/"); ok {
					got = append(got, name)
				}
			}
			assert.ElementsMatch(t, may, got)
		})
	}
}

func TestPurePackagesHaveNoClient(t *testing.T) {
	for _, dep := range deps(t, module+"/series", module+"/heartbeat") {
		assert.False(t, strings.HasPrefix(dep, "k8s.io/client-go"), dep)
	}
}

// deps returns the dependencies of packages, without the standard library.
func deps(t *testing.T, packages ...string) []string {
	t.Helper()
	found := goList(t, append([]string{"-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}"}, packages...)...)
	require.Subset(t, found, packages)
	return found
}

// goList runs go list.
func goList(t *testing.T, args ...string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", append([]string{"list"}, args...)...).Output()
	require.NoError(t, err)
	return strings.Fields(string(out))
}
