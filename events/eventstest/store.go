package eventstest

import (
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

// create is Create with the lock held. It keeps event.
func (s *Server) create(event *eventsv1.Event) (*eventsv1.Event, error) {
	if event.ResourceVersion != "" {
		return nil, apierrors.NewInternalError(errors.New("resourceVersion should not be set on objects to be created"))
	}
	if event.Name == "" && event.GenerateName != "" {
		event.Name = generateName(event)
	}
	if errs := validateCreate(event); len(errs) > 0 {
		return nil, apierrors.NewInvalid(eventKind, event.Name, errs)
	}
	if s.events[nameOf(event)] != nil {
		return nil, apierrors.NewAlreadyExists(eventResource, event.Name)
	}
	now := s.now()
	s.created++
	event.UID = types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012x", s.created))
	event.CreationTimestamp = metav1.NewTime(now.Truncate(time.Second))
	if s.events == nil {
		s.events = make(map[types.NamespacedName]*stored)
	}
	s.events[nameOf(event)] = s.write(&stored{event: event, number: s.created}, now)
	return event, nil
}

// replace has event take the place of old, if the server would take it. The lock is
// held.
func (s *Server) replace(old *stored, event *eventsv1.Event) (*eventsv1.Event, error) {
	was := old.event
	switch {
	case event.Name != was.Name || event.Namespace != was.Namespace:
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s/%s) does not match that of the request (%s/%s)",
			event.Namespace, event.Name, was.Namespace, was.Name))
	case event.ResourceVersion != "" && event.ResourceVersion != was.ResourceVersion:
		return nil, apierrors.NewConflict(eventResource, event.Name, fmt.Errorf("the resourceVersion is %s, not %s", was.ResourceVersion, event.ResourceVersion))
	}
	event.ResourceVersion = was.ResourceVersion
	if event.UID == "" {
		event.UID = was.UID
	}
	if event.CreationTimestamp.IsZero() {
		event.CreationTimestamp = was.CreationTimestamp
	}
	if errs := validateUpdate(event, was); len(errs) > 0 {
		return nil, apierrors.NewInvalid(eventKind, event.Name, errs)
	}
	if equality.Semantic.DeepEqual(was, event) {
		return was, nil // nothing is written, and it does not live longer for it
	}
	old.event = event
	s.write(old, s.now())
	return event, nil
}

// write makes a change one. The lock is held.
func (s *Server) write(e *stored, now time.Time) *stored {
	s.version++
	e.event.ResourceVersion = strconv.FormatUint(s.version, 10)
	e.changed = now
	return e
}

// list is List with the lock held.
func (s *Server) list(namespace string, opts metav1.ListOptions) (*eventsv1.EventList, error) {
	selects, err := selection(opts)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	from, err := base64.RawURLEncoding.DecodeString(opts.Continue)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("continue key is not valid: %v", err))
	}
	var keys []string
	found := make(map[string]*eventsv1.Event)
	for name, e := range s.events {
		key := name.String()
		if (namespace == "" || name.Namespace == namespace) && key > string(from) && selects(e.event) {
			keys = append(keys, key)
			found[key] = e.event
		}
	}
	slices.Sort(keys)
	list := &eventsv1.EventList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.FormatUint(s.version, 10)}}
	if opts.Limit > 0 && int64(len(keys)) > opts.Limit {
		keys = keys[:opts.Limit]
		list.Continue = base64.RawURLEncoding.EncodeToString([]byte(keys[len(keys)-1]))
	}
	for _, key := range keys {
		list.Items = append(list.Items, *found[key].DeepCopy())
	}
	return list, nil
}

// expire forgets what is too old. The lock is held.
func (s *Server) expire() {
	ttl := s.TTL
	if ttl == 0 {
		ttl = DefaultTTL
	}
	if ttl < 0 {
		return
	}
	now := s.now()
	maps.DeleteFunc(s.events, func(_ types.NamespacedName, e *stored) bool { return now.Sub(e.changed) >= ttl })
}

func (s *Server) now() time.Time {
	if s.Clock == nil {
		return time.Now()
	}
	return s.Clock.Now()
}
