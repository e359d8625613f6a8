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

// figures are phrases with numbers that are calculated from measurements. The others are in facts.txt. TestFacts looks for both in
// the pages.
var figures = map[string]func(t *testing.T) string{
	"22 to 45 times less CPU": func(t *testing.T) string {
		times := find(t, read(t, "docs/benchmarks.md"), `than .tools/events. \| (\d+\.\d) to (\d+\.\d) times`)
		return fmt.Sprintf("%.0f to %.0f times less CPU", float(t, times[0]), float(t, times[1]))
	},
	"A full table (`Capacity`: 65536) takes about 33 MB": func(t *testing.T) string {
		bytes := float(t, find(t, read(t, "docs/benchmarks.md"), `(?m)^\| eventseries \| 10,000 \| .* \| (\d+) \| 10,000 \|`)[0])
		return fmt.Sprintf("A full table (`Capacity`: %d) takes about %.0f MB", defaults.Capacity, math.Ceil(float64(defaults.Capacity)*bytes/1e6))
	},
}

func float(t *testing.T, text string) float64 {
	t.Helper()
	f, err := strconv.ParseFloat(text, 64)
	require.NoError(t, err)
	return f
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
