package bench

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/internal/controlplane"
	"github.com/eventseries/eventseries/internal/tracker"
	"github.com/eventseries/eventseries/series"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// List is what the lists of processes that start cost a real API server: the CPU of each
// request, and of all that a herd of processes makes.
type List struct {
	Events int           `json:"events"` // on the server
	Small  int           `json:"small"`  // in the small namespace
	Ask    time.Duration `json:"ask"`    // limit=1 in the small namespace
	Count  time.Duration `json:"count"`  // limit=1 in all namespaces
	List   time.Duration `json:"list"`   // the Events of a controller that has none
	Herds  []Herd        `json:"herds"`
}

// Herd is what processes cost that start within a minute.
type Herd struct {
	Nodes     int           `json:"nodes"`     // with two processes each, of which each continues its own series
	Leaders   int           `json:"leaders"`   // processes that continue the series of their controllers
	Writes    int           `json:"writes"`    // of the cluster per second, as the resourceVersions say
	Unlimited bool          `json:"unlimited"` // without Options.ListLimit
	Asked     int           `json:"asked"`     // requests by kind
	Counted   int           `json:"counted"`
	Listed    int           `json:"listed"`
	CPU       time.Duration `json:"cpu"`     // of the server for all of them
	Busiest   time.Duration `json:"busiest"` // for those of a minute
}

// Processes returns the number of processes.
func (h Herd) Processes() int { return 2*h.Nodes + h.Leaders }

// MeasureList fills an API server with each of the numbers of Events, and makes so many
// requests of each kind that they take enough CPU for a mean.
func MeasureList(t *testing.T, sizes []int, enough time.Duration) (results []List) {
	t.Helper()
	const small, share = "small", 100 // one of so many Events is in the small namespace
	port := apiserver.FreePort(t)
	server := apiserver.Start(t, controlplane.Options{EtcdPort: port, ExtraArgs: []string{"--", "--etcd-compaction-interval=0"}})
	config := apiserver.ConfigOf(t, server)
	clients := apiserver.ClientsetFor(t, config)
	sink := &events.EventSinkImpl{Interface: clients.EventsV1()}
	etcd := etcdAt(port)
	for _, n := range sizes {
		etcd.clear()
		value := ongoingEvent(t, clients, etcd)
		etcd.clear()
		etcd.put(n, func(i int) string {
			namespace := small
			if i%share > 0 {
				namespace = fmt.Sprint("large-", i%share)
			}
			return fmt.Sprintf("%s%s/pod-%06d.0123456789abcdef", firstEventKey, namespace, i)
		}, value)
		cost := func(namespace string, opts metav1.ListOptions) time.Duration {
			return etcd.cost(enough, func(int) {
				_, err := sink.List(t.Context(), namespace, opts)
				require.NoError(t, err)
			})
		}
		result := List{
			Events: n,
			Small:  n / share,
			Ask:    cost(small, metav1.ListOptions{Limit: 1}),
			Count:  cost(metav1.NamespaceAll, metav1.ListOptions{Limit: 1}),
			List: cost(metav1.NamespaceAll, metav1.ListOptions{
				FieldSelector: fields.OneTermEqualSelector("reportingController", "example.com/none").String(),
				LabelSelector: series.LabelState + " notin (Finished,Unknown)",
				Limit:         500,
			}),
		}
		t.Logf("%d events: ask %v, count %v, list %v", n, result.Ask, result.Count, result.List)
		for _, herd := range herdsOf(n) {
			result.run(&herd)
			result.Herds = append(result.Herds, herd)
		}
		results = append(results, result)
	}
	return results
}

// ongoingEvent returns how etcd stores the Event of an Ongoing series.
func ongoingEvent(t *testing.T, clients kubernetes.Interface, from etcd) (value []byte) {
	t.Helper()
	b := newOurs(&events.EventSinkImpl{Interface: clients.EventsV1()}, events.Options{SkipList: true})
	defer b.close()
	regarding := &corev1.ObjectReference{
		APIVersion: "v1", Kind: "Pod", Namespace: metav1.NamespaceDefault, Name: "pod-of-a-deployment-5d8f7c9b6-x2x4x",
		UID: "0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f", FieldPath: "spec.containers{app}",
	}
	for range 2 {
		b.recorder.Eventf(regarding, nil, corev1.EventTypeWarning, "BackOff", "Restarting", "Back-off restarting failed container app in pod %s", regarding.Name)
		must(b.Flush(t.Context()))
	}
	from.eachPage(false, func(_, _ string, page []keyValue) {
		for _, kv := range page {
			if strings.Contains(string(kv.Key), regarding.Name) {
				value = kv.Value
			}
		}
	})
	require.NotEmpty(t, value)
	return value
}

// herdsOf returns herds of a cluster that has 30 Events for each node, and writes as often
// as its nodes renew their Leases; and one of 5,000 nodes that writes less.
func herdsOf(n int) []Herd {
	const nodes, leaders = 5000, 200
	own := min(max(n/30, 3), nodes)
	herd := Herd{Nodes: own, Leaders: max(own*leaders/nodes, 5), Writes: own / 10}
	unlimited := herd
	unlimited.Unlimited = true
	herds := []Herd{herd, unlimited}
	if own < nodes {
		herds = append(herds, Herd{Nodes: nodes, Leaders: leaders, Writes: herd.Writes})
	}
	return herds
}

// run makes the requests of a herd to nothing, and adds up what each list would cost. Each
// process lists because it has emitted an event.
func (l *List) run(h *Herd) {
	epoch := time.Unix(0, 0)
	minutes := make(map[time.Duration]time.Duration)
	for i := range h.Processes() {
		opts := tracker.Options{Capacity: 1}
		if i >= 2*h.Nodes {
			opts.Scope = tracker.SameController
		}
		if h.Unlimited {
			opts.ListLimit = -1
		}
		now := epoch.Add(time.Duration(i) * time.Minute / time.Duration(h.Processes()))
		tr := tracker.New(opts, now)
		tr.Observe(&series.Key{Regarding: series.Reference{Name: "node"}}, tracker.Occurrence{}, now)
		tr.List("example.com/controller", metav1.NamespaceAll, now)
		for {
			advance, request := tr.Wake(now)
			if request.IsZero() && advance.IsZero() {
				break
			}
			if request.IsZero() || !advance.IsZero() && advance.Before(request) {
				request = advance
			}
			if request.After(now) {
				now = request
			}
			tr.Advance(now)
			w, _, ok := tr.Next(now)
			if !ok {
				continue
			}
			version := 1 + uint64(now.Sub(epoch).Seconds()*float64(h.Writes))
			result := tracker.Result{Outcome: tracker.Written, Listed: tracker.Listed{Version: version}}
			cost := l.List
			switch page := w.Page; {
			case page == nil:
				cost, result.Event = 0, &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{ResourceVersion: strconv.FormatUint(version, 10)}}
			case page.Most > 0 && page.Namespace != metav1.NamespaceAll:
				h.Asked++
				cost, result.Listed.Events = l.Ask, int64(l.Small)
			case page.Most > 0:
				h.Counted++
				cost, result.Listed.Events = l.Count, int64(l.Events)
			default:
				h.Listed++
			}
			h.CPU += cost
			minutes[now.Sub(epoch)/time.Minute] += cost
			tr.Apply(w, result, now)
		}
	}
	for _, cpu := range minutes {
		h.Busiest = max(h.Busiest, cpu)
	}
}
