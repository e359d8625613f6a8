package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// In this file people look at Events: what the server prints of them, for kubectl
// and for every other client that asks for a Table.

// printed is an Event and what is to be seen of it.
type printed struct {
	pod         *corev1.Pod
	state       string
	count       int
	first, last time.Time
}

// recordPrinted records a series that is running, one that has ended, and a
// singleton, each about a Pod of its own, and returns them by the Pod's name.
// They happened some minutes ago.
func recordPrinted(t *testing.T, newSink func(*kubernetes.Clientset) events.EventSink) (namespace string, all map[string]printed) {
	t.Helper()
	namespace = apiserver.Namespace(t)
	now := time.Now()
	all = map[string]printed{
		"looping": {state: "Ongoing", count: 57, first: now.Add(-8 * time.Minute), last: now.Add(-5 * time.Minute)},
		"settled": {state: "Finished", count: 5, first: now.Add(-25 * time.Minute), last: now.Add(-22 * time.Minute)},
		"once":    {count: 1, first: now.Add(-4 * time.Minute), last: now.Add(-4 * time.Minute)},
	}
	for name, p := range all {
		// A clock of its own: what is quiet for long enough is finished.
		clock := clocktesting.NewFakeClock(p.first)
		r := newRecordingTo(t, newSink, apiserver.Config(t), events.Options{SkipList: true, Clock: clock})
		r.start(t)
		p.pod = createPod(t, r.clients, namespace, name)
		all[name] = p
		recorder := r.recorder()
		emit(recorder, p.pod, 1)
		r.flush(t)
		clock.SetTime(p.last)
		emit(recorder, p.pod, p.count-1)
		r.flush(t)
		if p.state == "Finished" {
			eventuallyLater(t, clock, func(ctx context.Context) error {
				found, err := eventsAbout(ctx, r.clients, namespace, p.pod.UID)
				if err == nil && state(&found[0]) != p.state {
					err = fmt.Errorf("state is %q", state(&found[0]))
				}
				return err
			})
		}
		event := eventAbout(t, r.clients, namespace, p.pod.UID)
		require.Equal(t, p.state, state(event))
	}
	return namespace, all
}

// createPod creates a Pod that is never run: no scheduler has that name.
func createPod(t *testing.T, clients kubernetes.Interface, namespace, name string) *corev1.Pod {
	t.Helper()
	var pod *corev1.Pod
	// On a cluster the namespace has its service account a moment later.
	apiserver.Eventually(t, patience, func(ctx context.Context) (err error) {
		pod, err = clients.CoreV1().Pods(namespace).Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1.PodSpec{
				SchedulerName: "nobody",
				Containers:    []corev1.Container{{Name: "main", Image: "example.com/none"}},
			},
		}, metav1.CreateOptions{})
		return err
	})
	return pod
}

// requireAge fails the test unless an age, as people are shown it, was that of a
// time when somebody looked between begin and now. Above ten minutes seconds are
// not shown.
func requireAge(t *testing.T, at, begin time.Time, age string) {
	t.Helper()
	const skew = 5 * time.Second // of the clocks of server and test
	got, err := time.ParseDuration(age)
	require.NoError(t, err, "age %q of %v", age, at)
	assert.Greater(t, got, begin.Sub(at)-time.Minute-skew, "age %q of %v", age, at)
	assert.Less(t, got, time.Since(at)+skew, "age %q of %v", age, at)
}

// requireRow fails the test unless a row shows an Event. Columns that it does not
// have are not looked at, but those that kubectl shows must be there.
func requireRow(t *testing.T, name string, p printed, begin time.Time, row map[string]string) {
	t.Helper()
	requireAge(t, p.last, begin, row["LAST SEEN"])
	assert.Equal(t, corev1.EventTypeNormal, row["TYPE"])
	assert.Equal(t, "Tested", row["REASON"])
	assert.Equal(t, "pod/"+name, strings.ToLower(row["OBJECT"]))
	assert.Equal(t, "it was tested", row["MESSAGE"])
}

// requireWideRow is requireRow for one that has what kubectl shows with -o wide.
func requireWideRow(t *testing.T, name string, p printed, begin time.Time, row map[string]string) {
	t.Helper()
	requireRow(t, name, p, begin, row)
	requireAge(t, p.first, begin, row["FIRST SEEN"])
	assert.Equal(t, fmt.Sprint(p.count), row["COUNT"])
	assert.Contains(t, row["SOURCE"], controller)
	assert.Equal(t, "", row["SUBOBJECT"])
	assert.True(t, strings.HasPrefix(row["NAME"], name+"."), row["NAME"])
}

// rowsByPod returns rows by the name of the Pod that they are about.
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

// sinks are the ways by which Events are written.
var sinks = map[string]func(*kubernetes.Clientset) events.EventSink{
	"events.k8s.io": eventsSink,
	"core":          coreSink,
}

// TestPrintedColumns looks at the Tables of the server, through both groups.
func TestPrintedColumns(t *testing.T) {
	t.Parallel()
	for written, newSink := range sinks {
		t.Run("written through "+written, func(t *testing.T) {
			t.Parallel()
			namespace, all := recordPrinted(t, newSink)
			clients := apiserver.Clientset(t)
			for read, client := range map[string]rest.Interface{
				"events.k8s.io": clients.EventsV1().RESTClient(),
				"core":          clients.CoreV1().RESTClient(),
			} {
				t.Run("read through "+read, func(t *testing.T) {
					begin := time.Now()
					columns, rows := eventTable(t, client, namespace)
					assert.Equal(t, map[string]int32{
						"LAST SEEN": 0, "TYPE": 0, "REASON": 0, "OBJECT": 0, "MESSAGE": 0,
						"SUBOBJECT": 1, "SOURCE": 1, "FIRST SEEN": 1, "COUNT": 1, "NAME": 1,
					}, columns, "and which are wide")
					byPod := rowsByPod(t, rows)
					require.Len(t, byPod, len(all))
					for name, p := range all {
						requireWideRow(t, name, p, begin, byPod[name])
					}
				})
			}
		})
	}
}

// eventTable has the server print the Events of a namespace. It returns the
// columns with their priorities, and the rows. Names are in capitals, as kubectl
// shows them.
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
