package integration

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/series"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// longPatience bounds waits for delays that double.
const longPatience = 3 * patience

// faultRow is a way in which a server or the connection to it fails.
type faultRow struct {
	name   string
	http1  bool
	answer fault
	// workers is 1 for faults that hit all requests in flight on a connection, so
	// that each request fails once.
	workers int
	// pause is set if the answer pushes back: how long the recorder must then
	// send nothing.
	pause time.Duration
}

func faultRows() []faultRow {
	const json = "application/json"
	return []faultRow{
		// Priority and fairness responds with text, an admission plugin with a
		// Status.
		{name: "429", answer: status(429, ""), pause: 5 * time.Second},
		{name: "429 for 7 s", answer: status(429, "7"), pause: 7 * time.Second},
		{name: "429 for 7 s, page", answer: page(429, "7"), pause: 7 * time.Second},
		// A date has no fractions of a second.
		{name: "429 until a date", answer: retryAt(9*time.Second, func(at string) fault { return page(429, at) }), pause: 8 * time.Second},
		{name: "503 for 7 s", answer: status(503, "7"), pause: 7 * time.Second},

		{name: "408", answer: page(408, "")},
		{name: "500", answer: status(500, "")},
		{name: "502", answer: page(502, "")},
		{name: "503", answer: status(503, "")},
		{name: "503, page", answer: page(503, "")},
		{name: "504", answer: status(504, "")},
		{name: "504, page", answer: page(504, "")},
		// Not from an API server that serves Events.
		{name: "404, page", answer: page(404, "")},

		{name: "reset", answer: reset, workers: 1},
		{name: "reset, HTTP/1.1", answer: reset, http1: true},
		{name: "stream closed", answer: abort},
		{name: "EOF", answer: abort, http1: true},
		{name: "no response", answer: silence},
		{name: "no response, HTTP/1.1", answer: silence, http1: true},

		{name: "HTML", answer: body("text/html", "<html><body>Welcome to the hotel. Please log in.</body></html>")},
		{name: "empty body", answer: body(json, "")},
		{name: "truncated JSON", answer: body(json, `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"na`)},
		{name: "another kind", answer: body(json, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"x"}}`)},
		{name: "another Event", answer: body(json, anotherEvent)},
		{name: "success", answer: body(json, `{"apiVersion":"v1","kind":"Status","status":"Success","code":200}`)},
		{name: "failure with 200", answer: body(json, `{"apiVersion":"v1","kind":"Status","status":"Failure","code":200}`)},

		// The server carries the request out, and the response is lost.
		{name: "done and 500", answer: done(status(500, ""))},
		{name: "done and 504", answer: done(page(504, ""))},
		{name: "done and reset", answer: done(reset), workers: 1},
		{name: "done and reset, HTTP/1.1", answer: done(reset), http1: true},
		{name: "done and no response", answer: done(silence)},
		{name: "done and HTML", answer: done(body("text/html", "<html></html>"))},
		{name: "done and another Event", answer: done(body(json, anotherEvent))},
		{name: "half a response and stream closed", answer: half(abort)},
		{name: "half a response and EOF", answer: half(abort), http1: true},
		{name: "half a response and reset", answer: half(reset), http1: true},
		{name: "half a response and no more", answer: half(silence)},
	}
}

const anotherEvent = `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"x","namespace":"x"}}`

// runAtOnce runs all rows concurrently, whatever -parallel says: they spend their
// time waiting for delays.
func runAtOnce(t *testing.T, rows []faultRow, run func(*testing.T, faultRow)) {
	var group sync.WaitGroup
	defer group.Wait()
	for _, row := range rows {
		group.Go(func() { t.Run(row.name, func(t *testing.T) { run(t, row) }) })
	}
}

// TestFaults fails the first try of every create, look-up and patch. Every
// occurrence must reach the server.
func TestFaults(t *testing.T) {
	t.Parallel()
	runAtOnce(t, faultRows(), func(t *testing.T, row faultRow) {
		const distinct, inLoops = 6, 2 // Pods, and how many of them begin in a loop
		f := newFront(t, row.http1)
		workers, outcome, least := cmp.Or(row.workers, distinct), "troubled", 2*distinct
		inject := func() { f.follow(row.answer, func(c call) bool { return c.nth == 0 }) }
		if row.pause > 0 {
			workers = 1 // or else requests are in flight when the pause begins
			outcome, least = "pushedBack", 2
			inject = func() {
				calls := 0
				f.follow(row.answer, func(call) bool { calls++; return calls == 1 })
			}
		}
		inject()
		namespace := apiserver.Namespace(t)
		r := recordThrough(t, f, events.Options{Workers: workers})
		history := watchEvents(t, r.clients, namespace)
		sent := newTally(namespace, r.recorder())
		requireDelivered := func() {
			r.flushWithin(t, longPatience)
			sent.requireWritten(t, r)
			for _, event := range r.written(t) {
				history.requireSeen(t, event.Name, occurrences(&event))
			}
			history.requireCountsGrow(t)
			require.Empty(t, r.Stats().Dropped)
		}
		for pod := range distinct {
			sent.occur(pod, 1)
		}
		for pod := range inLoops {
			sent.occur(pod, 9)
		}
		requireDelivered()

		inject()
		for pod := range distinct {
			sent.occur(pod, 10) // singletons become series, and series continue
		}
		requireDelivered()

		calls, faults := f.log()
		if row.pause > 0 {
			requirePause(t, calls, row.pause)
		}
		assert.GreaterOrEqual(t, faults, least)
		assert.GreaterOrEqual(t, outcomes(r.Stats(), outcome), least, r.Stats().Writes)
		r.Shutdown()
		requireDelivered()
	})
}

// TestFaultsDuringALoop fails every other request of a loop: the create, the
// heartbeats and the finish. The count must be exact.
func TestFaultsDuringALoop(t *testing.T) {
	t.Parallel()
	runAtOnce(t, []faultRow{
		{name: "500", answer: status(500, "")},
		{name: "429", answer: status(429, "")},
		{name: "reset", answer: reset},
		{name: "no response", answer: silence},
		{name: "done and 500", answer: done(status(500, ""))},
		{name: "done and reset", answer: done(reset)},
		{name: "half a response", answer: half(abort), http1: true},
		{name: "another Event", answer: body("application/json", anotherEvent)},
	}, func(t *testing.T, row faultRow) {
		f := newFront(t, row.http1)
		f.follow(row.answer, func(c call) bool { return c.nth%2 == 0 })
		namespace := apiserver.Namespace(t)
		r := recordThrough(t, f, events.Options{HeartbeatInterval: time.Second, FinishAfter: 5 * time.Second})
		history := watchEvents(t, r.clients, namespace)
		recorder, pod := r.recorder(), podIn(namespace, "crashing")

		emitted := 0
		require.Eventually(t, func() bool {
			emit(recorder, pod, 1)
			emitted++
			// A look confirms a heartbeat whose response was lost.
			return r.writes("heartbeat", "written")+r.writes("heartbeat", "changed") > 0
		}, longPatience, apiserver.PollInterval)
		require.Eventually(t, func() bool { return r.Stats().Tracked == 0 }, longPatience, apiserver.PollInterval)

		event := eventAbout(t, r.clients, namespace, pod.UID)
		assert.Equal(t, "Finished", state(event))
		assert.Equal(t, emitted, occurrences(event))
		calls, _ := f.log()
		assert.GreaterOrEqual(t, faultyCalls(calls, "finish"), 1)
		assert.GreaterOrEqual(t, faultyCalls(calls, "patch"), 2)
		assert.Zero(t, dropped(r.Stats()))
		history.requireSeen(t, event.Name, emitted)
		history.requireCountsGrow(t)
	})
}

// TestOccurrencesWhileAFinishFails emits events while the recorder cannot finish
// their series. They belong to another series.
func TestOccurrencesWhileAFinishFails(t *testing.T) {
	t.Parallel()
	f := newFront(t, false)
	f.follow(done(status(500, "")), func(c call) bool { return c.verb == "finish" })
	namespace := apiserver.Namespace(t)
	r := recordThrough(t, f, events.Options{FinishAfter: 3 * time.Second})
	history := watchEvents(t, r.clients, namespace)
	recorder, pod := r.recorder(), podIn(namespace, "crashing")
	emit(recorder, pod, 10)
	eventually(t, func(c *assert.CollectT) {
		calls, _ := f.log()
		assert.GreaterOrEqual(c, faultyCalls(calls, "finish"), 2)
	})
	emit(recorder, pod, 5)
	eventually(t, func(c *assert.CollectT) { assert.Len(c, eventsAbout(c, r.clients, namespace, pod.UID), 2) })
	f.follow(nil, nil)
	r.flushWithin(t, longPatience)
	found := eventsAbout(t, r.clients, namespace, pod.UID)
	require.Len(t, found, 2)
	assert.Equal(t, 10, occurrences(&found[0]))
	assert.Equal(t, "Finished", state(&found[0]))
	assert.Equal(t, 5, occurrences(&found[1]))
	history.requireSeen(t, found[1].Name, 5)
	history.requireCountsGrow(t)
	r.requireAccounted(t, 15)
}

func recordThrough(t *testing.T, f *front, opts events.Options) *recording {
	t.Helper()
	r := startRecording(t, eventsSink, f.config(), opts)
	r.clients = apiserver.Clientset(t) // not through the front
	return r
}

// requirePause fails the test if a call came within the pause after a faulty one.
func requirePause(t *testing.T, calls []call, pause time.Duration) {
	t.Helper()
	for i, c := range calls {
		if c.faulty && i+1 < len(calls) {
			require.GreaterOrEqual(t, calls[i+1].at.Sub(c.at), pause, "%v after %v", calls[i+1], c)
		}
	}
}

func faultyCalls(calls []call, verb string) int {
	n := 0
	for _, c := range calls {
		if c.faulty && c.verb == verb {
			n++
		}
	}
	return n
}

func outcomes(stats events.Stats, outcome string) int {
	n := 0
	for key, count := range stats.Writes {
		if key.Outcome == outcome {
			n += int(count)
		}
	}
	return n
}

// front is an HTTPS proxy for the shared server that can inject faults. It counts
// requests, not time, to decide which of them fail.
type front struct {
	server *httptest.Server
	real   http.Handler

	mu       sync.Mutex
	answer   fault           // nil for no faults
	hits     func(call) bool // which calls get it
	calls    []call
	attempts map[attempt]int
	faults   int

	timeouts timeouts
}

type call struct {
	attempt
	nth    int // number of earlier calls with the same attempt
	at     time.Time
	faulty bool
}

type attempt struct {
	verb string // create, look, finish or patch; empty for other requests
	name string // of the Event
}

// fault handles a request instead of the real server.
type fault func(w http.ResponseWriter, r *http.Request, server http.Handler)

// newFront starts a front without faults. It speaks HTTP/2, as the real server
// does, or HTTP/1.1.
func newFront(t *testing.T, http1 bool) *front {
	t.Helper()
	config := apiserver.Config(t)
	transport, err := rest.TransportFor(config)
	require.NoError(t, err)
	target, err := url.Parse(config.Host)
	require.NoError(t, err)
	discard := log.New(io.Discard, "", 0) // clients that give up are expected
	f := &front{
		real: &httputil.ReverseProxy{
			Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
			Transport: transport,
			ErrorLog:  discard,
		},
		attempts: map[attempt]int{},
	}
	f.server = httptest.NewUnstartedServer(f)
	f.server.EnableHTTP2 = !http1
	f.server.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, connectionKey{}, c)
	}
	f.server.Config.ErrorLog = discard
	f.server.StartTLS()
	t.Cleanup(f.server.Close)
	return f
}

// config returns a configuration for clients of the front. The front adds the
// credentials of an administrator.
func (f *front) config() *rest.Config {
	return &rest.Config{
		Host:          f.server.URL,
		QPS:           -1,
		WrapTransport: f.timeouts.transport,
		TLSClientConfig: rest.TLSClientConfig{
			CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.server.Certificate().Raw}),
		},
	}
}

// follow answers the calls that hits selects.
func (f *front) follow(answer fault, hits func(call) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer, f.hits = answer, hits
}

func (f *front) log() (calls []call, faults int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls), f.faults
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	begin := time.Now()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the client is gone
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	answer := f.begin(attemptOf(r, body), begin)
	if answer == nil {
		f.real.ServeHTTP(w, r)
		return
	}
	answer(w, r.WithContext(context.WithValue(r.Context(), frontKey{}, f)), f.real)
}

func (f *front) begin(a attempt, at time.Time) (answer fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := call{attempt: a, nth: f.attempts[a], at: at}
	f.attempts[a]++
	if c.faulty = f.answer != nil && a.verb != "" && f.hits(c); c.faulty {
		f.faults++
		answer = f.answer
	}
	f.calls = append(f.calls, c)
	return answer
}

func attemptOf(r *http.Request, body []byte) attempt {
	var object metav1.PartialObjectMetadata
	invalid := json.Unmarshal(body, &object) != nil
	a := attempt{name: path.Base(r.URL.Path)}
	switch {
	case !strings.Contains(r.URL.Path, "/events"):
		return attempt{}
	case r.Method == http.MethodPost && !invalid:
		return attempt{verb: "create", name: object.Name}
	case r.Method != http.MethodPatch:
		return attempt{}
	case string(body) == "{}":
		a.verb = "look"
	case object.Annotations[series.AnnotationState] == "Finished":
		a.verb = "finish"
	default:
		a.verb = "patch"
	}
	return a
}

// Context keys: the front of a faulty request, and the connection of a request.
type frontKey struct{}
type connectionKey struct{}

// status responds with a Status, as an API server does.
func status(code int, retryAfter string) fault {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		object := &metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
			Status:   metav1.StatusFailure,
			Message:  "scripted: " + http.StatusText(code),
			Code:     int32(code),
		}
		if seconds, err := strconv.Atoi(retryAfter); err == nil {
			object.Details = &metav1.StatusDetails{RetryAfterSeconds: int32(seconds)}
		}
		text := runtime.EncodeOrDie(scheme.Codecs.LegacyCodec(metav1.Unversioned), object)
		write(w, code, retryAfter, runtime.ContentTypeJSON, text)
	}
}

// page responds with HTML, as a proxy does.
func page(code int, retryAfter string) fault {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		text := fmt.Sprintf("<html><body><h1>%d %s</h1></body></html>", code, http.StatusText(code))
		write(w, code, retryAfter, "text/html", text)
	}
}

// retryAt responds with a Retry-After date that lies so far ahead.
func retryAt(ahead time.Duration, answer func(retryAfter string) fault) fault {
	return func(w http.ResponseWriter, r *http.Request, server http.Handler) {
		answer(time.Now().Add(ahead).UTC().Format(http.TimeFormat))(w, r, server)
	}
}

// body responds with success and an unexpected body.
func body(contentType, text string) fault {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		write(w, http.StatusOK, "", contentType, text)
	}
}

// reset resets the connection, with all requests in flight on it.
func reset(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
	conn := r.Context().Value(connectionKey{}).(*tls.Conn).NetConn().(*net.TCPConn)
	_ = conn.SetLinger(0) // it may be closed already
	_ = conn.Close()
	panic(http.ErrAbortHandler)
}

// abort closes the connection, or with HTTP/2 the stream, without a response.
func abort(http.ResponseWriter, *http.Request, http.Handler) {
	panic(http.ErrAbortHandler)
}

// silence never responds. The request of the client times out.
func silence(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
	r.Context().Value(frontKey{}).(*front).timeouts.expire(r)
	<-r.Context().Done()
	panic(http.ErrAbortHandler)
}

// done lets the real server carry the request out, but answers as the fault does.
func done(answer fault) fault {
	return func(w http.ResponseWriter, r *http.Request, server http.Handler) {
		carryOut(r, server)
		answer(w, r, server)
	}
}

// half sends half of the response of the real server, and continues as the fault
// does.
func half(end fault) fault {
	return func(w http.ResponseWriter, r *http.Request, server http.Handler) {
		answer := carryOut(r, server)
		text := answer.Body.String()
		maps.Copy(w.Header(), answer.Header())
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		w.WriteHeader(answer.Code)
		_, _ = w.Write([]byte(text[:len(text)/2])) // the client may be gone
		_ = http.NewResponseController(w).Flush()
		end(w, r, server)
	}
}

// carryOut sends a request to the real server even if the client gives up.
func carryOut(r *http.Request, server http.Handler) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	server.ServeHTTP(answer, r.WithContext(context.WithoutCancel(r.Context())))
	return answer
}

func write(w http.ResponseWriter, code int, retryAfter, contentType, text string) {
	if retryAfter != "" {
		w.Header().Set("Retry-After", retryAfter)
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(code)
	_, _ = w.Write([]byte(text)) // the client may be gone
}

// timeouts makes requests of a client time out once the front has decided that
// they get no response. A real timeout would hit other requests too if the
// machine is busy. The zero value is ready for use.
type timeouts struct {
	requests atomic.Int64
	cancels  sync.Map // context.CancelFunc by the number of the request
}

const requestHeader = "X-Eventseries-Request"

func (o *timeouts) transport(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		ctx, cancel := context.WithCancel(r.Context())
		number := strconv.FormatInt(o.requests.Add(1), 10)
		o.cancels.Store(number, cancel)
		r = r.Clone(ctx)
		r.Header.Set(requestHeader, number)
		return next.RoundTrip(r)
	})
}

func (o *timeouts) expire(r *http.Request) {
	if cancel, ok := o.cancels.Load(r.Header.Get(requestHeader)); ok {
		cancel.(context.CancelFunc)()
	}
}
