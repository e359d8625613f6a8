package events

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/eventseries/eventseries/series"
)

// server is a sink that keeps Events in memory. It refuses what kube-apiserver
// would refuse, and records as a problem whatever a recorder must never do.
type server struct {
	// latency is how long each request takes.
	latency time.Duration
	// ttl is how long an Event lives after its last write; zero: for ever.
	ttl time.Duration
	// answer, if set, is asked before anything else is done. An error is the
	// answer. It may block until the context of the request ends, and panic.
	answer func(context.Context, request) error
	// lose, if set, is asked after a request was carried out. An error is what
	// the client gets to see instead of the result.
	lose func(request) error

	mu       sync.Mutex
	requests []request
	events   map[types.NamespacedName]*eventsv1.Event
	version  int // the latest resourceVersion
	written  map[types.NamespacedName]time.Time
	busy     map[types.NamespacedName]string // the body of the request that is under way
	counts   map[birth]int32                 // the count that was last written
	problems []string
	// strangers are the Events that are not of this project.
	strangers map[types.NamespacedName]bool
}

// request is one call of a sink.
type request struct {
	at   time.Time
	verb string // create or patch
	name types.NamespacedName
	body string // what was sent, as JSON
}

func (r request) String() string {
	return fmt.Sprintf("%s %s %s", r.at.Format(time.TimeOnly), r.verb, r.name)
}

// birth is the beginning of a series. Its Event can expire and be created anew,
// and a later one can have its name.
type birth struct {
	name types.NamespacedName
	time time.Time
}

var _ EventSink = (*server)(nil)

var eventResource = schema.GroupResource{Group: eventsv1.GroupName, Resource: "events"}

func newServer() *server {
	return &server{
		events:  make(map[types.NamespacedName]*eventsv1.Event),
		written: make(map[types.NamespacedName]time.Time),
		busy:    make(map[types.NamespacedName]string),
		counts:  make(map[birth]int32),

		strangers: make(map[types.NamespacedName]bool),
	}
}

func (s *server) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	body, err := json.Marshal(event)
	if err != nil {
		return nil, err
	}
	return s.serve(ctx, "create", event, body, func(name types.NamespacedName) (*eventsv1.Event, error) {
		if s.events[name] != nil {
			return nil, apierrors.NewAlreadyExists(eventResource, name.Name)
		}
		if err := malformed(event); err != nil {
			s.problem("create of %v is malformed: %v", name, err)
			return nil, &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, Message: err.Error()}}
		}
		return event.DeepCopy(), nil
	})
}

func (s *server) Update(context.Context, *eventsv1.Event) (*eventsv1.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problem("Update was called, for which a recorder may have no permission")
	return nil, errors.New("no updates")
}

func (s *server) Patch(ctx context.Context, old *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
	return s.serve(ctx, "patch", old, data, func(name types.NamespacedName) (*eventsv1.Event, error) {
		stored := s.events[name]
		if stored == nil {
			return nil, apierrors.NewNotFound(eventResource, name.Name)
		}
		// kube-apiserver refuses a change of anything else.
		var patch struct {
			Metadata struct {
				ResourceVersion string             `json:"resourceVersion"`
				Annotations     map[string]*string `json:"annotations"`
			} `json:"metadata"`
			Series *eventsv1.EventSeries `json:"series"`
		}
		decoder := json.NewDecoder(bytes.NewReader(data))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&patch); err != nil {
			s.problem("patch of %v: %v", name, err)
			return nil, apierrors.NewBadRequest(err.Error())
		}
		if v := patch.Metadata.ResourceVersion; v != "" && v != stored.ResourceVersion {
			return nil, apierrors.NewConflict(eventResource, name.Name, fmt.Errorf("version %s, not %s", stored.ResourceVersion, v))
		}
		event := stored.DeepCopy()
		for k, v := range patch.Metadata.Annotations {
			if v == nil {
				delete(event.Annotations, k)
			} else {
				metav1.SetMetaDataAnnotation(&event.ObjectMeta, k, *v)
			}
		}
		if patch.Series == nil {
			return event, nil // a look, or annotations alone
		}
		if patch.Series.Count < 2 {
			s.problem("patch of %v has the series %v", name, patch.Series)
		}
		if stored.Series != nil && patch.Series.LastObservedTime.Before(&stored.Series.LastObservedTime) {
			s.problem("the time of %v goes back", name)
		}
		event.Series = patch.Series
		return event, nil
	})
}

