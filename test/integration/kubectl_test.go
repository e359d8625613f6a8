package integration

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// TestKubectl looks at Events with each command of kubectl that shows them.
func TestKubectl(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skipf("kubectl is not installed: %v", err)
	}
	for written, newSink := range sinks {
		t.Run("written through "+written, func(t *testing.T) {
			t.Parallel()
			namespace, all := recordPrinted(t, newSink)
			kubectl := func(args ...string) string {
				return runKubectl(t, program, append([]string{"--namespace=" + namespace}, args...)...)
			}
			for _, resource := range []string{"events.v1.", "events.v1.events.k8s.io"} {
				t.Run("get "+resource, func(t *testing.T) {
					begin := time.Now()
					byPod := rowsByPod(t, parseRows(t, kubectl("get", resource)))
					require.Len(t, byPod, len(all))
					for name, p := range all {
						requireRow(t, name, p, begin, byPod[name])
					}
				})
				t.Run("get -o wide "+resource, func(t *testing.T) {
					begin := time.Now()
					byPod := rowsByPod(t, parseRows(t, kubectl("get", resource, "-o", "wide")))
					require.Len(t, byPod, len(all))
					for name, p := range all {
						requireWideRow(t, name, p, begin, byPod[name])
					}
				})
			}
			t.Run("events", func(t *testing.T) {
				begin := time.Now()
				byPod := rowsByPod(t, parseRows(t, kubectl("events")))
				require.Len(t, byPod, len(all))
				for name, p := range all {
					row := byPod[name]
					requireInterval(t, p, begin, row["LAST SEEN"])
					row["LAST SEEN"], _, _ = strings.Cut(row["LAST SEEN"], " ")
					requireRow(t, name, p, begin, row)
				}
			})
			for name, p := range all {
				t.Run("describe pod "+name, func(t *testing.T) {
					begin := time.Now()
					_, table, ok := strings.Cut(kubectl("describe", "pod", name), "\nEvents:\n")
					require.True(t, ok)
					rows := parseRows(t, table)
					require.Len(t, rows, 2, "the line under the header, and one Event")
					row := rows[1]
					requireInterval(t, p, begin, row["Age"])
					delete(row, "Age")
					assert.Equal(t, map[string]string{
						"Type": "Normal", "Reason": "Tested", "From": controller, "Message": "it was tested",
					}, row)
				})
			}
		})
	}
}

// interval is how kubectl shows when a series happened: "5m (x57 over 8m)".
var interval = regexp.MustCompile(`^(\S+) \(x(\d+) over (\S+)\)$`)

// requireInterval fails the test unless kubectl shows how often and when an Event
// happened.
func requireInterval(t *testing.T, p printed, begin time.Time, shown string) {
	t.Helper()
	if p.count == 1 {
		requireAge(t, p.last, begin, shown)
		return
	}
	parts := interval.FindStringSubmatch(shown)
	require.NotNil(t, parts, "%q", shown)
	requireAge(t, p.last, begin, parts[1])
	assert.Equal(t, strconv.Itoa(p.count), parts[2])
	requireAge(t, p.first, begin, parts[3])
}

// runKubectl runs kubectl on the shared server and returns what it prints. It
// keeps nothing where the user's own keeps it.
func runKubectl(t *testing.T, program string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	home := t.TempDir()
	var stdout, stderr bytes.Buffer
	args = append([]string{"--kubeconfig=" + apiserver.Kubeconfig(t), "--cache-dir=" + home}, args...)
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "HOME="+home)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	require.NoError(t, cmd.Run(), "kubectl %v: %s", args, &stderr)
	return stdout.String()
}

// column is a header of a table. There are two spaces at least between columns.
var column = regexp.MustCompile(`\S+( \S+)*`)

// parseRows returns the rows of a table by the headers of its first line.
func parseRows(t *testing.T, table string) []map[string]string {
	t.Helper()
	lines := strings.Split(strings.TrimRight(table, "\n"), "\n")
	header := lines[0]
	places := column.FindAllStringIndex(header, -1)
	require.NotEmpty(t, places, "%q", table)
	var rows []map[string]string
	for _, line := range lines[1:] {
		row := make(map[string]string)
		for i, place := range places {
			from, to := min(place[0], len(line)), len(line)
			if i+1 < len(places) {
				to = min(places[i+1][0], len(line))
			}
			row[header[place[0]:place[1]]] = strings.TrimSpace(line[from:to])
		}
		rows = append(rows, row)
	}
	return rows
}
