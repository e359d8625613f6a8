// Package integration tests the recorder on a real API server.
//
//	go test ./integration/
//
// The tests build and start the control plane in test/controlplane, and remove
// it when they end. With EVENTSERIES_USE_CLUSTER=1 they run on the cluster that
// KUBECONFIG names instead, each test in its own namespace. Tests that need a
// server of their own, for example to kill it, are skipped there.
package integration

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/eventseries/eventseries/compat"
	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/internal/wiring"
	"github.com/eventseries/eventseries/series"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

const (
	// controller is the reporting controller of all recordings.
	controller = "example.com/integration-test"

	// eventsResource and coreResource name the Events of events.k8s.io and of
	// core/v1 as requests does.
	eventsResource = "events.events.k8s.io"
	coreResource   = "events"

	// patience bounds every wait. It is long because the tests share few cores
	// with a server and the race detector.
	patience = time.Minute
)

// newSink makes a sink that writes with the given clients.
type newSink = func(*kubernetes.Clientset) events.EventSink

func eventsSink(clients *kubernetes.Clientset) events.EventSink {
	return &events.EventSinkImpl{Interface: clients.EventsV1()}
}

func coreSink(clients *kubernetes.Clientset) events.EventSink {
	return &compat.CoreSink{Interface: clients.CoreV1()}
}

var sinks = map[string]newSink{"events.k8s.io": eventsSink, "core": coreSink}

// at returns a sink for a broadcaster with a clock.
func at(clock clock.WithTicker, sink newSink) newSink {
	return func(clients *kubernetes.Clientset) events.EventSink {
		return &wiring.Sink{EventSink: sink(clients), Clock: clock}
	}
}

// recording is a broadcaster that writes to a real server.
type recording struct {
	*events.Broadcaster
	// requests are those of the broadcaster alone.
	requests *requests
	// clients are an administrator's. Tests inspect the server with them.
	clients  *kubernetes.Clientset
	instance string
}

// newRecording makes a broadcaster that writes to the server of config through a sink.
// It does not list unless opts names namespaces, because tests count requests. It then
// lists at once unless the sink has a limit. The end of the test shuts it down.
func newRecording(t *testing.T, sink newSink, config *rest.Config, opts events.Options) *recording {
	t.Helper()
	if len(opts.Namespaces) == 0 {
		opts.List = ptr.To(false)
	}
	if opts.List == nil {
		opts.List = ptr.To(true)
	}
	if opts.ReportingInstance == "" {
		opts.ReportingInstance = "test-" + rand.String(10)
	}
	admin := rest.CopyConfig(config)
	admin.Impersonate = rest.ImpersonationConfig{}
	config = rest.CopyConfig(config)
	requests := recordRequests(config)
	broadcaster, err := events.New(sink(apiserver.ClientsetFor(t, config)), opts)
	require.NoError(t, err)
	r := &recording{
		Broadcaster: broadcaster,
		requests:    requests,
		clients:     apiserver.ClientsetFor(t, admin),
		instance:    opts.ReportingInstance,
	}
	t.Cleanup(r.Shutdown)
	return r
}

func startRecording(t *testing.T, sink newSink, config *rest.Config, opts events.Options) *recording {
	t.Helper()
	r := newRecording(t, sink, config, opts)
	r.start(t)
	return r
}

// start starts the broadcaster, which logs to the log of the test.
func (r *recording) start(t *testing.T) {
	t.Helper()
	ctx := klog.NewContext(t.Context(), ktesting.NewLogger(t, ktesting.NewConfig()))
	require.NoError(t, r.StartRecordingToSinkWithContext(ctx))
}

func (r *recording) recorder() events.EventRecorderLogger {
	return r.NewRecorder(scheme.Scheme, controller)
}

func (r *recording) flush(t *testing.T) {
	t.Helper()
	r.flushWithin(t, patience)
}

func (r *recording) flushWithin(t *testing.T, timeout time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	require.NoError(t, r.Flush(ctx))
}

func (r *recording) writes(kind, outcome string) (n int) {
	for _, row := range r.Stats().Requests {
		if row.Kind == kind && row.Outcome == outcome {
			n += int(row.Count)
		}
	}
	return n
}

