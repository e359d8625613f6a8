package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/text"
)

func run(args ...string) (out, errOut string) {
	var stdout, stderr bytes.Buffer
	Main(context.Background(), append([]string{"kubectl-series"}, args...), genericiooptions.IOStreams{In: strings.NewReader(""), Out: &stdout, ErrOut: &stderr})
	return stdout.String(), stderr.String()
}

// TestNoCommandPrintsControlCharacters passes an Event of which each text contains some. A file can contain any.
func TestNoCommandPrintsControlCharacters(t *testing.T) {
	const evil = "x\x1b[31m\u009b1m\u202e\u2066\u200b\u0085\r\v\u2028y\x07"
	ref := map[string]any{"kind": "Pod" + evil, "name": "n" + evil, "namespace": "s" + evil, "uid": "u" + evil, "apiVersion": "v1" + evil, "fieldPath": "spec.containers{c" + evil + "}"}
	var events []any
	for n := range 3 {
		events = append(events, map[string]any{
			"apiVersion": "events.k8s.io/v1", "kind": "Event", "eventTime": "2026-01-02T03:04:05.000000Z", "deprecatedCount": n,
			"metadata": map[string]any{
				"name": fmt.Sprint(n, evil), "namespace": "s" + evil, "uid": evil, "resourceVersion": evil, "labels": map[string]any{"l" + evil: evil},
				"annotations": map[string]any{"a" + evil: evil, "eventseries.dev/last-note": "last" + evil},
			},
			"regarding": ref, "related": ref, "type": "Warning" + evil, "reason": "r" + evil, "action": evil, "note": "note" + evil,
			"reportingController": "c" + evil, "reportingInstance": "i" + evil, "deprecatedSource": map[string]any{"component": evil, "host": evil},
		})
	}
	data, err := json.Marshal(events)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "events"+evil+".json")
	require.NoError(t, os.WriteFile(file, data, 0o600))

	commands := []string{
		"describe 0@ -n s@", "describe 0", "pod/none@", "timeline none@", "--reason R@", "@", "-n @", "-A", "timeline n@", "timeline n@ --follow",
		"timeline n@ -o html --follow", "timeline n@ -o svg --follow", "timeline n@ -o html --group-by node", "timeline n@ -o svg --group-by node",
	}
	for _, format := range strings.Fields("wide json yaml kyaml name jsonpath={.items} jsonpath-as-json={.items} go-template={{.}} custom-columns=X:.metadata") {
		commands = append(commands, "-o "+format, "timeline n@ -o "+format)
	}
	for _, format := range []string{"", " -o json", " -o yaml"} {
		commands = append(commands, "top controllers reasons namespaces objects actions types nodes"+format, "--group-by owner"+format, "--group-by node"+format)
	}
	for _, args := range []string{"describe", "--for", "--controller", "--instance", "--node", "--reason", "--action", "-n", "pod@", "timeline"} {
		commands = append(commands, "__complete "+args+" EMPTY")
	}
	shown := 0
	for _, command := range commands {
		var with []string
		for _, arg := range strings.Fields(command) {
			with = append(with, strings.NewReplacer("@", evil, "EMPTY", "").Replace(arg))
		}
		with = slices.Insert(with, strings.Count(command, "__complete"), "-f", file)
		out, errOut := run(with...)
		if strings.Contains(out, "y") {
			shown++
		}
		for _, r := range out + errOut {
			if r != '\n' && r != '\t' && (!text.IsPrintable(r) || strings.ContainsRune("\r\v\f\u2028\u2029", r)) {
				assert.Fail(t, "a control character", "%q of %q", r, command)
				break
			}
		}
	}
	assert.Greater(t, shown, len(commands)/2, "the test shows nothing")
}
