package fakeapi

import (
	"context"
	"slices"
	"sync"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// Server keeps Events in memory and answers requests about them like kube-apiserver
// does for events.k8s.io/v1:
//
//   - It rejects an Event for which [ValidateCreate] returns errors.
//   - It creates a name once.
//   - It patches nothing but metadata and series.
//   - A resourceVersion in a patch or an update is a precondition.
//   - An Event expires when TTL has passed since its last change. A patch that changes
//     nothing does not renew it.
//
// The zero value is an empty server. All methods are safe for concurrent use. Set the
// fields before the first request.
type Server struct {
	// Clock provides the time. If nil, the server uses the real clock.
	Clock clock.PassiveClock
	// TTL is how long the server keeps an Event after its last change. If zero or
	// negative, Events do not expire.
	TTL time.Duration
	// OnChange, if set, is called for each change of an Event, in order. verb is that
	// of the request; "put", "delete", and "restore" for [Server.Put], [Server.Delete], and
	// [Server.Restore]; or "expire". before is nil for a new Event, after is nil for a deleted one. OnChange
	// must neither modify the Events nor call the server, which holds its lock.
	OnChange func(verb string, before, after *eventsv1.Event)
	// Admit, if set, changes an Event that is to be created or patched, like an admission webhook. It
	// must not call the server.
	Admit func(verb string, event *eventsv1.Event)

	mu       sync.Mutex
	events   map[types.NamespacedName]*stored
	version  uint64 // the latest resourceVersion
	created  uint64 // how many Events were ever created
	requests []*Request
	before   func(context.Context, Request) error
	after    func(context.Context, Request) error
}

// Create creates an Event and returns it as stored.
func (s *Server) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	body, received, err := encode("create", event)
	if err != nil {
		return nil, err
	}
	return serve(ctx, s, "create", nameOf(event), body, func() (*eventsv1.Event, error) { return s.create(received) })
}

// Update replaces an Event, or creates it if it does not exist. It returns the Event
// as stored.
func (s *Server) Update(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	body, received, err := encode("update", event)
	if err != nil {
		return nil, err
	}
	return serve(ctx, s, "update", nameOf(event), body, func() (*eventsv1.Event, error) {
		if old := s.get(nameOf(received)); old != nil {
			return s.replace("update", old, received)
		}
		return s.create(received)
	})
}

// Patch applies a JSON merge patch (RFC 7386) to the Event with the namespace and the
// name of event, and returns it as stored.
func (s *Server) Patch(ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
	if err := checkAddress("patch", event); err != nil {
		return nil, err
	}
	name, patch := nameOf(event), slices.Clone(data)
	return serve(ctx, s, "patch", name, string(patch), func() (*eventsv1.Event, error) {
		old := s.get(name)
		if old == nil {
			return nil, apierrors.NewNotFound(resource, name.Name)
		}
		patched, err := applyPatch(old.event, patch)
		if err != nil {
			return nil, err
		}
		return s.replace("patch", old, patched)
	})
}

// List returns the Events of a namespace, or of all namespaces if it is empty, that
// the selectors in opts match, in pages of opts.Limit.
func (s *Server) List(ctx context.Context, namespace string, opts metav1.ListOptions) (*eventsv1.EventList, error) {
	return serve(ctx, s, "list", types.NamespacedName{Namespace: namespace}, "", func() (*eventsv1.EventList, error) {
		return s.list(namespace, opts)
	})
}

// Get returns an Event, or nil if it does not exist. It is not a request.
func (s *Server) Get(namespace, name string) *eventsv1.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.get(types.NamespacedName{Namespace: namespace, Name: name}); e != nil {
		return e.event.DeepCopy()
	}
	return nil
}

// Put creates or replaces an Event without any checks, like somebody else with direct
// access to the storage. It assigns a resourceVersion, and a UID and a creation time if
// event has none, and returns the Event as stored. It is not a request.
func (s *Server) Put(event *eventsv1.Event) *eventsv1.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	event = event.DeepCopy()
	if old := s.get(nameOf(event)); old != nil {
		inherit(event, old.event)
		s.write("put", old, event)
	} else {
		s.add("put", event)
	}
	return event.DeepCopy()
}

// Delete deletes an Event, like somebody with kubectl. It is not a request. The error
// is NotFound if the Event does not exist.
func (s *Server) Delete(namespace, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.get(types.NamespacedName{Namespace: namespace, Name: name})
	if e == nil {
		return apierrors.NewNotFound(resource, name)
	}
	s.remove("delete", e)
	return nil
}

// Backup returns what the server has stored, like a snapshot of etcd.
func (s *Server) Backup() *Backup {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := &Backup{version: s.version}
	for _, e := range s.all() {
		b.events = append(b.events, *e)
	}
	return b
}

// Restore makes the server store what it has stored at the time of the backup. It assigns the
// resourceVersions since then again, and the TTL of each Event begins anew, as that of a
// lease in a restored etcd. It is not a request.
func (s *Server) Restore(b *Backup) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.events
	s.events, s.version = make(map[types.NamespacedName]*stored), b.version
	for _, e := range b.events {
		name := nameOf(e.event)
		var before *eventsv1.Event
		if now[name] != nil {
			before = now[name].event
		}
		e.changed = s.now()
		s.events[name] = &e
		s.notify("restore", before, e.event)
	}
	for name, e := range now {
		if s.events[name] == nil {
			s.notify("restore", e.event, nil)
		}
	}
}

// Events returns the Events on the server, in the order of their creation.
func (s *Server) Events() []eventsv1.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.all()
	list := make([]eventsv1.Event, len(all))
	for i, e := range all {
		e.event.DeepCopyInto(&list[i])
	}
	return list
}

// Requests returns all requests so far, in the order of their arrival, whether they
// succeeded, failed or are in flight.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]Request, len(s.requests))
	for i, r := range s.requests {
		list[i] = *r
	}
	return list
}

// Forget forgets the requests so far, and the Events that have expired. A long test calls
// it now and then, or the memory of the server grows.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = nil
	s.all()
}

// Before sets a hook that runs before each request from now on, nil for none. If it
// returns an error, the client gets that error and the request has no effect. The hook
// may block: the server carries out the request when the hook returns nil, even if the
// client is gone.
func (s *Server) Before(hook func(context.Context, Request) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = hook
}

// After sets a hook that runs after each request from now on, nil for none. The request
// has taken effect; its Err is the answer of the server. If the hook returns an error,
// the response is lost: the client gets that error instead. The hook does not run if
// that of [Server.Before] returned an error.
func (s *Server) After(hook func(context.Context, Request) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.after = hook
}

// serve records a request, carries it out with do, which holds the lock, and returns a
// copy of the response.
func serve[T interface{ DeepCopy() T }](ctx context.Context, s *Server, verb string, name types.NamespacedName, body string, do func() (T, error)) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, err // no client would send the request
	}
	s.mu.Lock()
	r := &Request{Time: s.now(), Verb: verb, Namespace: name.Namespace, Name: name.Name, Body: body}
	s.requests = append(s.requests, r)
	request, before := *r, s.before
	s.mu.Unlock()

	fail := func(err error) (T, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		r.Err = err
		return none, err
	}
	if before != nil {
		if err := before(ctx, request); err != nil {
			return fail(err)
		}
	}
	s.mu.Lock()
	response, err := do()
	response = response.DeepCopy() // nil has a copy, too
	after := s.after
	s.mu.Unlock()
	if after != nil {
		request.Err = err
		if lost := after(ctx, request); lost != nil {
			err = lost
		}
	}
	if err != nil {
		return fail(err)
	}
	return response, nil
}
