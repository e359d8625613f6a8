package bench

import (
	"context"
	"net"
	"regexp"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// Start is the cost of a restart: how a process continues the series of an earlier
// one on a real API server.
type Start struct {
	Events   int           `json:"events"`   // on the server, all of ongoing series
	Creating time.Duration `json:"creating"` // time to write them
	Workers  int           `json:"workers"`  // concurrent requests for creates and adoptions
	Rebuild  Rebuild       `json:"rebuild"`  // by listing
	Whole    Rebuild       `json:"whole"`    // by listing whole pages in JSON, as other sinks do, and ours once did
	Reads    []Read        `json:"reads"`    // of all pages, without using them
	Adoption Adoption      `json:"adoption"` // by name
}

// Rebuild is the cost of listing all Events, until the recorder tracks their series. It is
// the round with the median CPU.
type Rebuild struct {
	Restored  uint64        `json:"restored"`
	Wall      time.Duration `json:"wall"`
	CPU       time.Duration `json:"cpu"`
	Pages     uint64        `json:"pages"`
	Allocated uint64        `json:"allocated"` // bytes in total
	Peak      int64         `json:"peak"`      // maximum heap growth in bytes, including garbage
	Heap      int64         `json:"heap"`      // final heap growth in bytes
	Server    time.Duration `json:"server"`    // CPU of the API server
}

// Read is how long it takes to read all pages of a list without decoding them. No recorder
// is faster.
type Read struct {
	ContentType string        `json:"contentType"`
	Limit       int64         `json:"limit"` // of a page
	Wall        time.Duration `json:"wall"`
	Bytes       int64         `json:"bytes"`    // of all pages
	Server      time.Duration `json:"server"`   // CPU of the API server
	Received    int64         `json:"received"` // bytes from the server: compressed, with headers and TLS
}

// Adoption is the cost of continuing series that occur before a list, or without one,
// until all of them are written.
type Adoption struct {
	Series   int               `json:"series"`
	Adopted  uint64            `json:"adopted"`
	Wall     time.Duration     `json:"wall"`
	Requests map[string]uint64 `json:"requests"` // by kind and outcome
}

// MeasureStart creates n Events on the API server of the tests, lists them in both ways in
// each round, and adopts some of them.
func MeasureStart(t *testing.T, n, adopt, rounds int) Start {
	t.Helper()
	sink := &events.EventSinkImpl{Interface: apiserver.Clientset(t).EventsV1()}
	namespace := apiserver.Namespace(t)
	subjects := references(n)
	for i := range subjects {
		subjects[i].regarding.Object.(*corev1.ObjectReference).Namespace = namespace
	}
	s := Start{Events: n, Workers: 8}
	// A list fills at most half of the table.
	opts := events.Options{Capacity: 2 * (n + 1), Workers: s.Workers, Namespaces: []string{namespace}, ListLimit: -1}
	skipList := opts
	skipList.SkipList = true

	b := prepareOurs(sink, skipList)
	for range 2 { // before the start, so that a single request writes both
		for i := range subjects {
			b.eventf(&subjects[i])
		}
	}
	begin := time.Now()
	b.start()
	must(b.Flush(context.Background()))
	s.Creating = time.Since(begin)
	b.close()

	subjects = slices.Clone(subjects[:adopt]) // a process that starts has no others
	var rebuilds, wholes []Rebuild
	for range rounds {
		wholes = append(wholes, measureRebuild(t, newWholePages(t, sink), opts, uint64(n)))
		rebuilds = append(rebuilds, measureRebuild(t, sink, opts, uint64(n)))
	}
	cpu := func(r Rebuild) time.Duration { return r.CPU }
	s.Rebuild, s.Whole = medianRound(rebuilds, cpu), medianRound(wholes, cpu)
	s.Reads = []Read{
		measureRead(t, namespace, runtime.ContentTypeJSON, wholePageSize),
		measureRead(t, namespace, runtime.ContentTypeProtobuf, wholePageSize),
		measureRead(t, namespace, runtime.ContentTypeProtobuf, 10*wholePageSize),
	}
	s.Adoption.measure(t, sink, skipList, subjects)
	return s
}

// measureRebuild lists n Events.
func measureRebuild(t *testing.T, sink events.EventSink, opts events.Options, n uint64) (r Rebuild) {
	t.Helper()
	serverBefore := serverCPU(t)
	heap := liveHeap()
	before := used()
	b := newOurs(sink, opts)
	defer b.close()
	b.list()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		r.Peak = max(r.Peak, int64(heapNow())-heap)
		if r.Restored = b.Stats().Restored; r.Restored >= n {
			break
		}
		require.True(t, time.Now().Before(deadline), "restored %d of %d series after %v", r.Restored, n, patience)
	}
	u := used().since(before)
	r.Wall, r.CPU, r.Allocated = u.wall, u.cpu, u.bytes
	r.Pages = b.Stats().Writes[events.WriteKey{Kind: "list", Outcome: "written"}]
	r.Heap = liveHeap() - heap
	r.Server = serverCPU(t) - serverBefore
	return r
}

