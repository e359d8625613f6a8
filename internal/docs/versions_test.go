package docs

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The versions that the README says are tested are those of the go.mod files and of
// the Makefile.
func TestVersionsAreTested(t *testing.T) {
	find := func(path, pattern string) []string {
		match := regexp.MustCompile(`(?m)` + pattern).FindStringSubmatch(read(t, path))
		require.NotNil(t, match, "%s: %s", path, pattern)
		return strings.Fields(match[1])
	}
	tested := map[string][]string{
		"client-go":             append(find("go.mod", `^\tk8s\.io/client-go (\S+)$`), find("Makefile", `^CLIENT_GO \?= (.+)$`)...),
		"controller-runtime":    append(find("Makefile", `^CONTROLLER_RUNTIME \?= (.+)$`), find("test/go.mod", `^\tsigs\.k8s\.io/controller-runtime (\S+)$`)...),
		"Kubernetes API server": {strings.TrimPrefix(find("test/controlplane/go.mod", `^\tk8s\.io/kubernetes (\S+)$`)[0], "v")},
		"Go":                    find(".github/workflows/ci.yml", `go-version: "(\S+)"$`),
	}
	rows := readPage(t, "README.md").tableAfter(t, "## Versions")
	require.Len(t, rows, len(tested))
	for _, row := range rows {
		require.Len(t, row, 3)
		assert.Equal(t, strings.Join(tested[row[0]], ", "), row[2], row[0])
		for _, version := range tested[row[0]] {
			if minor := regexp.MustCompile(`^v\d+\.\d+`).FindString(version); minor != "" {
				assert.Contains(t, row[1], minor, row[0])
			}
		}
	}
	oldest := find("go.mod", `^go (\d+\.\d+)`)[0]
	assert.Contains(t, rows[len(rows)-1][1], oldest)
	// What test/go.mod requires is the newest that is tested.
	assert.Contains(t, tested["client-go"], find("test/go.mod", `^\tk8s\.io/client-go (\S+)$`)[0])
}
