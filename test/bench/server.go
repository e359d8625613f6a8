package bench

import (
	"net/http"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/internal/controlplane"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// Server is what the events of an hour cost a real kube-apiserver and its etcd. It is the
// round with the median CPU, the higher one if the number of rounds is even.
type Server struct {
	Story       string             `json:"story"`
	Size        int                `json:"size"` // objects in the story
	Recorder    string             `json:"recorder"`
	Processes   int                `json:"processes"`   // with a recorder each
	Occurrences int                `json:"occurrences"` // calls of Eventf
	Counted     int                `json:"counted"`     // occurrences that the stored Events account for
	Verbs       map[string]Traffic `json:"verbs"`
	Minutes     []int              `json:"minutes"`   // requests in each minute
	Used        ServerUsage        `json:"used"`      // without what the idle server uses. Database includes all versions
	CPU         Spread             `json:"cpu"`       // of the server in all rounds, in nanoseconds
	Events      int                `json:"events"`    // at the end
	Stored      int64              `json:"stored"`    // bytes of their keys and values in etcd
	Compacted   float64            `json:"compacted"` // growth of the database without earlier versions
	Wall        time.Duration      `json:"wall"`      // real time
	Idle        time.Duration      `json:"idle"`      // CPU of the idle server per second
}

// Total returns the traffic of all verbs.
func (s *Server) Total() (sum Traffic) {
	for _, t := range s.Verbs {
		sum.Requests += t.Requests
		sum.Refused += t.Refused
		sum.Protobuf += t.Protobuf
		sum.Sent += t.Sent
		sum.Received += t.Received
	}
	return sum
}

// commit is more than the interval at which etcd commits to its database.
const commit = 250 * time.Millisecond

// inFlight is the number of requests in flight of all processes in a story. etcd writes
// together what arrives together, so a recorder that sends more at a time would use less
// CPU for each request.
const inFlight = 1

// MeasureServer tells each story whose name matches only to each recorder in each round, in virtual time but with
// a real server. The stories are smaller by a factor. A story has at least two rounds, and
// more if they take less than long. idle is how long MeasureServer measures the server
// without requests. If it is zero, the growth of the database is not exact.
func MeasureServer(t *testing.T, only *regexp.Regexp, factor int, long, idle time.Duration) []Server {
	t.Helper()
	port := apiserver.FreePort(t)
	// Compaction at its own pace would change the size of the database.
	server := apiserver.Start(t, controlplane.Options{EtcdPort: port, ExtraArgs: []string{"--", "--etcd-compaction-interval=0"}})
	config := apiserver.ConfigOf(t, server)
	clients := apiserver.ClientsetFor(t, config)
	apiserver.CreateNamespace(t, clients, storyNamespace)
	client, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	m := &serverMeasurement{etcd: etcdAt(port), host: config.Host, client: client, clients: clients, commit: min(commit, idle)}

	recorders := []string{Ours, ToolsNew, ToolsOld}
	for _, name := range recorders { // to warm up
		m.measure(t, name, story{"warm-up", 200, distinctEvents})
	}
	slept, before := time.Now(), m.etcd.used()
	time.Sleep(idle)
	m.idle = m.etcd.used().minus(before).times(1 / time.Since(slept).Seconds())

	var results []Server
	for _, s := range stories {
		if !only.MatchString(s.name) {
			continue
		}
		s.size = max(1, s.size/factor)
		told, begin := make([][]Server, len(recorders)), time.Now()
		for round := 0; round < 2 || time.Since(begin) < long; round++ {
			for i := range recorders { // in an order that rotates
				i = (i + round) % len(recorders)
				r := m.measure(t, recorders[i], s)
				total := r.Total()
				t.Logf("%s, %s: %d requests, %v of CPU, %.0f bytes in etcd, %d of %d occurrences, took %v", s.name, r.Recorder,
					total.Requests, r.Used.CPU.Round(time.Millisecond), r.Used.PutBytes, r.Counted, r.Occurrences, r.Wall.Round(time.Millisecond))
				told[i] = append(told[i], r)
			}
		}
		for _, rounds := range told {
			results = append(results, medianServer(rounds))
		}
	}
	return results
}

func medianServer(rounds []Server) Server {
	median := medianRound(rounds, func(s Server) time.Duration { return s.Used.CPU })
	median.CPU = Spread{Min: float64(rounds[0].Used.CPU), Median: float64(median.Used.CPU), Max: float64(rounds[len(rounds)-1].Used.CPU)}
	return median
}

type serverMeasurement struct {
	etcd    etcd
	host    string
	client  *http.Client
	clients kubernetes.Interface
	commit  time.Duration // until the size of the database is exact
	idle    ServerUsage   // per second
}

// measure tells a story to a recorder.
func (m *serverMeasurement) measure(t *testing.T, name string, s story) Server {
	t.Helper()
	m.etcd.clear()
	b := newBridge(m.client, inFlight)
	defer b.stop()
	r := Server{Story: s.name, Size: s.size, Recorder: name, Idle: m.idle.CPU}

	begin, before := time.Now(), m.etcd.used()
	synctest.Test(t, func(*testing.T) {
		c := &cluster{began: time.Now(), reporters: make(map[string]reporter)}
		clients, err := kubernetes.NewForConfig(&rest.Config{Host: m.host, Transport: b.from(c.began), QPS: -1, ContentConfig: rest.ContentConfig{
			// The kubelet, the scheduler and the controller manager use protobuf.
			ContentType: runtime.ContentTypeProtobuf, AcceptContentTypes: runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON,
		}})
		must(err)
		var processes []recorder
		c.start = func(component, host string) reporter {
			p, report := newProcess(name, clients, component, host)
			processes = append(processes, p)
			return report
		}
		s.tell(c, s.size)
		c.until(storyTime + afterStory)
		r.Occurrences, r.Processes = c.occurrences, len(processes)
		for _, p := range processes {
			p.close()
		}
	})
	time.Sleep(m.commit)
	after := m.etcd.used()
	r.Wall = time.Since(begin)
	r.Used = after.minus(before).minus(m.idle.times(r.Wall.Seconds()))

	r.Verbs, r.Minutes = b.traffic.verbs, b.traffic.minutes
	m.etcd.compact()
	r.Compacted = m.etcd.used().Database - before.Database
	r.Events, r.Stored = m.etcd.stored()
	r.Counted = m.counted(t)
	return r
}

// newProcess starts a process whose only recorder is that of a component.
func newProcess(name string, clients kubernetes.Interface, component, host string) (recorder, reporter) {
	opts := events.Options{QPS: -1} // as the clients of the others
	if host != "" {
		opts.ReportingInstance = component + "-" + host
	}
	p := newProgram(name, clients, opts)
	return p, p.(interface{ reporter(_, _ string) reporter }).reporter(component, host)
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
