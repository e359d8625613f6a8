package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/text"
)

// run runs the program offline, and returns what it prints.
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

	var commands [][]string
	for _, format := range []string{
		"", "wide", "json", "yaml", "kyaml", "name", "jsonpath={.items}", "jsonpath-as-json={.items}", "go-template={{.}}", "custom-columns=X:.metadata",
	} {
		commands = append(commands, []string{"-o", format}, []string{"timeline", "n" + evil, "-o", format})
		if format == "" || format == "json" || format == "yaml" {
			commands = append(commands, []string{"--group-by", "owner", "-o", format}, []string{"--group-by", "node", "-o", format},
				[]string{"top", "controllers", "reasons", "namespaces", "objects", "actions", "types", "nodes", "-o", format})
		}
	}
	for _, format := range []string{"text", "html", "svg"} {
		commands = append(commands, []string{"timeline", "n" + evil, "--follow", "-o", format}, []string{"timeline", "n" + evil, "--group-by", "node", "-o", format})
	}
	for _, args := range [][]string{{"describe"}, {"--for"}, {"--controller"}, {"--instance"}, {"--node"}, {"--reason"}, {"--action"}, {"-n"}, {"pod" + evil, ""}, {"timeline"}} {
		commands = append(commands, append(append([]string{"__complete"}, args...), ""))
	}
	commands = append(commands, []string{"describe", "0" + evil, "-n", "s" + evil}, []string{"describe", "0"}, []string{"pod/none" + evil}, []string{"timeline", "none" + evil},
		[]string{"--reason", "R" + evil}, []string{evil}, []string{"-n", evil})
	shown := 0
	for _, args := range commands {
		with := append([]string{"-f", file}, args...)
		if args[0] == "__complete" {
			with = append([]string{"__complete", "-f", file}, args[1:]...)
		}
		out, errOut := run(with...)
		if strings.Contains(out, "y") {
			shown++
		}
		for _, r := range out + errOut {
			if r != '\n' && r != '\t' && (!text.IsPrintable(r) || strings.ContainsRune("\r\v\f\u2028\u2029", r)) {
				assert.Fail(t, "a control character", "%q of %q", r, args)
				break
			}
		}
	}
	assert.Greater(t, shown, len(commands)/2, "the test shows nothing")
}