// outcomes returns the number of requests with an outcome, or of all if that is empty.
func outcomes(stats events.Stats, outcome string) int {
	n := 0
	for _, r := range stats.Requests {
		if outcome == "" || r.Outcome == outcome {
			n += int(r.Count)
		}
	}
	return n
}

func (r *recording) written(t require.TestingT) []eventsv1.Event {
	list, err := r.clients.EventsV1().Events(metav1.NamespaceAll).List(context.Background(), metav1.ListOptions{
		FieldSelector: "reportingController=" + controller,
	})
	require.NoError(t, err)
	return slices.DeleteFunc(list.Items, func(event eventsv1.Event) bool { return event.ReportingInstance != r.instance })
}

// requireAccounted fails the test unless the broadcaster accepted exactly that
// many occurrences, and the server has each of them or Stats counts it as
// dropped. Flush or shut down the broadcaster first.
func (r *recording) requireAccounted(t *testing.T, emitted int) {
	t.Helper()
	requireAccounted(t, emitted, r.Stats(), r.written(t))
}

func requireAccounted(t *testing.T, emitted int, stats events.Stats, written []eventsv1.Event) {
	t.Helper()
	accounted := dropped(stats)
	for i := range written {
		accounted += uint64(occurrences(&written[i]))
	}
	require.EqualValues(t, emitted, stats.Occurrences, "accepted occurrences")
	require.EqualValues(t, emitted, accounted, "occurrences in %d Events, and dropped: %v", len(written), stats.Dropped)
}

func dropped(stats events.Stats) uint64 {
	var n uint64
	for _, count := range stats.Dropped {
		n += count
	}
	return n
}

func occurrences(event *eventsv1.Event) int {
	if event.Series == nil {
		return 1
	}
	return int(event.Series.Count)
}

func lastObserved(event *eventsv1.Event) time.Time {
	if event.Series == nil {
		return series.EventTime(event).Time
	}
	return event.Series.LastObservedTime.Time
}

func state(event *eventsv1.Event) string { return event.Labels[series.LabelState] }

func podIn(namespace, name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace,
		Name:      name,
		UID:       types.UID("uid-of-" + namespace + "-" + name),
	}}
}

func emit(recorder events.EventRecorder, regarding runtime.Object, n int) {
	for range n {
		recorder.Eventf(regarding, nil, corev1.EventTypeNormal, "Tested", "Testing", "it was tested")
	}
}

// tally emits events and knows the counts that the server must have afterwards.
type tally struct {
	namespace string
	recorder  events.EventRecorder

	counts  map[string]int // occurrences by the name of the Pod
	emitted int            // all of them
}

func newTally(namespace string, recorder events.EventRecorder) *tally {
	return &tally{namespace: namespace, recorder: recorder, counts: map[string]int{}}
}

func (y *tally) occur(pod, times int) {
	object := podIn(y.namespace, fmt.Sprintf("pod-%d", pod))
	emit(y.recorder, object, times)
	y.counts[object.Name] += times
	y.emitted += times
}

func (y *tally) requireWritten(t *testing.T, r *recording) {
	t.Helper()
	got := map[string]int{}
	for _, event := range r.written(t) {
		assert.Equal(t, y.namespace, event.Namespace)
		assert.NotContains(t, got, event.Regarding.Name, "second Event")
		got[event.Regarding.Name] = occurrences(&event)
	}
	require.Equal(t, y.counts, got)
	r.requireAccounted(t, y.emitted)
}

// eventually polls check until it passes, for no longer than patience.
func eventually(t *testing.T, check func(*assert.CollectT)) {
	t.Helper()
	require.EventuallyWithT(t, check, patience, apiserver.PollInterval)
}

func eventAbout(t *testing.T, clients kubernetes.Interface, namespace string, uid types.UID) (event *eventsv1.Event) {
	t.Helper()
	eventually(t, func(c *assert.CollectT) {
		found := eventsAbout(c, clients, namespace, uid)
		require.Len(c, found, 1)
		event = &found[0]
	})
	return event
}

