package eventstest

import (
	"cmp"
	"context"
	"sync"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/internal/fakeapi"
)

// DefaultTTL is how long kube-apiserver keeps an Event unless its --event-ttl says
// otherwise.
const DefaultTTL = time.Hour

// Server is an in-memory API server for Events, for tests that start a broadcaster
// themselves. It is a sink, and answers like kube-apiserver does for events.k8s.io/v1,
// with the same error codes and fields:
//
//   - It rejects an Event for which [Validate] finds problems.
//   - It creates a name once.
//   - It patches nothing but metadata and series.
//   - A resourceVersion in a patch is a precondition.
//   - An Event expires when TTL has passed since its last change. A patch that changes
//     nothing does not renew it.
//
// Pass it to [events.NewBroadcaster], let the program under test emit events, and look
// at [Server.Events] and [Server.Requests]. Use [Server.Answer] to have requests fail
// or hang.
//
// The zero value is an empty server. All methods are safe for concurrent use. Set the
// fields before the first request, and do not copy a Server after that.
type Server struct {
	// Clock provides the time. If nil, the server uses the real clock.
	Clock clock.PassiveClock
	// TTL is how long the server keeps an Event after its last change. If zero, it is
	// DefaultTTL. If negative, Events do not expire.
	TTL time.Duration

	once sync.Once
	fake fakeapi.Server
}

var (
	_ events.EventSink   = (*Server)(nil)
	_ events.EventLister = (*Server)(nil)
)

// api returns the server that does the work.
func (s *Server) api() *fakeapi.Server {
	s.once.Do(func() {
		s.fake.Clock = s.Clock
		s.fake.TTL = cmp.Or(s.TTL, DefaultTTL)
	})
	return &s.fake
}

// Create creates an Event and returns it as stored, with its resourceVersion. The
// error is AlreadyExists if the name is taken, and Invalid for an Event that
// kube-apiserver would reject.
func (s *Server) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	return s.api().Create(ctx, event)
}

// Update replaces an Event, or creates it if it does not exist, and returns it as
// stored. Recorders of package events do not update Events.
func (s *Server) Update(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	return s.api().Update(ctx, event)
}

// Patch applies a JSON merge patch (RFC 7386) to the Event with the namespace and the
// name of event, and returns it as stored. The error is NotFound if there is no such
// Event, Conflict if the patch has another resourceVersion than the Event, and
// Invalid or BadRequest if kube-apiserver would reject the patch.
func (s *Server) Patch(ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
	return s.api().Patch(ctx, event, data)
}

// List returns the Events of a namespace, or of all namespaces if it is empty. It
// supports label selectors, the field selectors of kube-apiserver, and pages of
// opts.Limit.
func (s *Server) List(ctx context.Context, namespace string, opts metav1.ListOptions) (*eventsv1.EventList, error) {
	return s.api().List(ctx, namespace, opts)
}

// Delete deletes an Event, as somebody with kubectl would. It is not one of the
// [Server.Requests], and [Server.Answer] does not affect it. The error is NotFound if
// there is no such Event.
func (s *Server) Delete(namespace, name string) error { return s.api().Delete(namespace, name) }

// Events returns copies of the Events on the server, in the order of their creation.
func (s *Server) Events() []eventsv1.Event { return s.api().Events() }

// Requests returns all requests so far, in the order of their arrival. It includes
// those that failed or are in flight.
func (s *Server) Requests() []Request {
	all := s.api().Requests()
	list := make([]Request, len(all))
	for i, r := range all {
		list[i] = Request(r)
	}
	return list
}

// Answer sets a function that is called with each request from now on, before the
// server carries it out. If it returns an error, the client gets that error, and the
// request has no effect. If it returns nil, the server carries out the request. To
// have requests fail like those to kube-apiserver, return errors of
// k8s.io/apimachinery/pkg/api/errors:
//
//	server.Answer(func(context.Context, eventstest.Request) error {
//		return apierrors.NewTooManyRequests("slow down", 30)
//	})
//
// To have requests hang, block until the context ends; the server does not carry out a
// request whose context has ended. Answer(nil) removes the function.
func (s *Server) Answer(answer func(context.Context, Request) error) {
	if answer == nil {
		s.api().Before(nil)
		return
	}
	s.api().Before(func(ctx context.Context, r fakeapi.Request) error {
		if err := answer(ctx, Request(r)); err != nil {
			return err
		}
		return ctx.Err()
	})
}

// Request is one request to a [Server], or to that of a [Broadcaster].
type Request struct {
	// Time is when the request arrived.
	Time time.Time
	// Verb is "create", "update", "patch" or "list".
	Verb string
	// Namespace and Name identify the Event. A list has no name.
	Namespace, Name string
	// Body is the Event or the patch that was sent, as JSON. A list has no body.
	Body string
	// Err is the error that the client got, nil if the request succeeded or is in
	// flight.
	Err error
}

// String returns the time, the verb, the name and the error of the request on one
// line.
func (r Request) String() string { return fakeapi.Request(r).String() }
