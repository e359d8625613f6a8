package fakeapi

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var (
	resource = eventsv1.Resource("events")
	kind     = eventsv1.SchemeGroupVersion.WithKind("Event").GroupKind()
)

// stored is an Event on the server, from its creation to its deletion.
type stored struct {
	event   *eventsv1.Event // replaced, never modified
	number  uint64          // the order of creation
	changed time.Time
}

// Backup is what a [Server] had stored at a time.
type Backup struct {
	events  []stored
	version uint64
}

// The methods below require s.mu.

// create carries out a create. It takes over event.
func (s *Server) create(event *eventsv1.Event) (*eventsv1.Event, error) {
	if event.ResourceVersion != "" {
		return nil, apierrors.NewInternalError(errors.New("resourceVersion should not be set on objects to be created"))
	}
	if event.Name == "" && event.GenerateName != "" {
		event.Name = generateName(event, s.created+1)
	}
	s.admit("create", event)
	if errs := ValidateCreate(event); len(errs) > 0 {
		return nil, apierrors.NewInvalid(kind, event.Name, errs)
	}
	if s.get(nameOf(event)) != nil {
		return nil, apierrors.NewAlreadyExists(resource, event.Name)
	}
	s.add("create", event)
	return event, nil
}

// replace carries out an update or a patch that turns old into event. It takes over
// event.
func (s *Server) replace(verb string, old *stored, event *eventsv1.Event) (*eventsv1.Event, error) {
	was := old.event
	switch {
	case nameOf(event) != nameOf(was):
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", nameOf(event), nameOf(was)))
	case event.ResourceVersion != "" && event.ResourceVersion != was.ResourceVersion:
		return nil, apierrors.NewConflict(resource, event.Name, fmt.Errorf("the resourceVersion is %s, not %s", was.ResourceVersion, event.ResourceVersion))
	}
	event.ResourceVersion = was.ResourceVersion
	s.admit(verb, event)
	inherit(event, was)
	if errs := validateUpdate(event, was); len(errs) > 0 {
		return nil, apierrors.NewInvalid(kind, event.Name, errs)
	}
	if equality.Semantic.DeepEqual(was, event) {
		return was, nil // not written, so the TTL is not renewed
	}
	s.write(verb, old, event)
	return event, nil
}

func (s *Server) admit(verb string, event *eventsv1.Event) {
	if s.Admit != nil {
		s.Admit(verb, event)
	}
}

// inherit fills in the system metadata of an Event that replaces old. The server tracks
// no fields, as if somebody had cleared them.
func inherit(event, old *eventsv1.Event) {
	event.ManagedFields = nil
	event.UID = cmp.Or(event.UID, old.UID)
	if event.CreationTimestamp.IsZero() {
		event.CreationTimestamp = old.CreationTimestamp
	}
}

// add stores a new Event.
func (s *Server) add(verb string, event *eventsv1.Event) {
	s.created++
	event.UID = cmp.Or(event.UID, types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012x", s.created)))
	if event.CreationTimestamp.IsZero() {
		event.CreationTimestamp = metav1.NewTime(s.now().Truncate(time.Second))
	}
	if s.events == nil {
		s.events = make(map[types.NamespacedName]*stored)
	}
	e := &stored{number: s.created}
	s.events[nameOf(event)] = e
	s.write(verb, e, event)
}

// write stores event as the next version of e.
func (s *Server) write(verb string, e *stored, event *eventsv1.Event) {
	before := e.event
	s.version++
	event.ResourceVersion = strconv.FormatUint(s.version, 10)
	e.event, e.changed = event, s.now()
	s.notify(verb, before, event)
}

// remove deletes e.
func (s *Server) remove(verb string, e *stored) {
	delete(s.events, nameOf(e.event))
	s.notify(verb, e.event, nil)
}

func (s *Server) notify(verb string, before, after *eventsv1.Event) {
	if s.OnChange != nil {
		s.OnChange(verb, before, after)
	}
}

// get returns an Event that has not expired, or nil.
func (s *Server) get(name types.NamespacedName) *stored {
	e := s.events[name]
	if e != nil && s.TTL > 0 && s.now().Sub(e.changed) >= s.TTL {
		s.remove("expire", e)
		return nil
	}
	return e
}

// all returns the Events that have not expired, in the order of their creation.
func (s *Server) all() []*stored {
	byCreation := slices.SortedFunc(maps.Values(s.events), func(a, b *stored) int { return cmp.Compare(a.number, b.number) })
	return slices.DeleteFunc(byCreation, func(e *stored) bool { return s.get(nameOf(e.event)) == nil })
}

// list carries out a list.
func (s *Server) list(namespace string, opts metav1.ListOptions) (*eventsv1.EventList, error) {
	matches, err := selector(opts)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	after, err := base64.RawURLEncoding.DecodeString(opts.Continue)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("continue key is not valid: %v", err))
	}
	found := make(map[string]*eventsv1.Event)
	for _, e := range s.all() {
		key := nameOf(e.event).String()
		if (namespace == "" || e.event.Namespace == namespace) && key > string(after) && matches(e.event) {
			found[key] = e.event
		}
	}
	keys := slices.Sorted(maps.Keys(found))
	list := &eventsv1.EventList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.FormatUint(s.version, 10)}}
	if opts.Limit > 0 && int64(len(keys)) > opts.Limit {
		if remaining := int64(len(keys)) - opts.Limit; opts.FieldSelector == "" && opts.LabelSelector == "" {
			list.RemainingItemCount = &remaining
		}
		keys = keys[:opts.Limit]
		list.Continue = base64.RawURLEncoding.EncodeToString([]byte(keys[len(keys)-1]))
	}
	for _, key := range keys {
		list.Items = append(list.Items, *found[key])
	}
	return list, nil
}

func (s *Server) now() time.Time {
	if s.Clock == nil {
		return time.Now()
	}
	return s.Clock.Now()
}