func awaitFinished(t *testing.T, clients kubernetes.Interface, namespace string, uid types.UID) (event *eventsv1.Event) {
	t.Helper()
	eventually(t, func(c *assert.CollectT) {
		event = requireFinished(c, eventsAbout(c, clients, namespace, uid))
	})
	return event
}

func requireFinished(t require.TestingT, found []eventsv1.Event) *eventsv1.Event {
	require.Len(t, found, 1)
	require.Equal(t, "Finished", state(&found[0]))
	return &found[0]
}

// eventsAbout returns the Events about an object in the order of their names.
func eventsAbout(t require.TestingT, clients kubernetes.Interface, namespace string, uid types.UID) []eventsv1.Event {
	list, err := clients.EventsV1().Events(namespace).List(context.Background(), metav1.ListOptions{
		FieldSelector: "regarding.uid=" + string(uid),
	})
	require.NoError(t, err)
	return list.Items
}

// deleteEvent deletes an Event that outlives the namespace of its test.
func deleteEvent(t *testing.T, clients kubernetes.Interface, event *eventsv1.Event) {
	t.Helper()
	ctx, cancel := apiserver.CleanupContext()
	defer cancel()
	err := clients.EventsV1().Events(event.Namespace).Delete(ctx, event.Name, metav1.DeleteOptions{})
	if !apierrors.IsNotFound(err) {
		require.NoError(t, err)
	}
}

// history is what a watch of the Events of a namespace has returned, in order.
type history struct {
	mu      sync.Mutex
	changes []change
}

type change struct {
	kind  watch.EventType
	event *eventsv1.Event
}

func watchEvents(t *testing.T, clients kubernetes.Interface, namespace string) *history {
	t.Helper()
	watcher, err := clients.EventsV1().Events(namespace).Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	h := &history{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for c := range watcher.ResultChan() {
			if event, ok := c.Object.(*eventsv1.Event); ok { // an error ends the watch; tests time out if they miss something
				h.mu.Lock()
				h.changes = append(h.changes, change{kind: c.Type, event: event})
				h.mu.Unlock()
			}
		}
	}()
	t.Cleanup(func() {
		watcher.Stop()
		<-done
	})
	return h
}

func (h *history) all() []change {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.changes[:len(h.changes):len(h.changes)]
}

func (h *history) requireStates(t *testing.T, want ...string) {
	t.Helper()
	eventually(t, func(c *assert.CollectT) {
		var got []string
		for _, change := range h.all() {
			got = append(got, state(change.event))
		}
		assert.Equal(c, want, slices.Compact(got))
	})
	h.requireCountsGrow(t)
}

func (h *history) requireCountsGrow(t *testing.T) {
	t.Helper()
	latest := map[string]*eventsv1.Event{}
	for _, c := range h.all() {
		if c.kind == watch.Deleted {
			continue
		}
		if before := latest[c.event.Name]; before != nil {
			require.GreaterOrEqual(t, occurrences(c.event), occurrences(before), "count of %s", c.event.Name)
			require.False(t, lastObserved(c.event).Before(lastObserved(before)), "time of %s", c.event.Name)
		}
		latest[c.event.Name] = c.event
	}
	require.NotEmpty(t, latest)
}

func strangersEvent(t *testing.T, clients kubernetes.Interface, namespace, name string) *eventsv1.Event {
	t.Helper()
	event, err := clients.EventsV1().Events(namespace).Create(t.Context(), &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Name: name},
		EventTime:           metav1.NowMicro(),
		ReportingController: "example.com/stranger",
		ReportingInstance:   "stranger-0",
		Action:              "Intruding",
		Reason:              "Intruded",
		Type:                corev1.EventTypeNormal,
		Regarding:           corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: "other", UID: types.UID("other-" + namespace)},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	return event
}

type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	ready  chan struct{} // closed after the first line of stdout, or at its end
	done   chan struct{}
	stdout string // valid once done is closed, as are the others
	stderr bytes.Buffer
	err    error // of the exit
}

