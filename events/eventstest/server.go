package eventstest

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/eventseries/eventseries/events"
)

// DefaultTTL is for how long kube-apiserver keeps an Event: its --event-ttl.
const DefaultTTL = time.Hour

// Server keeps Events in memory, and is a sink that behaves as the API server does
// with events.k8s.io/v1: a name is there once, what Validate finds is refused, only
// metadata and series can be patched, a resourceVersion in a patch is a condition,
// and an Event is gone some time after it was last changed.
//
// All methods may be called concurrently. The zero value is an empty server. The
// fields are to be set before it is used.
type Server struct {
	// Clock is where the time comes from. If nil, the real clock.
	Clock clock.PassiveClock
	// TTL is for how long an Event is kept after it was last changed. If zero,
	// DefaultTTL. If negative, for ever.
	TTL time.Duration

	mu       sync.Mutex
	events   map[types.NamespacedName]*stored
	version  uint64 // the latest resourceVersion
	created  uint64 // how many Events were
	requests []*Request
	answer   func(context.Context, Request) error
}

// stored is an Event on the server.
type stored struct {
	event   *eventsv1.Event
	number  uint64 // of its creation
	changed time.Time
}

var (
	_ events.EventSink   = (*Server)(nil)
	_ events.EventLister = (*Server)(nil)

	eventResource = schema.GroupResource{Group: eventsv1.GroupName, Resource: "events"}
	eventKind     = schema.GroupKind{Group: eventsv1.GroupName, Kind: "Event"}
)

// Create creates an Event and returns it as it is on the server.
func (s *Server) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	sent, body, err := wire("create", event)
	if err != nil {
		return nil, err
	}
	return s.serve(ctx, "create", event, body, func() (*eventsv1.Event, error) { return s.create(sent) })
}

// Update replaces an Event, or creates it if it is not there. Recorders do not use
// it.
func (s *Server) Update(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	sent, body, err := wire("update", event)
	if err != nil {
		return nil, err
	}
	return s.serve(ctx, "update", event, body, func() (*eventsv1.Event, error) {
		old := s.events[nameOf(sent)]
		if old == nil {
			return s.create(sent)
		}
		return s.replace(old, sent)
	})
}

// Patch applies a JSON merge patch (RFC 7386) to the Event that has event's
// namespace and name, and returns it as it is on the server then.
func (s *Server) Patch(ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
	if err := addressed("patch", event); err != nil {
		return nil, err
	}
	patch := slices.Clone(data)
	return s.serve(ctx, "patch", event, string(patch), func() (*eventsv1.Event, error) {
		old := s.events[nameOf(event)]
		if old == nil {
			return nil, apierrors.NewNotFound(eventResource, event.Name)
		}
		patched, err := applyPatch(old.event, patch)
		if err != nil {
			return nil, err
		}
		return s.replace(old, patched)
	})
}

// List returns the Events of a namespace, or of all if that is empty, that opts
// selects by fields and labels, in pages of opts.Limit.
func (s *Server) List(ctx context.Context, namespace string, opts metav1.ListOptions) (*eventsv1.EventList, error) {
	var list *eventsv1.EventList
	_, err := s.serve(ctx, "list", &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}}, "", func() (*eventsv1.Event, error) {
		var err error
		list, err = s.list(namespace, opts)
		return nil, err
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// Delete deletes an Event, as somebody with kubectl would.
func (s *Server) Delete(namespace, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	key := types.NamespacedName{Namespace: namespace, Name: name}
	if s.events[key] == nil {
		return apierrors.NewNotFound(eventResource, name)
	}
	delete(s.events, key)
	return nil
}

// Events returns what is on the server, in the order in which it was created.
func (s *Server) Events() []eventsv1.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	all := slices.SortedFunc(maps.Values(s.events), func(a, b *stored) int { return int(a.number) - int(b.number) })
	list := make([]eventsv1.Event, len(all))
	for i, e := range all {
		e.event.DeepCopyInto(&list[i])
	}
	return list
}

// Requests returns all requests so far, those included that were refused. One that
// is under way has no answer yet.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]Request, len(s.requests))
	for i, r := range s.requests {
		list[i] = *r
	}
	return list
}

// Answer has answer called with each request from now on, before it is carried
// out. An error is what the client gets to see; with nil the request goes on. The
// errors of k8s.io/apimachinery/pkg/api/errors are those of the API server. It may
// block until the context of the request ends. If answer is nil, all works again.
//
//	server.Answer(func(context.Context, eventstest.Request) error {
//		return apierrors.NewTooManyRequests("slow down", 30)
//	})
func (s *Server) Answer(answer func(context.Context, Request) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

// serve keeps a request and carries it out.
func (s *Server) serve(ctx context.Context, verb string, event *eventsv1.Event, body string, do func() (*eventsv1.Event, error)) (*eventsv1.Event, error) {
	if err := ctx.Err(); err != nil {
		return nil, err // no client would send it
	}
	s.mu.Lock()
	r := &Request{Time: s.now(), Verb: verb, Namespace: event.Namespace, Name: event.Name, Body: body}
	s.requests = append(s.requests, r)
	answer := s.answer
	s.mu.Unlock()

	var err error
	if answer != nil {
		err = answer(ctx, *r)
	}
	if err == nil {
		err = ctx.Err()
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	var result *eventsv1.Event
	if err == nil {
		s.expire()
		result, err = do()
	}
	r.Err = err
	if err != nil {
		return nil, err
	}
	return result.DeepCopy(), nil
}
