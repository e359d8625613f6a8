package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/eventseries/eventseries/events"
)

// balancer simulates a load balancer between an emitter and the API servers. Each request
// goes to any of them. Its file contains the current fault.
type balancer struct {
	next    http.RoundTripper
	servers []string // hosts and ports
	file    string
}

// pageCodes are the codes of pages. The API server answers most of them with a Status,
// or not at all.
var pageCodes = []int{
	http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusProxyAuthRequired, http.StatusMisdirectedRequest,
	http.StatusBadGateway, http.StatusServiceUnavailable,
}

// RoundTrip forwards half of the requests that a fault applies to.
func (b *balancer) RoundTrip(r *http.Request) (*http.Response, error) {
	content, err := os.ReadFile(b.file)
	if err != nil {
		return nil, err
	}
	fault, spared := kind(content), rand.IntN(2) == 0
	if fault == answerPages && !spared {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		page := httptest.NewRecorder()
		page.Header().Set("Content-Type", "text/html")
		page.WriteHeader(pageCodes[rand.IntN(len(pageCodes))])
		_, _ = page.WriteString("<html><body>No service.</body></html>")
		return page.Result(), nil
	}
	r = r.Clone(r.Context())
	r.URL.Host, r.Host = b.servers[rand.IntN(len(b.servers))], ""
	response, err := b.next.RoundTrip(r)
	if err == nil && fault == loseCreates && r.Method == http.MethodPost && !spared {
		_ = response.Body.Close()
		return nil, io.ErrUnexpectedEOF
	}
	return response, err
}

type listingSink interface {
	events.EventSink
	events.EventLister
}

// accountingSink reports what a recorder sends and what the server acknowledges.
// Together they bound what a killed process has written.
//
// It reports what the process has added to an Event: the increases of the count from one
// version to the next that are due to its writes. A patch names its version, so nobody
// else has written in between.
type accountingSink struct {
	listingSink
	reports *reporter

	mu    sync.Mutex
	found map[string]*foundEvent // by name
}

// foundEvent is the latest version of an Event that the process has found.
type foundEvent struct {
	version  uint64
	said     content
	created  metav1.MicroTime // eventTime, if the process has tried to create it
	attempts []content        // writes after that version without an answer
	added    addition         // so far
}

// content is what the recorder recognizes its own writes by.
type content struct{ count, last int64 }

func contentOf(event *eventsv1.Event) content {
	if event.Series == nil {
		return content{1, event.EventTime.UnixMicro()}
	}
	return content{int64(event.Series.Count), event.Series.LastObservedTime.UnixMicro()}
}

func newAccountingSink(sink listingSink, reports *reporter) *accountingSink {
	return &accountingSink{listingSink: sink, reports: reports, found: make(map[string]*foundEvent)}
}

func (s *accountingSink) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	s.mu.Lock()
	s.of(event).created = event.EventTime
	s.mu.Unlock()
	return s.write(event, contentOf(event), func() (*eventsv1.Event, error) { return s.listingSink.Create(ctx, event) })
}

func (s *accountingSink) Patch(ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
	var patch eventsv1.Event
	if err := json.Unmarshal(data, &patch); err != nil {
		return nil, err
	}
	do := func() (*eventsv1.Event, error) { return s.listingSink.Patch(ctx, event, data) }
	if patch.Series != nil {
		return s.write(event, contentOf(&patch), do)
	}
	answer, err := answered(s, do)
	if err == nil {
		s.look(answer)
	}
	return answer, err
}

func (s *accountingSink) List(ctx context.Context, namespace string, opts metav1.ListOptions) (*eventsv1.EventList, error) {
	list, err := answered(s, func() (*eventsv1.EventList, error) { return s.listingSink.List(ctx, namespace, opts) })
	if err == nil {
		for i := range list.Items {
			s.look(&list.Items[i])
		}
	}
	return list, err
}

// answered reports the end of a request. A conflict is no failure.
func answered[T any](s *accountingSink, do func() (T, error)) (T, error) {
	began := time.Now()
	result, err := do()
	failed := err != nil && !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err)
	s.reports.write(report{Answered: &answer{time.Since(began), failed}})
	return result, err
}

func (s *accountingSink) write(event *eventsv1.Event, says content, do func() (*eventsv1.Event, error)) (*eventsv1.Event, error) {
	s.mu.Lock()
	f := s.of(event)
	f.attempts = append(f.attempts, says)
	sent := f.added.Acked + f.added.Twice + says.count - f.said.count
	s.report(event, f, addition{Sent: max(0, sent-f.added.Sent)})
	s.mu.Unlock()
	answer, err := answered(s, do)
	var status apierrors.APIStatus
	switch {
	case err == nil:
		s.look(answer)
	case errors.As(err, &status) && status.Status().Code < 500 && !apierrors.IsUnexpectedServerError(err):
		// The server has not executed the request.
		s.mu.Lock()
		if i := slices.Index(f.attempts, says); i >= 0 { // an earlier one may have been executed
			f.attempts = slices.Delete(f.attempts, i, i+1)
		}
		s.mu.Unlock()
	}
	return answer, err
}

// report reports what is new. The caller holds the lock.
func (s *accountingSink) report(event *eventsv1.Event, f *foundEvent, a addition) {
	if a == (addition{}) {
		return
	}
	f.added.Sent += a.Sent
	f.added.Acked += a.Acked
	f.added.Twice += a.Twice
	var ok bool
	if _, a.Key, ok = parseSubject(event.Regarding.Name); !ok {
		a.Key = -1
	}
	a.Event = event.Name
	s.reports.write(report{Added: &a})
}

// look accounts for the increase of the count since the latest known version.
func (s *accountingSink) look(event *eventsv1.Event) {
	version, err := strconv.ParseUint(event.ResourceVersion, 10, 64)
	if err != nil {
		s.reports.write(report{Failed: err.Error()})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.of(event)
	if version <= f.version {
		return
	}
	says := contentOf(event)
	var applied []int64 // what the process may have added
	for _, a := range f.attempts {
		if a.count > f.said.count && a.count <= says.count {
			applied = append(applied, a.count-f.said.count)
		}
	}
	switch {
	case slices.Contains(f.attempts, says):
		s.report(event, f, addition{Acked: says.count - f.said.count})
	case len(applied) == 0:
	case f.version > 0:
		// Others have written, after an attempt or not.
		s.report(event, f, addition{Twice: slices.Max(applied)})
	case f.created.Equal(&event.EventTime):
		// Others have written after one of several creates.
		s.report(event, f, addition{Acked: slices.Min(applied), Twice: slices.Max(applied) - slices.Min(applied)})
	}
	// A patch fails if it names an earlier version.
	f.version, f.said, f.attempts = version, says, nil
}

// of returns what is known about an Event. The caller holds the lock.
func (s *accountingSink) of(event *eventsv1.Event) *foundEvent {
	f := s.found[event.Name]
	if f == nil {
		f = &foundEvent{}
		s.found[event.Name] = f
	}
	return f
}
