package events

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/eventseries/eventseries/internal/fakeapi"
	"github.com/eventseries/eventseries/series"
)

// server is an in-memory API server that follows a script, and records what a recorder
// must never do.
type server struct {
	api   fakeapi.Server
	audit *fakeapi.Audit
	// latency is how long each request takes.
	latency time.Duration
	// answer, if set, runs before a request. It may block, panic, or return the error
	// that the client gets.
	answer func(context.Context, request) error
	// replay, if set, makes what processes write to it follow from a seed.
	replay *replay

	mu       sync.Mutex
	inFlight map[types.NamespacedName]string // the body of the request
}

type request = fakeapi.Request

var _ EventSink = (*server)(nil)

var eventResource = eventsv1.Resource("events")

func newServer() *server {
	s := &server{inFlight: make(map[types.NamespacedName]string)}
	s.audit = fakeapi.NewAudit(&s.api)
	s.api.Before(s.before)
	s.api.After(s.after)
	return s
}

func (s *server) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	s.audit.Check(utf8.ValidString(event.Note), "note %q", event.Note)
	s.audit.Check(event.Namespace == cmp.Or(event.Regarding.Namespace, metav1.NamespaceSystem),
		"namespace %q of an object in %q", event.Namespace, event.Regarding.Namespace)
	defer s.begin(event, "create")()
	return s.api.Create(ctx, event)
}

func (s *server) Patch(ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
	defer s.begin(event, string(data))()
	return s.api.Patch(ctx, event, data)
}

func (s *server) Update(context.Context, *eventsv1.Event) (*eventsv1.Event, error) {
	s.audit.Check(false, "Update was called, which RBAC may forbid")
	return nil, errors.New("no updates")
}

// begin records that a request is in flight until the caller calls end.
func (s *server) begin(event *eventsv1.Event, body string) (end func()) {
	name := types.NamespacedName{Namespace: event.Namespace, Name: event.Name}
	s.mu.Lock()
	defer s.mu.Unlock()
	other, busy := s.inFlight[name]
	s.audit.Check(!busy, "two requests for %v at the same time: %s and %s", name, other, body)
	s.inFlight[name] = body
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.inFlight, name)
	}
}

// before follows the script.
func (s *server) before(ctx context.Context, r request) error {
	s.mu.Lock()
	answer, latency := s.answer, s.latency
	s.mu.Unlock()
	if latency > 0 {
		select {
		case <-time.After(latency):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if answer == nil {
		return nil
	}
	return answer(ctx, r)
}

// after checks the response.
func (s *server) after(_ context.Context, r request) error {
	s.audit.Check(!apierrors.IsInvalid(r.Err) && !apierrors.IsBadRequest(r.Err), "%v", r)
	return nil
}

// script sets the answer from now on; nil: requests succeed.
func (s *server) script(answer func(context.Context, request) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

// slow sets how long requests take from now on.
func (s *server) slow(latency time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latency = latency
}

// always answers every request with err.
func always(err error) func(context.Context, request) error {
	return func(context.Context, request) error { return err }
}

// once answers the first request with err. The others succeed.
func once(err error) func(context.Context, request) error {
	var first sync.Once
	return func(context.Context, request) (answer error) {
		first.Do(func() { answer = err })
		return answer
	}
}

// failing answers each request with this verb with err.
func failing(verb string, err error) func(context.Context, request) error {
	return func(_ context.Context, r request) error {
		if r.Verb == verb {
			return err
		}
		return nil
	}
}

// log returns the requests so far.
func (s *server) log() []request { return s.api.Requests() }

// requestsOf returns the number of requests with this verb.
func (s *server) requestsOf(verb string) int {
	return len(slices.DeleteFunc(s.log(), func(r request) bool { return r.Verb != verb }))
}

// list returns the Events on the server, by name.
func (s *server) list() (list []*eventsv1.Event) {
	all := s.api.Events()
	for i := range all {
		list = append(list, &all[i])
	}
	slices.SortFunc(list, func(a, b *eventsv1.Event) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// only returns the Event on a server that has exactly one.
func (s *server) only(t *testing.T) *eventsv1.Event {
	t.Helper()
	list := s.list()
	require.Len(t, list, 1)
	return list[0]
}

// put stores an Event that this project did not write, and fills in event what the
// server does.
func (s *server) put(event *eventsv1.Event) {
	if event.EventTime.IsZero() {
		event.Regarding.Namespace = event.Namespace // or the server rejects every patch
	}
	*event = *s.api.Put(event)
}

// remove deletes every Event, as a user or the TTL would.
func (s *server) remove() {
	for _, event := range s.api.Events() {
		_ = s.api.Delete(event.Namespace, event.Name)
	}
}

// delivered returns how many occurrences the server has ever heard of.
func (s *server) delivered() uint64 { return s.audit.Delivered() }

// assertNoProblems fails the test if the recorder did what it must never do.
func (s *server) assertNoProblems(t *testing.T) {
	t.Helper()
	assert.Empty(t, s.audit.Problems())
}

// lister is a server that lists pages of two.
type lister struct{ *server }

func newLister() lister { return lister{newServer()} }

func (l lister) List(ctx context.Context, namespace string, opts metav1.ListOptions) (*eventsv1.EventList, error) {
	opts.Limit = 2
	return l.api.List(ctx, namespace, opts)
}

func countOf(event *eventsv1.Event) int32 {
	if event.Series == nil {
		return 1
	}
	return event.Series.Count
}

func stateOf(event *eventsv1.Event) string { return event.Labels[series.LabelState] }
