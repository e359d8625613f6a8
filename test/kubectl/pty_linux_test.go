package kubectl

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"github.com/eventseries/eventseries/test/internal/apiserver"
	"github.com/eventseries/eventseries/test/internal/chart"
)

// height is that of terminals.
const height = 24

// inTerminal runs the program in a terminal of a width, and returns what it prints there.
func inTerminal(t *testing.T, kubeconfig string, width int, environment []string, args ...string) string {
	t.Helper()
	leader, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	defer leader.Close()
	require.NoError(t, unix.IoctlSetPointerInt(int(leader.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(leader.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetWinsize(int(leader.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: height, Col: uint16(width)}))
	follower, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)

	cmd := command(t.Context(), t, kubeconfig, args...)
	cmd.Env = append(cmd.Env, environment...)
	cmd.Stdout, cmd.Stderr = follower, follower
	require.NoError(t, cmd.Start())
	require.NoError(t, follower.Close())
	out, err := io.ReadAll(leader)
	if !errors.Is(err, syscall.EIO) { // how Linux says that nobody has the terminal open
		require.NoError(t, err)
	}
	require.NoError(t, cmd.Wait(), "%s", out)
	return string(bytes.ReplaceAll(out, []byte("\r\n"), []byte("\n")))
}

// sgr matches what changes colors and boldness. The progress erases its line.
var sgr = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// TestTerminals requires the columns that somebody on call needs, in terminals of all widths.
func TestTerminals(t *testing.T) {
	namespace, kubeconfig := apiserver.Namespace(t), apiserver.Kubeconfig(t)
	pod := objectIn(namespace, "Pod", "checkout-with-a-long-name-6d4cf9b7c-9tq8d")
	pod.FieldPath = "spec.containers{app}"
	create(t, apiserver.Clientset(t), nil, []*corev1.Event{legacyEvent("a", pod, "worker-3", "FailedCreatePodSandBox", 12345, time.Hour)})
	for _, width := range []int{40, 60, 80, 200} {
		for _, args := range [][]string{
			{}, {"-A"}, {"pod/" + pod.Name}, {"--group-by", "owner"}, {"-A", "--group-by", "node"}, {"timeline", pod.Name}, {"top", "objects"}, {"top", "objects", "controllers", "-A"},
		} {
			for _, color := range []string{"NO_COLOR=", "NO_COLOR=1"} {
				out := inTerminal(t, kubeconfig, width, []string{color}, append(args, "-n", namespace)...)
				assert.Equal(t, color == "NO_COLOR=", sgr.MatchString(out), "%d %v", width, args)
				for _, column := range []string{"LAST", "OBJECT"} {
					assert.Contains(t, out, column, "%d %v", width, args)
				}
			}
		}
	}
}

// TestSmallTerminal lists more series than a terminal has lines, and Pods whose names differ at their ends.
func TestSmallTerminal(t *testing.T) {
	namespace, kubeconfig := apiserver.Namespace(t), apiserver.Kubeconfig(t)
	var legacy []*corev1.Event
	for i := range 40 {
		count := int32(1)
		if i < 8 {
			count = 9
		}
		pod := objectIn(namespace, "Pod", fmt.Sprintf("web-6d4cf9b7c-9tq%02d", i))
		legacy = append(legacy, legacyEvent(fmt.Sprint("e", i), pod, "worker-3", "BackOff", count, 10*time.Minute))
	}
	create(t, apiserver.Clientset(t), nil, legacy)
	for _, width := range []int{40, 80, 200} {
		inTerminal := func(args ...string) []string {
			out := inTerminal(t, kubeconfig, width, nil, append(args, "-n", namespace)...)
			return lines(regexp.MustCompile(` --cache-dir \S+`).ReplaceAllString(out, "")) // which the test adds
		}
		out := inTerminal()
		assert.Equal(t, "40 series, 8 ongoing: kubectl series -n "+namespace+" --state ongoing", out[len(out)-1], width)
		for i := range 40 {
			assert.Contains(t, strings.Join(out, "\n"), fmt.Sprintf("9tq%02d", i), "%d columns", width)
		}
		out = inTerminal("--state", "ongoing")
		assert.Len(t, out, 9, width)
		out = inTerminal("--state", "Singleton")
		assert.Equal(t, "32 series, 0 ongoing: kubectl series --state Singleton -n "+namespace+" --limit 21", out[len(out)-1], width)
		assert.Len(t, inTerminal("--state", "Singleton", "--limit", "21"), 22, width)
	}
	assert.Len(t, lines(show(t, kubeconfig, "-n", namespace)), 41, "a pipe has all rows and nothing else")
}

// TestTimeZones reads and shows the time of a place.
func TestTimeZones(t *testing.T) {
	namespace, kubeconfig := apiserver.Namespace(t), apiserver.Kubeconfig(t)
	create(t, apiserver.Clientset(t), events(newEvent(namespace, "a", objectIn(namespace, "Pod", "web-0"))), nil)
	for _, name := range []string{"Europe/Berlin", "America/St_Johns"} {
		place, err := time.LoadLocation(name)
		require.NoError(t, err)
		in := []string{"TZ=" + name, "NO_COLOR=1"}
		now := time.Now().In(place)
		for _, width := range []int{40, 80, 200} {
			show := func(args ...string) string {
				return inTerminal(t, kubeconfig, width, in, append(args, "-n", namespace)...)
			}
			assert.Contains(t, show("--began", now.Add(-10*time.Minute).Format("2006-01-02T15:04")), "Pod/web-0")
			assert.NotContains(t, show("--until", now.Add(-10*time.Minute).Format("2006-01-02T15:04")), "Pod/web-0")
			assert.Regexp(t, "\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}"+regexp.QuoteMeta(now.Format("Z07:00")), show("--time", "local"))
			assert.Regexp(t, "T\\d{2}:\\d{2}:\\d{2}Z", show("--time", "utc"))
			zone := now.Format("MST")
			assert.Contains(t, show("timeline", "pod/web-0", "--time", "local")+"\n", " "+zone+" (")
			assert.Contains(t, show("timeline", "pod/web-0"), " UTC (")
			assert.Contains(t, show("describe", "a", "--time", "local"), " "+zone+" (")
			assert.Contains(t, show("timeline", "pod/web-0", "--time", "local", "-o", "html"), "Times in "+zone)
		}
	}
}

// recording is the picture of the investigation in README.md.
var recording = filepath.Join("..", "..", "docs", "kubectl-series", "investigation.svg")

// TestRecording draws the investigation of a Pod that crashes: what goes on, and why.
func TestRecording(t *testing.T) {
	const columns = 122
	width := columns
	server := startIncident(t)
	if now := time.Now().UTC(); now.Add(-incidentAge).Day() != now.Day() {
		require.False(t, *update, "an incident that spans midnight has dates, for which the picture has no room")
		width += 2 * len("Nov 23 ") // of FIRST and LAST, so that no column is left out
	}
	var b strings.Builder
	for _, args := range [][]string{{"-A", "--state", "ongoing"}, {"timeline", "checkout-0", "--follow"}} {
		fmt.Fprintf(&b, "\x1b[2m$\x1b[0m \x1b[1mkubectl series %s\x1b[0m\n%s\n", strings.Join(args, " "), inTerminal(t, server.Kubeconfig(), width, nil, args...))
	}
	drawn := chart.Terminal("kubectl series: the Pod checkout-0 crashes because a snapshot of its volume fails", b.String(), columns)
	if *update {
		require.NoError(t, os.WriteFile(recording, drawn, 0o644))
	}
	content, err := os.ReadFile(recording)
	require.NoError(t, err)
	assert.Equal(t, same(withoutLengths(string(content))), same(withoutLengths(string(drawn))), "go test -update writes %s", recording)
}

// varying is what depends on the length of times and bars: positions, and where text is cut off.
var varying = regexp.MustCompile(` (x|textLength)="[0-9.]+"|>[^<]*…[^<]*`)

// withoutLengths returns a picture without what varies.
func withoutLengths(svg string) string { return varying.ReplaceAllString(svg, "") }
