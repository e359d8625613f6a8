package docs

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// TestFirstProgram runs the program in README.md.
func TestFirstProgram(t *testing.T) {
	var created eventsv1.Event
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/apis/events.k8s.io/v1/namespaces/default/events" {
			http.NotFound(w, r)
			return
		}
		body, _ := io.ReadAll(r.Body)
		_, _, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(body, nil, &created)
		assert.NoError(t, err)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(created)
	}))
	defer server.Close()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(kubeconfig, fmt.Appendf(nil, `{apiVersion: v1, kind: Config, current-context: c,
clusters: [{name: c, cluster: {server: %q}}], contexts: [{name: c, context: {cluster: c}}]}`, server.URL), 0o600))
	cmd := exec.CommandContext(t.Context(), "go", "run", "./first")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Equal(t, "snapshot of web-0 failed", created.Note)
	assert.Equal(t, "web-0", created.Regarding.Name)
}

// figures are phrases of pages with numbers that are measured, and functions that return what the
// measurements say. The other numbers are in facts.txt. TestFacts looks for both in the pages.
var figures = map[string]func(t *testing.T) string{
	"3600 with client-go tools/events, 5 with eventseries": func(t *testing.T) string {
		picture := read(t, "docs/benchmarks/hour.svg")
		return fmt.Sprintf("%s with client-go tools/events, %s with eventseries",
			strings.ReplaceAll(find(t, picture, `>client-go tools/events: ([\d,]+)<`)[0], ",", ""), find(t, picture, `>eventseries: (\d+)<`)[0])
	},
	"In ten minutes with 1,000 Pods that no node fits, kube-scheduler sends 25,661 requests with client-go's recorder, and 2,475 of its 28,135 occurrences": func(t *testing.T) string {
		row := find(t, read(t, "docs/case-study.md"), `(?m)^\| 1,000 Pods, 10 min \| tools/events \| (\S+) \| (\S+) \| \S+ \| \S+ \| \S+ \| (\S+) \|`)
		return fmt.Sprintf("In ten minutes with 1,000 Pods that no node fits, kube-scheduler sends %s requests with client-go's recorder, and %s of its %s occurrences", row[1], row[2], row[0])
	},
	"it sends 3,320, and [none is lost]": func(t *testing.T) string {
		row := find(t, read(t, "docs/case-study.md"), `(?m)^\| 1,000 Pods, 10 min \| eventseries \| \S+ \| (\S+) \| \S+ \| \S+ \| \S+ \| 0 \|`)
		return fmt.Sprintf("it sends %s, and [none is lost]", row[0])
	},
	"10 to 20 minutes of CPU and 3 GB of disk": func(t *testing.T) string {
		cost := find(t, read(t, "internal/controlplane/progress.go"), `takes (\d+ to \d+ minutes of CPU), and (\d+ GB of disk)`)
		return cost[0] + " and " + cost[1]
	},
	"A hot loop takes 3 requests, and 2 more per hour": func(t *testing.T) string {
		limit := find(t, read(t, operations), `(?m)^\| requests of one hot loop \| (\d+), and (\d+) per hour \|$`)
		return fmt.Sprintf("A hot loop takes %s requests, and %s more per hour", limit[0], limit[1])
	},
	"22 to 45 times less CPU": func(t *testing.T) string {
		times := find(t, read(t, "docs/benchmarks.md"), `than .tools/events. \| (\d+\.\d) to (\d+\.\d) times`)
		least, err := strconv.ParseFloat(times[0], 64)
		require.NoError(t, err)
		most, err := strconv.ParseFloat(times[1], 64)
		require.NoError(t, err)
		return fmt.Sprintf("%.0f to %.0f times less CPU", least, most)
	},
	"A full table (`Capacity`: 65536) takes about 33 MB": func(t *testing.T) string {
		bytes, err := strconv.Atoi(find(t, read(t, "docs/benchmarks.md"), `(?m)^\| eventseries \| 10,000 \| .* \| (\d+) \| 10,000 \|`)[0])
		require.NoError(t, err)
		return fmt.Sprintf("A full table (`Capacity`: %d) takes about %.0f MB", defaults.Capacity, math.Ceil(float64(defaults.Capacity*bytes)/1e6))
	},
	"client-go v0.32 and newer, Go 1.25 and newer": func(t *testing.T) string {
		gomod := read(t, "go.mod")
		return fmt.Sprintf("client-go %s and newer, Go %s and newer", find(t, gomod, `(?m)^\tk8s\.io/client-go (v\d+\.\d+)`)[0], find(t, gomod, `(?m)^go (\d+\.\d+)`)[0])
	},
}

// find returns the submatches of a regular expression.
func find(t *testing.T, text, pattern string) []string {
	t.Helper()
	match := regexp.MustCompile(pattern).FindStringSubmatch(text)
	require.NotNil(t, match, pattern)
	return match[1:]
}

var linkTarget = regexp.MustCompile(`\]\([^)]*\)`)

func TestFigures(t *testing.T) {
	for phrase, source := range figures {
		assert.Equal(t, source(t), phrase)
	}
}
