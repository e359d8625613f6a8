package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// printed is an Event, and what a user must see of it.
type printed struct {
	pod         *corev1.Pod
	state       string
	count       int
	first, last time.Time
}

// recordPrinted records an Ongoing series, a Finished series and a singleton,
// all some minutes old, and returns them by the name of their Pods.
func recordPrinted(t *testing.T, sink newSink) (namespace string, all map[string]printed) {
	t.Helper()
	namespace = apiserver.Namespace(t)
	now := time.Now()
	all = map[string]printed{
		"looping": {state: "Ongoing", count: 57, first: now.Add(-8 * time.Minute), last: now.Add(-5 * time.Minute)},
		"settled": {state: "Finished", count: 5, first: now.Add(-25 * time.Minute), last: now.Add(-22 * time.Minute)},
		"once":    {count: 1, first: now.Add(-4 * time.Minute), last: now.Add(-4 * time.Minute)},
	}
	for name, p := range all {
		clock := clocktesting.NewFakeClock(p.first)
		r := startRecording(t, at(clock, sink), apiserver.Config(t), events.Options{})
		p.pod = apiserver.CreatePod(t, r.clients, namespace, name)
		all[name] = p
		recorder := r.recorder()
		emit(recorder, p.pod, 1)
		r.flush(t)
		clock.SetTime(p.last)
		emit(recorder, p.pod, p.count-1)
		r.flush(t)
		if p.state == "Finished" {
			eventuallyLater(t, clock, func(c *assert.CollectT) {
				requireFinished(c, eventsAbout(c, r.clients, namespace, p.pod.UID))
			})
		}
		event := eventAbout(t, r.clients, namespace, p.pod.UID)
		require.Equal(t, p.state, state(event))
	}
	return namespace, all
}

// requireAge fails the test unless age is the age that a user saw between begin
// and now. An age above ten minutes has no seconds.
func requireAge(t *testing.T, at, begin time.Time, age string) {
	t.Helper()
	const skew = 5 * time.Second // between the clocks of server and test
	got, err := time.ParseDuration(age)
	require.NoError(t, err, "age %q of %v", age, at)
	assert.Greater(t, got, begin.Sub(at)-time.Minute-skew, "age %q of %v", age, at)
	assert.Less(t, got, time.Since(at)+skew, "age %q of %v", age, at)
}

// requireRow fails the test unless a row shows an Event in the columns that
// kubectl prints by default.
func requireRow(t *testing.T, name string, p printed, begin time.Time, row map[string]string) {
	t.Helper()
	requireAge(t, p.last, begin, row["LAST SEEN"])
	assert.Equal(t, corev1.EventTypeNormal, row["TYPE"])
	assert.Equal(t, "Tested", row["REASON"])
	assert.Equal(t, "pod/"+name, strings.ToLower(row["OBJECT"]))
	assert.Equal(t, "it was tested", row["MESSAGE"])
}

func rowsByPod(t *testing.T, rows []map[string]string) map[string]map[string]string {
	t.Helper()
	byPod := make(map[string]map[string]string)
	for _, row := range rows {
		_, name, ok := strings.Cut(row["OBJECT"], "/")
		require.True(t, ok, "%v", row)
		require.NotContains(t, byPod, name, "two rows")
		byPod[name] = row
	}
	return byPod
}

// alternatingSink creates Events through core/v1, and patches them through each group in turn.
type alternatingSink struct {
	events.EventSink
	newer   events.EventSink
	patches atomic.Int32
}

func (s *alternatingSink) Patch(ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
	if s.patches.Add(1)%2 == 0 {
		return s.EventSink.Patch(ctx, event, data)
	}
	return s.newer.Patch(ctx, event, data)
}

// TestPrintedEvents reads Events as tables, which kubectl get shows, and with the kubectl
// commands that format Events themselves.
func TestPrintedEvents(t *testing.T) {
	t.Parallel()
	all := maps.Clone(sinks)
	all["both"] = func(clients *kubernetes.Clientset) events.EventSink {
		return &alternatingSink{EventSink: coreSink(clients), newer: eventsSink(clients)}
	}
	for group, sink := range all {
		t.Run("written through "+group, func(t *testing.T) {
			t.Parallel()
			namespace, all := recordPrinted(t, sink)
			clients := apiserver.Clientset(t)
			for read, client := range map[string]rest.Interface{
				"events.k8s.io": clients.EventsV1().RESTClient(),
				"core":          clients.CoreV1().RESTClient(),
			} {
				t.Run("read through "+read, func(t *testing.T) { requireTable(t, client, namespace, all) })
			}
			t.Run("kubectl", func(t *testing.T) { requireKubectl(t, namespace, all) })
		})
	}
}