// startProcess starts a process. The context of cmd must be that of the test: its
// end kills the process.
func startProcess(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{cmd: cmd, ready: make(chan struct{}), done: make(chan struct{})}
	cmd.Stderr = &p.stderr
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	p.stdin, err = cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	go func() {
		defer close(p.done)
		reader := bufio.NewReader(stdout)
		line, _ := reader.ReadString('\n')
		close(p.ready)
		rest, _ := io.ReadAll(reader)
		p.stdout, p.err = line+string(rest), cmd.Wait()
	}()
	t.Cleanup(func() {
		<-p.done
		if t.Failed() {
			t.Logf("the log of %v:\n%s", cmd.Args, &p.stderr)
		}
	})
	return p
}

func (p *process) wait(t *testing.T, closed <-chan struct{}, within time.Duration) {
	t.Helper()
	select {
	case <-closed:
	case <-time.After(within):
		require.Fail(t, "timeout", "%v", within)
	}
}

func TestMain(m *testing.M) {
	os.Exit(apiserver.Main(m, apiserver.Leaks))
}

// requests records the requests of a client. It is safe for concurrent use.
type requests struct {
	mu   sync.Mutex
	list []*exchange
}

type exchange struct {
	verb     string // as in RBAC: get, list, create, patch, delete
	resource string // as kubectl writes it: "configmaps", "events.events.k8s.io"
	sent     time.Time

	// Without a response, the others are zero.
	answered   time.Time
	code       int
	retryAfter string // the header
	route      route
}

// route is the FlowSchema and the priority level that the server chose.
type route struct{ schema, level types.UID }

func routeOf(header http.Header) route {
	return route{
		schema: types.UID(header.Get(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID)),
		level:  types.UID(header.Get(flowcontrolv1.ResponseHeaderMatchedPriorityLevelConfigurationUID)),
	}
}

// recordRequests records the requests of the clients of a configuration.
func recordRequests(config *rest.Config) *requests {
	r := &requests{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			verb, resource, ok := describe(req)
			if !ok {
				return next.RoundTrip(req)
			}
			x := &exchange{verb: verb, resource: resource, sent: time.Now()}
			r.mu.Lock()
			r.list = append(r.list, x)
			r.mu.Unlock()
			response, err := next.RoundTrip(req)
			if err == nil {
				r.mu.Lock()
				defer r.mu.Unlock()
				x.answered, x.code = time.Now(), response.StatusCode
				x.retryAfter, x.route = response.Header.Get("Retry-After"), routeOf(response.Header)
			}
			return response, err
		})
	})
	return r
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func (r *requests) all() []exchange {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []exchange
	for _, x := range r.list {
		all = append(all, *x)
	}
	return all
}

// counts returns the number of requests by verb and resource, such as "patch pods".
func (r *requests) counts() map[string]int {
	counts := map[string]int{}
	for _, x := range r.all() {
		counts[x.verb+" "+x.resource]++
	}
	return counts
}

func (r *requests) count(verb, resource string) int { return r.counts()[verb+" "+resource] }

func (r *requests) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = nil
}

// String returns the counts, for example "create pods: 1, patch pods: 2".
func (r *requests) String() string {
	counts := r.counts()
	var list []string
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		list = append(list, fmt.Sprintf("%s: %d", key, counts[key]))
	}
	return strings.Join(list, ", ")
}

// describe returns the verb and the resource of a request, and false if the
// request is not for a resource, such as discovery or a health check.
func describe(req *http.Request) (verb, resource string, ok bool) {
	match := resourcePath.FindStringSubmatch(req.URL.Path)
	if match == nil {
		return "", "", false
	}
	group, resource, object := match[1], match[2], match[3]
	if group != "" {
		resource += "." + group
	}
	switch {
	case req.Method == http.MethodPost:
		return "create", resource, true
	case req.Method == http.MethodGet && object == "":
		return "list", resource, true
	}
	return strings.ToLower(req.Method), resource, true
}

// resourcePath matches the group, the resource and the object in a path.
var resourcePath = regexp.MustCompile(`^/api(?:s/([^/]+))?/[^/]+/(?:namespaces/[^/]+/)?([^/]+)(/.+)?$`)
