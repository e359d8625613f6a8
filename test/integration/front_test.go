package integration

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/eventseries/eventseries/series"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// front is an HTTPS server in front of the shared one, which hands on what it is
// asked unless its script has it do something else. Nothing of it depends on the
// time: faults are counted out in requests or connections.
type front struct {
	server *httptest.Server
	real   http.Handler

	mu       sync.Mutex
	script   script
	calls    []call
	attempts map[attempt]int
	faults   int

	connections connectionFaults
	swallowed   swallowed
}

// call is a request for an Event.
type call struct {
	attempt
	// nth is how many such calls there were before.
	nth int
	at  time.Time
	// answered is when the front had done with it, zero before.
	answered time.Time
	faulty   bool
}

// attempt is what a call tries.
type attempt struct {
	verb string // create, look, finish or patch; empty: another request
	name string // of the Event
}

// script says what to do instead of handing a call on, nil if nothing.
type script func(call) fault

// fault answers a request, or does not. server is the one that was meant.
type fault func(w http.ResponseWriter, r *http.Request, server http.Handler)

// newFront starts a front that has no faults yet. It speaks HTTP/2 like the real
// server unless it is told to speak HTTP/1.1.
func newFront(t *testing.T, http1 bool) *front {
	t.Helper()
	config := apiserver.Config(t)
	transport, err := rest.TransportFor(config)
	require.NoError(t, err)
	target, err := url.Parse(config.Host)
	require.NoError(t, err)
	f := &front{
		real: &httputil.ReverseProxy{
			Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
			Transport: transport,
			ErrorLog:  discardLog(), // clients that give up are no news here
		},
		attempts: map[attempt]int{},
	}
	f.server = httptest.NewUnstartedServer(f)
	f.server.EnableHTTP2 = !http1
	f.server.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, connectionKey{}, c)
	}
	f.server.Config.ErrorLog = discardLog()
	f.connections.attach(f.server)
	f.server.StartTLS()
	t.Cleanup(f.server.Close)
	return f
}

// config is for clients of the front. They need no credentials: the front has
// those of an administrator.
func (f *front) config() *rest.Config {
	return &rest.Config{
		Host: f.server.URL,
		QPS:  -1,
		Dial: f.connections.dial,

		WrapTransport: f.swallowed.transport,
		TLSClientConfig: rest.TLSClientConfig{
			CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.server.Certificate().Raw}),
		},
	}
}

// follow sets the script from now on; nil: no faults.
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
	number, answer := f.begin(attemptOf(r, body), begin)
	defer f.end(number)
	if answer == nil {
		f.real.ServeHTTP(w, r)
		return
	}
	answer(w, r.WithContext(context.WithValue(r.Context(), frontKey{}, f)), f.real)
}

func (f *front) begin(a attempt, at time.Time) (number int, answer fault) {
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
	return len(f.calls) - 1, answer
}

func (f *front) end(number int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[number].answered = time.Now()
}

// attemptOf says what a request tries.
func attemptOf(r *http.Request, body []byte) attempt {
	switch {
	case !strings.Contains(r.URL.Path, "/events"):
		return attempt{}
	case r.Method == http.MethodPost:
		var object metav1.PartialObjectMetadata
		if err := json.Unmarshal(body, &object); err != nil {
			return attempt{}
		}
		return attempt{verb: "create", name: object.Name}
	case r.Method != http.MethodPatch:
		return attempt{}
	}
	a := attempt{verb: "patch", name: path.Base(r.URL.Path)}
	var patch metav1.PartialObjectMetadata
	switch err := json.Unmarshal(body, &patch); {
	case err != nil:
	case string(body) == "{}":
		a.verb = "look"
	case patch.Annotations[series.AnnotationState] == "Finished":
		a.verb = "finish"
	}
	return a
}

// firstOfEach has the first try of everything go wrong.
func firstOfEach(answer fault) script {
	return func(c call) fault {
		if c.nth > 0 {
			return nil
		}
		return answer
	}
}

// everyOther has every other try of everything go wrong, the first included.
func everyOther(answer fault) script {
	return func(c call) fault {
		if c.nth%2 > 0 {
			return nil
		}
		return answer
	}
}

// first has the first n calls go wrong.
func first(n int, answer fault) script {
	return func(call) fault { // the front is locked
		if n == 0 {
			return nil
		}
		n--
		return answer
	}
}

// frontKey is the key of the front in the context of a request that has a fault.
type frontKey struct{}

// connectionKey is the key of the connection in the context of a request.
type connectionKey struct{}

// connectionOf returns the connection that a request came over.
func connectionOf(r *http.Request) *net.TCPConn {
	return r.Context().Value(connectionKey{}).(*tls.Conn).NetConn().(*net.TCPConn)
}
