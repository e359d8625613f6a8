package events

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	typedeventsv1 "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/rest"

	"github.com/eventseries/eventseries/internal/eventclient/eventclienttest"
	"github.com/eventseries/eventseries/internal/schedule"
	"github.com/eventseries/eventseries/internal/tracker"
)

const (
	storedEvent = `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"namespace":"ns","name":"x","resourceVersion":"7"}}`
	// Priority and fairness responds with text, admission plugins with an object.
	refusalText   = "Too many requests, please try again later."
	refusalStatus = `{"apiVersion":"v1","kind":"Status","status":"Failure","code":429,"reason":"TooManyRequests","details":{"retryAfterSeconds":7}}`
)

// newSink returns a sink whose requests go to tr. Their rate limiter would delay the
// second one for hours.
func newSink(t *testing.T, tr *eventclienttest.Transport) *EventSinkImpl {
	t.Helper()
	client, err := typedeventsv1.NewForConfigAndClient(eventclienttest.Config(), &http.Client{Transport: tr})
	require.NoError(t, err)
	return &EventSinkImpl{Interface: client}
}

func someEvent() *eventsv1.Event {
	return &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x"}}
}

func TestSinkRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := &eventclienttest.Transport{Body: storedEvent}
		sink := newSink(t, tr)
		start := time.Now()
		for _, call := range []func() (*eventsv1.Event, error){
			func() (*eventsv1.Event, error) { return sink.Create(t.Context(), someEvent()) },
			func() (*eventsv1.Event, error) {
				return sink.Patch(t.Context(), someEvent(), []byte(`{"series":null}`))
			},
		} {
			event, err := call()
			require.NoError(t, err)
			assert.Equal(t, "7", event.ResourceVersion)
		}
		assert.Zero(t, time.Since(start), "the client's limit is left to others")
		require.Len(t, tr.Requests, 2)
		assert.Regexp(t, `^POST /apis/events.k8s.io/v1/namespaces/ns/events application/vnd.kubernetes.protobuf \{.*"name":"x"`, tr.Requests[0])
		assert.Equal(t, `PATCH /apis/events.k8s.io/v1/namespaces/ns/events/x application/merge-patch+json {"series":null}`, tr.Requests[1])
	})
}

// The broadcaster retries. client-go would keep a worker busy.
func TestSinkDoesNotRetry(t *testing.T) {
	for _, tt := range []struct {
		code int
		body string
		want tracker.Response
	}{
		{429, refusalText, tracker.Response{Outcome: schedule.PushedBack, Pause: 7 * time.Second}},
		{429, refusalStatus, tracker.Response{Outcome: schedule.PushedBack, Pause: 7 * time.Second}},
		{503, "not ready", tracker.Response{Outcome: schedule.PushedBack, Pause: 7 * time.Second}},
		{500, "panic", tracker.Response{Outcome: schedule.Troubled, MayBeStored: true, Pause: 7 * time.Second}},
	} {
		synctest.Test(t, func(t *testing.T) {
			tr := &eventclienttest.Transport{Code: tt.code, Header: http.Header{"Retry-After": {"7"}}, Body: tt.body}
			sink := newSink(t, tr)
			start := time.Now()
			_, err := sink.Create(t.Context(), someEvent())
			require.Error(t, err)
			_, err = sink.Patch(t.Context(), someEvent(), []byte(`{}`))
			require.Error(t, err)
			assert.Zero(t, time.Since(start))
			assert.Len(t, tr.Requests, 2)
			assert.Equal(t, tt.want, classify(err, false))
		})
	}
}

func TestSinkRejectsForeignResponses(t *testing.T) {
	sink := newSink(t, &eventclienttest.Transport{Body: `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"}}`})
	_, create := sink.Create(t.Context(), someEvent())
	_, patch := sink.Patch(t.Context(), someEvent(), []byte(`{}`))
	_, list := sink.List(t.Context(), "ns", metav1.ListOptions{})
	for _, err := range []error{create, patch, list} {
		require.Error(t, err)
		assert.Equal(t, tracker.Response{Outcome: schedule.Troubled, MayBeStored: true}, classify(err, true))
	}
}

// connectionKey is the context key of the connection of a request.
type connectionKey struct{}

