package integration

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/internal/wiring"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// longPatience bounds waits for delays that double.
const longPatience = 3 * patience

// faultRow is a way in which the connection to a server fails.
type faultRow struct {
	name   string
	http1  bool
	answer fault
	// serial is set for faults that hit all requests in flight on a connection, so
	// that each request fails once.
	serial bool
}

// faultRows has a row for each kind of response. Tests of packages events and eventclient
// have one for each code and each body.
func faultRows() []faultRow {
	anotherEvent := body(runtime.ContentTypeJSON, `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"x","namespace":"x"}}`)
	return []faultRow{
		{name: "500", answer: status(500)},
		{name: "503, page", answer: page(503)},
		{name: "404, page", answer: page(404)}, // not from an API server that serves Events

		{name: "reset", answer: reset, serial: true},
		{name: "reset, HTTP/1.1", answer: reset, http1: true},
		{name: "stream closed", answer: abort},
		{name: "EOF", answer: abort, http1: true},
		{name: "no response", answer: silence},
		{name: "no response, HTTP/1.1", answer: silence, http1: true},

		{name: "HTML", answer: body("text/html", "<html><body>Welcome to the hotel. Please log in.</body></html>")},
		{name: "another Event", answer: anotherEvent},

		// The server carries the request out, and the response is lost.
		{name: "done and 500", answer: done(status(500))},
		{name: "done and reset", answer: done(reset), serial: true},
		{name: "done and reset, HTTP/1.1", answer: done(reset), http1: true},
		{name: "done and no response", answer: done(silence)},
		{name: "done and another Event", answer: done(anotherEvent)},
		{name: "half a response and stream closed", answer: half(abort)},
		{name: "half a response and EOF", answer: half(abort), http1: true},
		{name: "half a response and reset", answer: half(reset), http1: true},
		{name: "half a response and no more", answer: half(silence)},
	}
}

// serialSink is eventsSink with one request at a time.
func serialSink(clients *kubernetes.Clientset) events.EventSink {
	return &wiring.Sink{EventSink: eventsSink(clients), MaxInFlight: 1}
}

// TestFaults fails the first try of every create, look-up and patch. Every occurrence must
// reach the server. All rows run concurrently, whatever -parallel says: they spend their
// time waiting for delays.
func TestFaults(t *testing.T) {
	t.Parallel()
	var group sync.WaitGroup
	defer group.Wait()
	for _, row := range faultRows() {
		group.Go(func() {
			t.Run(row.name, func(t *testing.T) {
				f := newFront(t, row.http1)
				f.answer = row.answer
				sink := eventsSink
				if row.serial {
					sink = serialSink
				}
				r := startRecording(t, sink, f.config(), events.Options{})
				r.clients = apiserver.Clientset(t) // not through the front
				requireDelivery(t, f, r, apiserver.Namespace(t))
			})
		})
	}
}

func requireDelivery(t *testing.T, f *front, r *recording, namespace string) {
	t.Helper()
	const distinct, inLoops = 6, 2 // Pods, and how many of them begin in a loop
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
	for pod := range distinct {
		sent.occur(pod, 10) // singletons become series, and series continue
	}
	requireDelivered()
	f.mu.Lock()
	assert.GreaterOrEqual(t, f.faults, 2*distinct)
	f.mu.Unlock()
	assert.GreaterOrEqual(t, outcomes(r.Stats(), "troubled"), 2*distinct, r.Stats().Requests)
	r.Shutdown()
	requireDelivered()
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

// front is an HTTPS proxy for the shared server that can inject faults. It counts
// requests, not time, to decide which of them fail.
type front struct {
	server *httptest.Server
	real   http.Handler
	answer fault // to the first call of each attempt

	mu       sync.Mutex
	faults   int // answers that were faults
	attempts map[attempt]bool

	// Of the requests of the client, to end them.
	requests atomic.Int64
	cancels  sync.Map // context.CancelFunc by the number of the request
}

type attempt struct {
	verb string // create, look or patch; empty for other requests
	name string // of the Event
}

// fault handles a request instead of the real server.
type fault func(w http.ResponseWriter, r *http.Request, f *front)

// newFront starts a front. It speaks HTTP/2, as the real server does, or HTTP/1.1.
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
		attempts: map[attempt]bool{},
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
		WrapTransport: f.cancelable,
		TLSClientConfig: rest.TLSClientConfig{
			CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.server.Certificate().Raw}),
		},
	}
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the client is gone
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if f.isFaulty(attemptOf(r, body)) {
		f.answer(w, r, f)
		return
	}
	f.real.ServeHTTP(w, r)
}

