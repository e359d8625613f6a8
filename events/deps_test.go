package events

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const module = "github.com/eventseries/eventseries"

// Users get all that this package imports. They have client-go already.
func TestNothingBeyondClientGoIsImported(t *testing.T) {
	has := make(map[string]bool)
	for _, pkg := range deps(t,
		"k8s.io/client-go/tools/events", // for the interfaces, which have no other name
		"k8s.io/client-go/kubernetes/typed/events/v1",
		"k8s.io/client-go/util/workqueue",
		"k8s.io/klog/v2",
		"github.com/go-logr/logr",
		"k8s.io/utils/clock",
	) {
		has[pkg] = true
	}
	require.NotEmpty(t, has)
	ours := 0
	for _, pkg := range deps(t, module+"/events") {
		if strings.HasPrefix(pkg, module+"/") {
			ours++
			continue
		}
		assert.True(t, has[pkg], "%s is imported", pkg)
	}
	assert.Positive(t, ours)
}

func TestMetricsAloneImportPrometheus(t *testing.T) {
	const metrics, prometheus = module + "/events/metrics", "github.com/prometheus/client_golang/prometheus"
	var others []string
	for _, pkg := range goList(t, module+"/...") {
		if pkg != metrics {
			others = append(others, pkg)
		}
	}
	require.Contains(t, others, module+"/events")
	for _, dep := range deps(t, others...) {
		assert.False(t, strings.HasPrefix(dep, "github.com/prometheus/"), dep)
	}
	assert.Contains(t, deps(t, metrics), prometheus)
}

func TestImportsRunOneWay(t *testing.T) {
	tracker := []string{"internal/tracker", "internal/heartbeat", "series", "internal/text"}
	events := append([]string{"events", "internal/direct", "internal/coreevents", "internal/legacy", "internal/safelog"}, tracker...)
	for pkg, may := range map[string][]string{
		"series":             {"series"},
		"internal/tracker":   tracker,
		"internal/heartbeat": {"internal/heartbeat"},
		"internal/direct":    {"internal/direct"},
		"events":             events,
		"events/metrics":     append([]string{"events/metrics"}, events...),
		"events/eventstest":  append([]string{"events/eventstest", "internal/fakeapi"}, events...),
		"compat":             append([]string{"compat"}, events...),
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
	for _, dep := range deps(t, module+"/series", module+"/internal/heartbeat") {
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
