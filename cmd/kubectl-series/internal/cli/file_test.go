package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func write(t *testing.T, content string, at time.Time, path ...string) string {
	t.Helper()
	file := filepath.Join(path...)
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
	require.NoError(t, os.Chtimes(file, at, at))
	return file
}

func legacyEvent(name string, last time.Time) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Event","metadata":{"name":%q,"namespace":"shop"},"count":30,"firstTimestamp":%q,"lastTimestamp":%q,"type":"Warning",
		"reason":"BackOff","involvedObject":{"kind":"Pod","namespace":"shop","name":"web-0"},"source":{"component":"kubelet"}}`,
		name, last.Add(-5*time.Minute).Format(time.RFC3339), last.Format(time.RFC3339))
}

// TestTimeOfFiles requires the states of the time when the files were written.
func TestTimeOfFiles(t *testing.T) {
	last := time.Date(2024, 10, 24, 14, 43, 40, 0, time.UTC)
	copied := last.Add(30 * 24 * time.Hour)
	content := legacyEvent("a", last)
	const copiedFile = "the latest Event is of 2024-10-24T14:43:40Z, and the file of "
	for name, test := range map[string]struct {
		timestamp string
		modified  time.Time
		args      []string
		state     string
		warning   string
	}{
		"as written":            {"", last.Add(time.Minute), nil, "Ongoing", ""},
		"copied":                {"", copied, nil, "Quiet", copiedFile + "2024-11-23T14:43:40Z: if it was copied, pass its time, such as --at 2024-10-24T14:43:40Z"},
		"copied too early":      {"", last.Add(-time.Hour), nil, "Unknown", copiedFile + "2024-10-24T13:43:40Z"},
		"with --at":             {"", copied, []string{"--at", "2024-10-24T14:44:00Z"}, "Ongoing", ""},
		"of must-gather":        {"2024-10-24 14:43:32.75036013 +0000 UTC m=+0.347883109\n2024-10-24 14:45:15.249541038 +0000 UTC m=+99.368506539\n", copied, nil, "Ongoing", ""},
		"of must-gather, later": {"2024-10-24 18:43:32.75036013 +0200 CEST m=+0.347883109\n", last, nil, "Quiet", ""},
		"another timestamp":     {"1729781012\n", copied, nil, "Quiet", copiedFile},
	} {
		dir := t.TempDir()
		file := write(t, content, test.modified, dir, "image", "namespaces", "shop", "core", "events.yaml")
		write(t, `{"apiVersion":"apps/v1","kind":"DeploymentList","items":[]}`, test.modified, dir, "image", "events.v1.yaml") // no Events
		if test.timestamp != "" {
			write(t, test.timestamp, test.modified, dir, "image", "timestamp")
		}
		for _, source := range []string{dir, file, filepath.Join(dir, "image", "namespaces")} {
			out, warning := run(append([]string{"-f", source, "-o", "jsonpath={.items[*].state}"}, test.args...)...)
			assert.Equal(t, test.state, out, "%s: %s", name, source)
			if test.warning == "" {
				assert.Empty(t, warning, name)
			} else {
				assert.Contains(t, warning, "Warning: the states can be wrong: "+test.warning, name)
			}
		}
	}
}

// TestIncompleteFiles requires the Events that can be read, and a sentence about the others.
func TestIncompleteFiles(t *testing.T) {
	now := time.Now().UTC().Truncate(time.Second)
	a, b, dir := legacyEvent("a", now), legacyEvent("b", now), t.TempDir()
	nameless := strings.Replace(a, `"name":"a",`, "", 1)
	write(t, a, now, dir, "y", "z", "events.json.gz") // the content tells whether it is compressed
	const unknown = "event.events.k8s.io/<unknown>\n"
	file := func(name, content string) string { return write(t, content, now, dir, name) }
	for _, test := range []struct{ file, out, err string }{
		{file("cut.json", a+"\n"+b[:50]), "event.events.k8s.io/a\n", "Warning: " + dir + "/cut.json is incomplete: read events: unexpected EOF\n"},
		{file("nameless.json", nameless+nameless), strings.Repeat(unknown, 2), ""},
		{file("pods.json", `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Pod"}]}`), "",
			"error: --filename: " + dir + "/pods.json: no Events, but 1 v1 Pod: want the output of kubectl get events -o json or -o yaml\n"},
		{file("empty.json", `{"apiVersion":"v1","kind":"List","items":[]}`), "", ""},
		{dir + "/none.json", "", "error: --filename: lstat " + dir + "/none.json: no such file or directory\n"},
		{filepath.Dir(file("x/events.json", `{"kind":"Pod"}`)), "", "error: --filename: " + dir + "/x has no files with Events, such as events.json or core/events.yaml\n"},
		{filepath.Dir(filepath.Dir(file("y/z/events.yaml", "a: ["))), "event.events.k8s.io/a\n", "Warning: a file cannot be read: " + dir + "/y/z/events.yaml: read events: "},
	} {
		out, err := run("-f", test.file, "-o", "name")
		assert.Equal(t, test.out, out, test.file)
		if strings.HasSuffix(test.err, ": ") {
			assert.Contains(t, err, test.err)
		} else {
			assert.Equal(t, test.err, err)
		}
	}
	out, _ := run("timeline", "web-0", "-f", dir+"/nameless.json", "-o", "name")
	assert.Equal(t, strings.Repeat(unknown, 2), out)
}