// serve records a request and carries it out.
func (s *server) serve(ctx context.Context, verb string, event *eventsv1.Event, body []byte, do func(types.NamespacedName) (*eventsv1.Event, error)) (*eventsv1.Event, error) {
	name := types.NamespacedName{Namespace: event.Namespace, Name: event.Name}
	req := request{at: time.Now(), verb: verb, name: name, body: string(body)}
	s.mu.Lock()
	s.requests = append(s.requests, req)
	// The Event that has the base name gets a signpost from a later series. It has
	// nothing in common with what the series of that Event has to write itself.
	if signpost := bytes.Contains(body, []byte(series.AnnotationSuccessor)); !signpost {
		if other, busy := s.busy[name]; busy {
			s.problem("two requests for %v at the same time: %s and %s", name, other, body)
		}
		s.busy[name] = string(body)
		defer func() {
			s.mu.Lock()
			delete(s.busy, name)
			s.mu.Unlock()
		}()
	}
	answer, lose, latency := s.answer, s.lose, s.latency
	s.mu.Unlock()

	if latency > 0 {
		select {
		case <-time.After(latency):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if answer != nil {
		if err := answer(ctx, req); err != nil {
			return nil, err
		}
	}
	stored, err := s.carryOut(name, do)
	if err == nil && lose != nil {
		err = lose(req)
	}
	if err != nil {
		return nil, err
	}
	return stored, nil
}

func (s *server) carryOut(name types.NamespacedName, do func(types.NamespacedName) (*eventsv1.Event, error)) (*eventsv1.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ttl > 0 && time.Since(s.written[name]) >= s.ttl {
		delete(s.events, name)
	}
	event, err := do(name)
	if err != nil {
		return nil, err
	}
	if before := s.events[name]; before == nil || !equality.Semantic.DeepEqual(before, event) {
		s.version++
		event.ResourceVersion = strconv.Itoa(s.version)
	}
	s.events[name], s.written[name] = event, time.Now()
	if s.strangers[name] {
		return event.DeepCopy(), nil
	}
	born := birth{name, event.EventTime.Time}
	if countOf(event) < s.counts[born] {
		s.problem("the count of %v goes back from %d to %d", name, s.counts[born], countOf(event))
	}
	s.counts[born] = countOf(event)
	return event.DeepCopy(), nil
}

// problem records what must not happen. The lock is held.
func (s *server) problem(format string, args ...any) {
	s.problems = append(s.problems, fmt.Sprintf(format, args...))
}

// script sets what the server answers from now on; nil: it works.
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

// once answers the first request with err, and has the others carried out.
func once(err error) func(context.Context, request) error {
	var first sync.Once
	return func(context.Context, request) (answer error) {
		first.Do(func() { answer = err })
		return answer
	}
}

// log returns the requests so far.
func (s *server) log() []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// requestsOf returns how many requests there were with this verb.
func (s *server) requestsOf(verb string) int {
	n := 0
	for _, r := range s.log() {
		if r.verb == verb {
			n++
		}
	}
	return n
}

// list returns the Events that there are, by name.
func (s *server) list() []*eventsv1.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*eventsv1.Event
	for _, event := range s.events {
		list = append(list, event.DeepCopy())
	}
	slices.SortFunc(list, func(a, b *eventsv1.Event) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) })
	return list
}

// only returns the one Event that there is.
func (s *server) only(t *testing.T) *eventsv1.Event {
	t.Helper()
	list := s.list()
	if len(list) != 1 {
		t.Fatalf("%d Events on the server, want 1: %v", len(list), list)
	}
	return list[0]
}

// put makes an Event stand there that this project has not written.
func (s *server) put(event *eventsv1.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := types.NamespacedName{Namespace: event.Namespace, Name: event.Name}
	s.events[name], s.written[name] = event, time.Now()
	s.strangers[name] = true
}

// remove deletes every Event, as a user or its TTL would.
func (s *server) remove() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.events)
}

// delivered returns how many occurrences the server has ever been told of.
func (s *server) delivered() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var n uint64
	for _, count := range s.counts {
		n += uint64(count)
	}
	return n
}

// assertNoProblems fails the test if something was asked that must never be.
func (s *server) assertNoProblems(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	assert.Empty(t, s.problems)
}

func countOf(event *eventsv1.Event) int32 {
	if event.Series == nil {
		return 1
	}
	return event.Series.Count
}

func stateOf(event *eventsv1.Event) string { return event.Annotations[series.AnnotationState] }

// malformed is what kube-apiserver's validation of a new Event looks at, as far
// as it is about what a recorder fills in.
func malformed(event *eventsv1.Event) error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(len(validation.IsDNS1123Subdomain(event.Name)) == 0, "name %q", event.Name)
	check(event.Regarding.Namespace == event.Namespace || event.Regarding.Namespace == "" && event.Namespace == metav1.NamespaceSystem,
		"namespace %q of an object in %q", event.Namespace, event.Regarding.Namespace)
	check(!event.EventTime.IsZero(), "no eventTime")
	check(len(validation.IsQualifiedName(event.ReportingController)) == 0, "reportingController %q", event.ReportingController)
	check(event.ReportingInstance != "" && len(event.ReportingInstance) <= 128, "reportingInstance %q", event.ReportingInstance)
	check(event.Action != "" && len(event.Action) <= 128, "action %q", event.Action)
	check(event.Reason != "" && len(event.Reason) <= 128, "reason %q", event.Reason)
	check(event.Type == corev1.EventTypeNormal || event.Type == corev1.EventTypeWarning, "type %q", event.Type)
	check(len(event.Note) <= 1024 && utf8.ValidString(event.Note), "note %q", event.Note)
	check(event.Series == nil || event.Series.Count >= 2, "series %v", event.Series)
	return errors.Join(errs...)
}