func (f *front) isFaulty(a attempt) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if a.verb == "" || f.attempts[a] {
		return false
	}
	f.attempts[a] = true
	f.faults++
	return true
}

func attemptOf(r *http.Request, body []byte) attempt {
	a := attempt{name: path.Base(r.URL.Path)}
	switch {
	case !strings.Contains(r.URL.Path, "/events"):
		return attempt{}
	case r.Method == http.MethodPost:
		created, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
		event, ok := created.(metav1.Object)
		if err != nil || !ok {
			return attempt{}
		}
		return attempt{verb: "create", name: event.GetName()}
	case r.Method != http.MethodPatch:
		return attempt{}
	case string(body) == "{}":
		a.verb = "look"
	default:
		a.verb = "patch"
	}
	return a
}

// connectionKey is the context key of the connection of a request.
type connectionKey struct{}

// status responds with a Status, as an API server does.
func status(code int32) fault {
	return func(w http.ResponseWriter, _ *http.Request, _ *front) {
		text := runtime.EncodeOrDie(scheme.Codecs.LegacyCodec(metav1.Unversioned), &metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
			Status:   metav1.StatusFailure,
			Message:  "scripted",
			Code:     code,
		})
		write(w, int(code), runtime.ContentTypeJSON, text)
	}
}

// page responds with HTML, as a proxy does.
func page(code int) fault {
	return func(w http.ResponseWriter, _ *http.Request, _ *front) {
		write(w, code, "text/html", "<html><body><h1>"+http.StatusText(code)+"</h1></body></html>")
	}
}

// body responds with success and an unexpected body.
func body(contentType, text string) fault {
	return func(w http.ResponseWriter, _ *http.Request, _ *front) {
		write(w, http.StatusOK, contentType, text)
	}
}

// reset resets the connection, with all requests in flight on it.
func reset(_ http.ResponseWriter, r *http.Request, _ *front) {
	conn := r.Context().Value(connectionKey{}).(*tls.Conn).NetConn().(*net.TCPConn)
	_ = conn.SetLinger(0) // it may be closed already
	_ = conn.Close()
	panic(http.ErrAbortHandler)
}

// abort closes the connection, or with HTTP/2 the stream, without a response.
func abort(http.ResponseWriter, *http.Request, *front) {
	panic(http.ErrAbortHandler)
}

// silence never responds. It ends the request of the client, as a timeout would. A real
// timeout would hit other requests too if the machine is busy.
func silence(_ http.ResponseWriter, r *http.Request, f *front) {
	if cancel, ok := f.cancels.Load(r.Header.Get(requestHeader)); ok {
		cancel.(context.CancelFunc)()
	}
	<-r.Context().Done()
	panic(http.ErrAbortHandler)
}

const requestHeader = "X-Eventseries-Request"

// cancelable numbers the requests of the client, so that silence can end them.
func (f *front) cancelable(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		ctx, cancel := context.WithCancel(r.Context())
		number := strconv.FormatInt(f.requests.Add(1), 10)
		f.cancels.Store(number, cancel)
		r = r.Clone(ctx)
		r.Header.Set(requestHeader, number)
		return next.RoundTrip(r)
	})
}

// done lets the real server carry the request out, but answers as the fault does.
func done(answer fault) fault {
	return func(w http.ResponseWriter, r *http.Request, f *front) {
		f.carryOut(r)
		answer(w, r, f)
	}
}

// half sends half of the response of the real server, and continues as the fault
// does.
func half(end fault) fault {
	return func(w http.ResponseWriter, r *http.Request, f *front) {
		answer := f.carryOut(r)
		text := answer.Body.String()
		maps.Copy(w.Header(), answer.Header())
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		w.WriteHeader(answer.Code)
		_, _ = w.Write([]byte(text[:len(text)/2])) // the client may be gone
		_ = http.NewResponseController(w).Flush()
		end(w, r, f)
	}
}

// carryOut sends a request to the real server even if the client gives up.
func (f *front) carryOut(r *http.Request) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	f.real.ServeHTTP(answer, r.WithContext(context.WithoutCancel(r.Context())))
	return answer
}

func write(w http.ResponseWriter, code int, contentType, text string) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(code)
	_, _ = w.Write([]byte(text)) // the client may be gone
}