// A connection breaks before the response, or in the middle of it, when the server may have stored the Event.
func TestSinkOnABrokenConnection(t *testing.T) {
	abort := func(*http.Request) { panic(http.ErrAbortHandler) } // of HTTP/2, only the stream ends
	reset := func(r *http.Request) {
		conn := r.Context().Value(connectionKey{}).(*tls.Conn).NetConn().(*net.TCPConn)
		_ = conn.SetLinger(0)
		_ = conn.Close()
		panic(http.ErrAbortHandler)
	}
	half := func(end func(*http.Request)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", strconv.Itoa(len(storedEvent)))
			_, _ = w.Write([]byte(storedEvent[:len(storedEvent)/2]))
			_ = http.NewResponseController(w).Flush()
			end(r)
		}
	}
	for name, handler := range map[string]http.HandlerFunc{
		"abort":           func(_ http.ResponseWriter, r *http.Request) { abort(r) },
		"reset":           func(_ http.ResponseWriter, r *http.Request) { reset(r) },
		"half, and abort": half(abort),
		"half, and reset": half(reset),
	} {
		for _, http2 := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, HTTP/2: %t", name, http2), func(t *testing.T) {
				server := httptest.NewUnstartedServer(handler)
				server.EnableHTTP2 = http2
				server.Config.ErrorLog = log.New(io.Discard, "", 0)
				server.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
					return context.WithValue(ctx, connectionKey{}, c)
				}
				server.StartTLS()
				defer server.Close()
				client, err := typedeventsv1.NewForConfigAndClient(&rest.Config{Host: server.URL}, server.Client())
				require.NoError(t, err)
				sink := &EventSinkImpl{Interface: client}
				_, create := sink.Create(t.Context(), someEvent())
				_, patch := sink.Patch(t.Context(), someEvent(), []byte(`{}`))
				for _, err := range []error{create, patch} {
					require.Error(t, err)
					assert.Equal(t, tracker.Response{Outcome: schedule.Troubled, MayBeStored: true}, classify(err, true), err)
				}
			})
		}
	}
}

func TestSinkEndsWithItsContext(t *testing.T) {
	_, err := newSink(t, &eventclienttest.Transport{Body: storedEvent}).Create(expired(), someEvent())
	require.ErrorIs(t, err, context.Canceled)
}

func TestSinkUpdatesWithAFakeClientset(t *testing.T) {
	sink := &EventSinkImpl{Interface: fake.NewClientset(someEvent()).EventsV1()}
	_, err := sink.Update(t.Context(), someEvent())
	require.NoError(t, err)
}

func TestInvalidSink(t *testing.T) {
	var none *EventSinkImpl
	fine := &EventSinkImpl{Interface: fake.NewClientset().EventsV1()}
	for _, tt := range []struct {
		sink  *EventSinkImpl
		event *eventsv1.Event
		want  string
	}{
		{none, someEvent(), "no Interface"},
		{&EventSinkImpl{}, someEvent(), "no Interface"},
		{fine, nil, "nil event"},
		{fine, &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, `event "x" without a namespace`},
	} {
		_, create := tt.sink.Create(t.Context(), tt.event)
		_, patch := tt.sink.Patch(t.Context(), tt.event, nil)
		_, update := tt.sink.Update(t.Context(), tt.event)
		for _, err := range []error{create, patch, update} {
			require.ErrorContains(t, err, tt.want)
		}
	}
}

func TestBroadcasterWithAnInvalidSink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.broadcaster.sink = (*EventSinkImpl)(nil)
		w.start(t)
		w.emit(0)
		time.Sleep(time.Hour + time.Minute)
		assert.Len(t, w.logs.with("Cannot write events", "no Interface"), 2)
		assert.Equal(t, map[DropReason]uint64{DropRejected: 1}, w.broadcaster.Stats().Dropped)
	})
}

// namesake is a sink of a user with methods that mean something elsewhere.
type namesake struct {
	EventSink
	called atomic.Bool
}

func (s *namesake) MaxInFlight() int { s.called.Store(true); return 1 }

func (s *namesake) Detached() <-chan struct{} { s.called.Store(true); return make(chan struct{}) }

func (s *namesake) Namespace() string { s.called.Store(true); return "elsewhere" }

func (s *namesake) Shutdown() { s.called.Store(true) }

// A recorder calls no method of a sink that no interface documents.
func TestSinkWithOtherMethods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		took := func(wrap func(EventSink) EventSink) time.Duration {
			s := newServer()
			s.slow(time.Second)
			w := startOn(t, s, wrap(s), Options{})
			for i := range 20 {
				w.emit(i)
			}
			began := time.Now()
			w.flush(t)
			w.broadcaster.Shutdown()
			w.assertAccounted(t)
			assert.Len(t, s.list(), 20)
			return time.Since(began)
		}
		var sink *namesake
		with := took(func(s EventSink) EventSink {
			sink = &namesake{EventSink: s}
			return sink
		})
		assert.Equal(t, took(func(s EventSink) EventSink { return struct{ EventSink }{s} }), with)
		assert.False(t, sink.called.Load())
	})
}
