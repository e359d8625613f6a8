package bench

import (
	"cmp"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	clientevents "k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/internal/controlplane"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

const (
	// commit is more than the interval at which etcd commits to its database.
	commit = 250 * time.Millisecond
	// inFlight is the number of requests in flight of all processes in a story. etcd writes
	// together what arrives together, so a recorder that sends more at a time would use less
	// CPU for each request.
	inFlight = 1
)

// MeasureServer tells each story that is wanted to each recorder in each round, in virtual time
// but with a real kube-apiserver and its etcd. idle is how long it measures the server
// without requests.
func MeasureServer(t *testing.T, nodes, rounds int, wanted func(story) bool, idle time.Duration) (results []Hour) {
	t.Helper()
	klog.SetLogger(logr.Discard())
	defer klog.ClearLogger()
	port := apiserver.FreePort(t)
	// Compaction at its own pace would cost CPU in some rounds.
	server := apiserver.Start(t, controlplane.Options{EtcdPort: port, ExtraArgs: []string{"--", "--etcd-compaction-interval=0"}})
	config := apiserver.ConfigOf(t, server)
	clients := apiserver.ClientsetFor(t, config)
	for i := range 200 {
		apiserver.CreateNamespace(t, clients, podNames(i).namespace)
	}
	client, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	m := &serverMeasurement{etcd: etcdAt(port), host: config.Host, client: client, clients: clients}
	told := slices.DeleteFunc(slices.Clone(stories), func(s story) bool { return !wanted(s) })
	for _, name := range Recorders { // to warm up
		m.measure(t, name, told[0], nodes)
	}
	slept, before := time.Now(), m.etcd.used()
	time.Sleep(idle)
	m.idle = m.etcd.used().minus(before).times(1 / time.Since(slept).Seconds())
	for _, s := range told {
		all := make([][]Hour, len(Recorders))
		for round := range rounds {
			for i := range Recorders { // in an order that rotates
				i = (i + round) % len(Recorders)
				h := m.measure(t, Recorders[i], s, nodes)
				t.Logf("%s, %s: %d requests %v, %v of CPU, %d of %d occurrences",
					s.name, h.Recorder, h.Total(), h.Requests, time.Duration(h.CPU.Median).Round(time.Millisecond), h.Counted, h.Occurrences)
				all[i] = append(all[i], h)
			}
		}
		for _, hours := range all {
			results = append(results, medianHour(hours))
		}
	}
	return results
}

// medianHour returns the round with the median CPU, the higher one if their number is even.
func medianHour(rounds []Hour) Hour {
	slices.SortFunc(rounds, func(a, b Hour) int { return cmp.Compare(a.CPU.Median, b.CPU.Median) })
	median := rounds[len(rounds)/2]
	median.CPU.Min, median.CPU.Max = rounds[0].CPU.Median, rounds[len(rounds)-1].CPU.Median
	return median
}

type serverMeasurement struct {
	etcd    etcd
	host    string
	client  *http.Client
	clients kubernetes.Interface
	idle    serverUsage // per second
}

// measure tells a story to a recorder.
func (m *serverMeasurement) measure(t *testing.T, name string, s story, nodes int) Hour {
	t.Helper()
	m.etcd.clear()
	b := newBridge(m.client, inFlight)
	defer b.stop()
	h := &Hour{Story: s.name, Nodes: nodes, Recorder: name}
	begin, before := time.Now(), m.etcd.used()
	synctest.Test(t, func(*testing.T) {
		clients, err := kubernetes.NewForConfig(&rest.Config{Host: m.host, Transport: b, QPS: -1, ContentConfig: rest.ContentConfig{
			// The kubelet, the scheduler and the controller manager use protobuf.
			ContentType: runtime.ContentTypeProtobuf, AcceptContentTypes: runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON,
		}})
		must(err)
		s.play(h, sinks{
			listed:   true,
			ours:     &events.EventSinkImpl{Interface: clients.EventsV1()},
			toolsNew: &clientevents.EventSinkImpl{Interface: clients.EventsV1()},
			toolsOld: &typedcorev1.EventSinkImpl{Interface: clients.CoreV1().Events("")},
		})
	})
	time.Sleep(commit)
	used := m.etcd.used().minus(before).minus(m.idle.times(time.Since(begin).Seconds()))
	h.CPU.Median, h.Written, h.Heap = float64(used.cpu), int64(used.putBytes), 0
	h.Requests, h.Refused, h.Sent = b.requests, b.refused, b.sent
	h.Events, h.Stored = m.etcd.stored()
	h.Counted = m.counted(t)
	return *h
}

// counted returns the number of occurrences that all Events account for.
func (m *serverMeasurement) counted(t *testing.T) (n int) {
	t.Helper()
	opts := metav1.ListOptions{Limit: 1000}
	for {
		page, err := m.clients.CoreV1().Events(metav1.NamespaceAll).List(t.Context(), opts)
		require.NoError(t, err)
		for i := range page.Items {
			e := &page.Items[i]
			count := max(1, int(e.Count))
			if e.Series != nil {
				count = max(count, int(e.Series.Count))
			}
			n += count
		}
		if opts.Continue = page.Continue; opts.Continue == "" {
			return n
		}
	}
}