// Passing returns the maximum heap growth above what the restored series take: garbage, and
// what is needed for a while.
func (r Rebuild) Passing() int64 { return r.Peak - r.Heap }

// wholePages is a sink that returns whole pages in JSON. The recorder cannot tell it from a
// sink of a user.
type wholePages struct {
	events.EventSink
	client kubernetes.Interface
}

// wholePageSize is the size of the pages that the recorder once listed.
const wholePageSize = 500

func newWholePages(t *testing.T, sink events.EventSink) *wholePages {
	t.Helper()
	return &wholePages{sink, apiserver.ClientsetFor(t, configOf(t, runtime.ContentTypeJSON))}
}

// List implements [events.EventLister].
func (s *wholePages) List(ctx context.Context, namespace string, opts metav1.ListOptions) (*eventsv1.EventList, error) {
	opts.Limit = wholePageSize
	return s.client.EventsV1().Events(namespace).List(ctx, opts)
}

// continueToken is a token of the API server: JSON in base64. It is at the beginning of a
// page.
var continueToken = regexp.MustCompile(`eyJ[0-9A-Za-z_-]+`)

// measureRead reads all pages with the selector of the recorder.
func measureRead(t *testing.T, namespace, contentType string, limit int64) Read {
	t.Helper()
	r := Read{ContentType: contentType, Limit: limit}
	config, received := counting(configOf(t, contentType))
	client := apiserver.ClientsetFor(t, config).EventsV1().RESTClient()
	serverBefore := serverCPU(t)
	opts := metav1.ListOptions{Limit: limit, FieldSelector: "reportingController=" + controller}
	begin := time.Now()
	for more := true; more; more = opts.Continue != "" {
		page, err := client.Get().Namespace(namespace).Resource("events").VersionedParams(&opts, scheme.ParameterCodec).Do(t.Context()).Raw()
		require.NoError(t, err)
		r.Bytes += int64(len(page))
		opts.Continue = string(continueToken.Find(page[:min(len(page), 1000)]))
	}
	r.Wall = time.Since(begin)
	r.Server, r.Received = serverCPU(t)-serverBefore, received.Load()
	return r
}

// configOf returns a configuration with a content type and without a rate limit.
func configOf(t *testing.T, contentType string) *rest.Config {
	t.Helper()
	config := apiserver.Config(t)
	config.ContentType, config.AcceptContentTypes, config.QPS = contentType, contentType, -1
	return config
}

// serverCPU returns the CPU time of the API server of the tests since its start.
func serverCPU(t *testing.T) time.Duration {
	t.Helper()
	body, err := apiserver.Clientset(t).Discovery().RESTClient().Get().AbsPath("/metrics").Stream(t.Context())
	require.NoError(t, err)
	m, err := parseMetrics(body)
	require.NoError(t, err)
	require.NoError(t, body.Close())
	return m.cpu()
}

// counting returns a copy of a configuration whose clients count the bytes that they
// receive.
func counting(config *rest.Config) (*rest.Config, *atomic.Int64) {
	received := new(atomic.Int64)
	config = rest.CopyConfig(config)
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		return countingConn{conn, received}, err
	}
	return config, received
}

type countingConn struct {
	net.Conn
	received *atomic.Int64
}

// Read implements net.Conn.
func (c countingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.received.Add(int64(n))
	return n, err
}

// measure emits one event about each subject. All of them have Events on the server.
func (a *Adoption) measure(t *testing.T, sink events.EventSink, opts events.Options, subjects []subject) {
	t.Helper()
	b := newOurs(sink, opts)
	defer b.close()
	begin := time.Now()
	for i := range subjects {
		b.eventf(&subjects[i])
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, b.Flush(ctx))
	a.Wall = time.Since(begin)
	stats := b.Stats()
	a.Series, a.Adopted, a.Requests = len(subjects), stats.Adopted, make(map[string]uint64)
	for key, n := range stats.Writes {
		a.Requests[key.Kind+", "+key.Outcome] = n
	}
}