func requireTable(t *testing.T, client rest.Interface, namespace string, all map[string]printed) {
	t.Helper()
	begin := time.Now()
	columns, rows := eventTable(t, client, namespace)
	assert.Equal(t, map[string]int32{
		"LAST SEEN": 0, "TYPE": 0, "REASON": 0, "OBJECT": 0, "MESSAGE": 0,
		"SUBOBJECT": 1, "SOURCE": 1, "FIRST SEEN": 1, "COUNT": 1, "NAME": 1,
	}, columns, "columns and their priorities")
	byPod := rowsByPod(t, rows)
	require.Len(t, byPod, len(all))
	for name, p := range all {
		if p.state != "" && apiserver.Minor(t) < 25 {
			p.count++ // older servers print one too many for a series
		}
		row := byPod[name]
		requireRow(t, name, p, begin, row)
		requireAge(t, p.first, begin, row["FIRST SEEN"])
		assert.Equal(t, fmt.Sprint(p.count), row["COUNT"])
		assert.Contains(t, row["SOURCE"], controller)
		assert.Equal(t, "", row["SUBOBJECT"])
		assert.True(t, strings.HasPrefix(row["NAME"], name+"."), row["NAME"])
	}
}

// eventTable reads the Events of a namespace as a Table. It returns the columns
// with their priorities, and the rows, with headers in capitals as in kubectl.
func eventTable(t *testing.T, client rest.Interface, namespace string) (columns map[string]int32, rows []map[string]string) {
	t.Helper()
	body, err := client.Get().Namespace(namespace).Resource("events").
		SetHeader("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1").
		DoRaw(t.Context())
	require.NoError(t, err)
	var table metav1.Table
	require.NoError(t, json.Unmarshal(body, &table))
	columns = make(map[string]int32)
	for _, column := range table.ColumnDefinitions {
		columns[strings.ToUpper(column.Name)] = column.Priority
	}
	for _, cells := range table.Rows {
		require.Len(t, cells.Cells, len(table.ColumnDefinitions))
		row := make(map[string]string)
		for i, column := range table.ColumnDefinitions {
			row[strings.ToUpper(column.Name)] = fmt.Sprint(cells.Cells[i])
		}
		rows = append(rows, row)
	}
	return columns, rows
}

func requireKubectl(t *testing.T, namespace string, all map[string]printed) {
	t.Helper()
	program, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skipf("kubectl is not installed: %v", err)
	}
	kubectl := func(args ...string) string {
		return runKubectl(t, program, append([]string{"--namespace=" + namespace}, args...)...)
	}
	begin := time.Now()
	rows := parseRows(t, kubectl("events"))
	byPod := rowsByPod(t, rows)
	require.Len(t, byPod, len(all))
	for i, name := range []string{"settled", "looping", "once"} {
		assert.True(t, strings.HasSuffix(rows[i]["OBJECT"], "/"+name), "the latest one is last: %v", rows)
	}
	for name, p := range all {
		row := byPod[name]
		requireInterval(t, p, begin, row["LAST SEEN"])
		row["LAST SEEN"], _, _ = strings.Cut(row["LAST SEEN"], " ")
		requireRow(t, name, p, begin, row)

		begin := time.Now()
		_, table, ok := strings.Cut(kubectl("describe", "pod", name), "\nEvents:\n")
		require.True(t, ok)
		rows := parseRows(t, table)
		require.Len(t, rows, 2, "the line below the header, and one Event")
		requireInterval(t, p, begin, rows[1]["Age"])
		delete(rows[1], "Age")
		assert.Equal(t, map[string]string{
			"Type": "Normal", "Reason": "Tested", "From": controller, "Message": "it was tested",
		}, rows[1])
	}
}

// interval matches how kubectl shows a series: "5m (x57 over 8m)".
var interval = regexp.MustCompile(`^(\S+) \(x(\d+) over (\S+)\)$`)

// requireInterval fails the test unless kubectl shows the count and the ages of an
// Event.
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

// runKubectl runs kubectl on the shared server and returns its output. It leaves
// the caches of the user's kubectl alone.
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

// column matches a header of a table. At least two spaces separate columns.
var column = regexp.MustCompile(`\S+( \S+)*`)

// parseRows parses a table. The keys of each row are the headers.
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
