package kubectl

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/eventseries/eventseries/internal/controlplane"
	"github.com/eventseries/eventseries/series"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

var update = flag.Bool("update", false, "write the output of the commands into the pages")

// incidentAge is how long ago the incident begins.
const incidentAge = 90 * time.Minute

// incident returns the Events of the pages: a Pod crashes because its volume is read-only
// during a snapshot that fails.
func incident(now time.Time) (ours []*eventsv1.Event, legacy []*corev1.Event) {
	object := func(apiVersion, kind, namespace, name string) series.Reference {
		return series.Reference{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name, UID: types.UID("uid-of-" + name)}
	}
	pod := object("v1", "Pod", "shop", "checkout-0")
	node := object("v1", "Node", "", "worker-3")
	volume := object("v1", "PersistentVolumeClaim", "shop", "orders-data")
	backup := object("example.com/v1", "Backup", "shop", "nightly")
	web := object("v1", "Pod", "shop", "web-6d4cf-9tq8d")
	add := func(name string, regarding, related series.Reference, controller, kind, reason, action, note, last string, state series.State, from, to time.Duration, count int32) {
		s := series.Series{
			Key: series.Key{
				Regarding: regarding, Related: related, Type: kind, Reason: reason, Action: action,
				ReportingController: controller, ReportingInstance: controller + "-" + map[bool]string{true: "worker-3", false: "1"}[controller == "kubelet"],
			},
			State: state, Namespace: "shop", Name: name, Note: note, LastNote: last, Count: count,
			First: now.Add(-from), Last: now.Add(-to), Heartbeat: 30 * time.Minute,
		}
		if regarding.Namespace == "" {
			s.Namespace = "default"
		}
		ours = append(ours, s.Event())
	}
	none := series.Reference{}
	add("checkout-0.5be3ab21c4d8f9e7", pod, node, "default-scheduler", "Normal", "Scheduled", "Binding",
		"Successfully assigned shop/checkout-0 to worker-3", "", series.Singleton, incidentAge, incidentAge, 1)
	add("orders-data.91f0c7de23ab4586", volume, pod, "example.com/volume-controller", "Warning", "WritesSuspended", "Suspending",
		"checkout-0 cannot write to orders-data until the snapshot is complete", "", series.Singleton, 68*time.Minute, 68*time.Minute, 1)
	add("checkout-0.1f2864d75ca51d0d", pod, none, "kubelet", "Warning", "BackOff", "Restarting",
		"Back-off 10s restarting failed container app", "Back-off 5m0s restarting failed container app", series.Ongoing, 67*time.Minute, 4*time.Minute, 402)
	add("nightly.ced76d4631424fb8", backup, volume, "example.com/backup-controller", "Warning", "SnapshotFailed", "Snapshotting",
		"snapshot of orders-data failed: attempt 1: quota exceeded", "snapshot of orders-data failed: attempt 5109: quota exceeded",
		series.Ongoing, 69*time.Minute, 2*time.Minute, 5109)
	add("worker-3.be518343584b3421", node, none, "node-controller", "Warning", "NodeNotReady", "MonitoringHealth",
		"Node worker-3 is not ready", "", series.Finished, 40*time.Minute, 25*time.Minute, 20)
	legacy = append(legacy, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "shop", Name: "web-6d4cf-9tq8d.17d3c5a2b1f0e9d8"},
		InvolvedObject: web.ObjectReference(), Type: "Warning", Reason: "Unhealthy", Message: "Readiness probe failed: connection refused",
		Source: corev1.EventSource{Component: "kubelet", Host: "worker-3"}, Count: 88,
		FirstTimestamp: metav1.NewTime(now.Add(-61 * time.Minute)), LastTimestamp: metav1.NewTime(now.Add(-3 * time.Minute)),
	})
	return ours, legacy
}

// startIncident starts a server with the Events of the pages.
func startIncident(t *testing.T) *controlplane.Server {
	t.Helper()
	server := apiserver.Start(t, controlplane.Options{})
	clients := apiserver.ClientsetFor(t, apiserver.ConfigOf(t, server))
	apiserver.CreateNamespace(t, clients, "shop")
	ours, legacy := incident(time.Now())
	create(t, clients, ours, legacy)
	return server
}

var (
	example = regexp.MustCompile("(?m)^```text\n\\$ kubectl series((?: .*)?)\n((?s:.*?))^```$")
	// What depends on the time: dates, times, durations, and where a bar is.
	dates     = regexp.MustCompile(`\d{4}-\d{2}-\d{2}|(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d+`)
	times     = regexp.MustCompile(`([━─╍┄\s]|\d{2}:\d{2}(:\d{2}(\.\d+)?)?)+`)
	durations = regexp.MustCompile(`\b(\d+[smhd])+\b`)
	// repairs are the lines about an Event that the API server emits if it is slow to start.
	repairs = regexp.MustCompile(`(?m)^.*(ipallocator-repair-controller|ClusterIPNotAllocated).*\n`)
)

// same returns output without what depends on the time.
func same(output string) string {
	return durations.ReplaceAllString(times.ReplaceAllString(dates.ReplaceAllString(output, ""), " "), "AGE")
}

// TestPages runs the commands in the pages.
func TestPages(t *testing.T) {
	server := startIncident(t)

	n := 0
	for _, page := range []string{"README.md", filepath.Join("docs", "kubectl-series.md")} {
		path := filepath.Join("..", "..", page)
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		current := example.ReplaceAllStringFunc(string(content), func(block string) string {
			n++
			match := example.FindStringSubmatch(block)
			args := strings.Fields(match[1])
			for i, arg := range args {
				args[i] = strings.Trim(arg, "'")
				if i > 0 && args[i-1] == "--file" {
					args[i] = filepath.Join(t.TempDir(), arg)
				}
			}
			out := strings.ReplaceAll(strings.TrimRight(show(t, server.Kubeconfig(), args...), "\n")+"\n", " \n", "\n")
			out = repairs.ReplaceAllString(out, "")
			if out == "\n" {
				out = ""
			}
			assert.Equal(t, same(out), same(match[2]), "%s: kubectl series%s; go test -update writes the page", page, match[1])
			return "```text\n$ kubectl series" + match[1] + "\n" + out + "```"
		})
		if *update {
			require.NoError(t, os.WriteFile(path, []byte(current), 0o644))
		}
	}
	assert.GreaterOrEqual(t, n, 3)
}
