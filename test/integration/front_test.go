package integration

import (
	"bytes"
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

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"

	"github.com/eventseries/eventseries/series"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// front is an HTTPS proxy for the shared server that can inject faults. It counts
// requests or connections, not time, to decide which of them fail.
type front struct {
	server *httptest.Server
	real   http.Handler

	mu       sync.Mutex
	script   script
	calls    []call
	attempts map[attempt]int
	faults   int

	connections connectionFaults
	timeouts    timeouts
}

// call is a request about an Event.
type call struct {
	attempt
	nth    int // number of earlier calls with the same attempt
	at     time.Time
	faulty bool
}

// attempt identifies what a call attempts.
type attempt struct {
	verb string // create, look, finish or patch; empty for other requests
	name string // of the Event
}

// script returns the fault of a call, nil for none.
type script func(call) fault

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
	f.connections.attach(f.server)
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
		Dial:          f.connections.dial,
		WrapTransport: f.timeouts.transport,
		TLSClientConfig: rest.TLSClientConfig{
			CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.server.Certificate().Raw}),
		},
	}
}

// follow sets the script; nil means no faults.
func (f *front) follow(s script) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.script = s
}

// log returns the calls so far, and how many of them were faulty.
func (f *front) log() (calls []call, faults int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls), f.faults
}

// ServeHTTP implements http.Handler.
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

// begin records a call and returns its fault.
func (f *front) begin(a attempt, at time.Time) (answer fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := call{attempt: a, nth: f.attempts[a], at: at}
	f.attempts[a]++
	if f.script != nil && a.verb != "" {
		answer = f.script(c)
	}
	if c.faulty = answer != nil; c.faulty {
		f.faults++
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

// firstOfEach fails the first try of each attempt.
func firstOfEach(answer fault) script {
	return func(c call) fault {
		if c.nth > 0 {
			return nil
		}
		return answer
	}
}

// everyOther fails every other try of each attempt, beginning with the first.
func everyOther(answer fault) script {
	return func(c call) fault {
		if c.nth%2 > 0 {
			return nil
		}
		return answer
	}
}

// first fails the first n calls.
func first(n int, answer fault) script {
	return func(call) fault { // the front is locked
		if n == 0 {
			return nil
		}
		n--
		return answer
	}
}

// frontKey is the context key of the front of a faulty request.
type frontKey struct{}

// connectionKey is the context key of the connection of a request.
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
	resetConnection(r.Context().Value(connectionKey{}).(*tls.Conn).NetConn().(*net.TCPConn))
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

// connectionFaults makes connections fail before there is a request. The zero
// value has no faults.
type connectionFaults struct {
	refused, reset, distrusted atomic.Int32 // how many of the next connections fail
	seen                       atomic.Int32 // how many have failed
}

// attach adds the faults to a server that has not been started.
func (c *connectionFaults) attach(server *httptest.Server) {
	server.Listener = &resettingListener{Listener: server.Listener, faults: c}
	server.TLS = &tls.Config{
		MinVersion: tls.VersionTLS12,
		// Not GetCertificate, which is not called for IP addresses.
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			if !c.due(&c.distrusted) {
				return nil, nil // use the certificate of the server
			}
			other, err := untrustedCertificate()
			if err != nil {
				return nil, err
			}
			return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{other}}, nil
		},
	}
}

// due reports whether a connection must fail, and counts it.
func (c *connectionFaults) due(left *atomic.Int32) bool {
	for {
		n := left.Load()
		if n <= 0 {
			return false
		}
		if left.CompareAndSwap(n, n-1) {
			c.seen.Add(1)
			return true
		}
	}
}

// dial connects a client. For a connection that must be refused, it dials a port
// that nobody listens on.
func (c *connectionFaults) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if c.due(&c.refused) {
		var config net.ListenConfig
		listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		address = listener.Addr().String()
		if err := listener.Close(); err != nil {
			return nil, err
		}
	}
	var dialer net.Dialer
	return dialer.DialContext(ctx, network, address)
}

// resettingListener resets connections that it has accepted.
type resettingListener struct {
	net.Listener
	faults *connectionFaults
}

// Accept implements net.Listener.
func (l *resettingListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil || !l.faults.due(&l.faults.reset) {
			return conn, err
		}
		resetConnection(conn.(*net.TCPConn))
	}
}

// resetConnection closes a connection with a TCP reset.
func resetConnection(conn *net.TCPConn) {
	_ = conn.SetLinger(0) // it may be closed already
	_ = conn.Close()
}

// untrustedCertificate returns a certificate that no client trusts.
var untrustedCertificate = sync.OnceValues(func() (tls.Certificate, error) {
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(certificate, key)
})

// timeouts makes requests of a client time out once the front has decided that
// they get no response. A real timeout would hit other requests too if the
// machine is busy. The zero value is ready for use.
type timeouts struct {
	requests atomic.Int64
	cancels  sync.Map // context.CancelFunc by the number of the request
}

// requestHeader has the number of a request.
const requestHeader = "X-Eventseries-Request"

// transport wraps the transport of a client.
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

// expire ends a request that the front has received.
func (o *timeouts) expire(r *http.Request) {
	if cancel, ok := o.cancels.Load(r.Header.Get(requestHeader)); ok {
		cancel.(context.CancelFunc)()
	}
}
