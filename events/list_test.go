package events

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	typedeventsv1 "k8s.io/client-go/kubernetes/typed/events/v1"

	"github.com/eventseries/eventseries/internal/eventclient/eventclienttest"
	"github.com/eventseries/eventseries/internal/schedule"
	"github.com/eventseries/eventseries/series"
)

// pages is an API server that lists Events in two pages, as protobuf if it can and the client
// accepts it.
type pages struct {
	json   bool // it cannot
	broken int  // how often the second page breaks off before its end

	mu     sync.Mutex
	events []eventsv1.Event
	limits []string // of the requests
}

// RoundTrip implements [http.RoundTripper].
func (p *pages) RoundTrip(r *http.Request) (*http.Response, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	response := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: r}
	mediaType := runtime.ContentTypeJSON
	var object runtime.Object
	if r.Method == http.MethodGet {
		query := r.URL.Query()
		p.limits = append(p.limits, query.Get("limit"))
		half := len(p.events) / 2
		list := &eventsv1.EventList{Items: p.events[:half]}
		list.Continue = "more"
		if query.Get("continue") != "" {
			list.Continue, list.Items = "", p.events[half:]
		}
		if strings.Contains(r.Header.Get("Accept"), runtime.ContentTypeProtobuf) && !p.json {
			mediaType = runtime.ContentTypeProtobuf
		}
		object = list
	} else { // the recorder has an event of its own
		response.StatusCode = http.StatusUnprocessableEntity
		object = &apierrors.NewInvalid(eventsv1.SchemeGroupVersion.WithKind("Event").GroupKind(), "x", nil).ErrStatus
	}
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), mediaType)
	var body strings.Builder
	if err := scheme.Codecs.EncoderForVersion(info.Serializer, eventsv1.SchemeGroupVersion).Encode(object, &body); err != nil {
		return nil, err
	}
	n := body.Len()
	if list, ok := object.(*eventsv1.EventList); ok && list.Continue == "" && p.broken > 0 {
		p.broken--
		n /= 2
	}
	response.Header.Set("Content-Type", mediaType)
	response.Body = io.NopCloser(io.MultiReader(strings.NewReader(body.String()[:n]), truncated{n < body.Len()}))
	return response, nil
}

// truncated ends a body, or fails.
type truncated struct{ bool }

func (t truncated) Read([]byte) (int, error) {
	if t.bool {
		return 0, io.ErrUnexpectedEOF
	}
	return 0, io.EOF
}

// wrapper is a sink of a user that hides some Events.
type wrapper struct {
	*EventSinkImpl
	listed int
}

func (w *wrapper) List(ctx context.Context, namespace string, opts metav1.ListOptions) (*eventsv1.EventList, error) {
	page, err := w.EventSinkImpl.List(ctx, namespace, opts)
	if err == nil {
		w.listed += len(page.Items)
		page.Items = page.Items[:1]
	}
	return page, err
}

func TestList(t *testing.T) {
	for name, test := range map[string]struct {
		server   *pages
		wrap     bool
		restored int
		limits   []string
	}{
		"protobuf":               {server: &pages{}, restored: 4, limits: []string{"500", "500"}},
		"a server without it":    {server: &pages{json: true}, restored: 4, limits: []string{"500", "500"}},
		"a page that breaks off": {server: &pages{broken: 2}, restored: 4, limits: []string{"500", "500", "500", "500"}},
		"a sink that wraps ours": {server: &pages{}, wrap: true, restored: 2, limits: []string{"500", "500"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := test.server
				now := time.Now()
				for i := range 4 {
					s := series.Series{
						Key: series.Key{
							Regarding: series.Reference{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: fmt.Sprint("pod-", i)},
							Type:      "Warning", Action: "Start", Reason: "BackOff", ReportingController: "example.com/x",
						},
						State: series.Ongoing, Instance: "x-1", Namespace: "shop", Version: "7", Note: "n", First: now.Add(-time.Minute), Last: now, Count: 3,
					}
					s.Name = s.Key.Name(0)
					server.events = append(server.events, *s.Event())
				}
				client, err := typedeventsv1.NewForConfigAndClient(eventclienttest.Config(), &http.Client{Transport: server})
				require.NoError(t, err)
				impl := &EventSinkImpl{Interface: client}
				wrapped := &wrapper{EventSinkImpl: impl}
				var sink EventSink = impl
				if test.wrap {
					sink = wrapped
				}
				b := newBroadcaster(sink, Options{Scope: SameController, listLimit: math.MaxInt})
				recorder := b.NewRecorder(scheme.Scheme, "example.com/x")
				require.NoError(t, b.StartRecordingToSinkWithContext(t.Context()))
				recorder.Eventf(&server.events[0].Regarding, nil, "Normal", "Other", "Other", "own")
				time.Sleep(time.Minute)
				synctest.Wait()
				assert.EqualValues(t, test.restored, b.Stats().Restored)
				assert.Equal(t, test.limits, server.limits)
				assert.Equal(t, test.wrap, wrapped.listed == 4)
				b.Shutdown()
			})
		})
	}
}

// Some requests of a list fail.
func TestListThatFails(t *testing.T) {
	for name, test := range map[string]struct {
		left     int               // series on the server, in pages of two
		fail     func(n int) int32 // the code of the response to the nth request, or 0
		within   time.Duration
		restored int
		requests int // if zero, some are repeated
	}{
		"the token of a page is refused, which ends the list": {5, func(n int) int32 { return []int32{0, 400}[min(n-1, 1)] }, 10 * time.Minute, 2, 2},
		"the token of a page expires, which ends the list":    {5, func(n int) int32 { return []int32{0, 410}[min(n-1, 1)] }, 10 * time.Minute, 2, 2},
		"each third of many": {60, func(n int) int32 { return []int32{500, 0, 0}[n%3] }, time.Minute, 60, 0},
		"a server that starts denies requests until it knows the roles": {2, func(n int) int32 {
			switch {
			case n < 8:
				return 500
			case n == 8:
				return 403
			}
			return 0
		}, 10 * time.Minute, 2, 0},
	} {
		runBubble(t, name, func(t *testing.T) {
			s := newLister()
			leave(t, s.server, s, test.left, Options{Scope: SameController})
			s.script(func(_ context.Context, r request) error {
				if r.Verb != "list" {
					return nil
				}
				if code := test.fail(s.requestsOf("list")); code != 0 {
					return statusError(code, 0)
				}
				return nil
			})
			second := startOn(t, s.server, s, Options{Scope: SameController, listLimit: math.MaxInt})
			time.Sleep(test.within)
			assert.EqualValues(t, test.restored, second.broadcaster.Stats().Restored)
			if test.requests > 0 {
				assert.Equal(t, test.requests, s.requestsOf("list"))
			}
		})
	}
}

// sameToken is a lister each of whose pages has the same token.
type sameToken struct{ lister }

func (l sameToken) List(ctx context.Context, namespace string, opts metav1.ListOptions) (*eventsv1.EventList, error) {
	opts.Continue = ""
	list, err := l.lister.List(ctx, namespace, opts)
	list.Continue = "again"
	return list, err
}

func TestListWithTheSameTokenForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLister()
		leave(t, s.server, s, 4, Options{Scope: SameController})
		startOn(t, s.server, sameToken{s}, Options{Scope: SameController, listLimit: math.MaxInt})
		time.Sleep(time.Hour)
		assert.Equal(t, 2, s.requestsOf("list"))
	})
}

// The recorders of a program for many nodes share a list, and no goroutine is theirs.
func TestManyInstancesOfOneController(t *testing.T) {
	const instances = 2000
	synctest.Test(t, func(t *testing.T) {
		s := newLister()
		for _, instance := range []string{"node-1", "node-2", "stranger"} {
			leave(t, s.server, s, 1, Options{ReportingInstance: instance})
		}
		b := newBroadcaster(s, Options{QPS: -1, listLimit: math.MaxInt})
		require.NoError(t, b.StartRecordingToSinkWithContext(t.Context()))
		synctest.Wait()
		atRest := goroutines(t)
		recorders := make([]EventRecorder, instances)
		for i := range recorders {
			recorders[i] = b.NewRecorderWithOptions(testScheme(), controller, RecorderOptions{ReportingInstance: fmt.Sprint("node-", i)})
		}
		for i, recorder := range recorders {
			recorder.Eventf(testPod(1+i), nil, "Normal", "Tested", "Testing", "note")
			if i == 0 {
				synctest.Wait() // for the list
			}
		}
		synctest.Wait()
		assert.LessOrEqual(t, goroutines(t), atRest)
		assert.Equal(t, 2, s.requestsOf("list"), "two pages")
		assert.EqualValues(t, 2, b.Stats().Restored, "those of node-1 and node-2")
		b.Shutdown()
		assert.Len(t, s.list(), 3+instances)
	})
}

// A program that creates recorders for ever, each with an instance of its own, needs no
// more memory for them. A list finds what the latest ones have left.
func TestEndlessInstances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLister()
		leave(t, s.server, s, 1, Options{ReportingInstance: "run-29999"})
		b, scheme := newBroadcaster(s, Options{listLimit: math.MaxInt}), testScheme()
		for i := range 30_000 {
			b.NewRecorderWithOptions(scheme, controller, RecorderOptions{ReportingInstance: fmt.Sprint("run-", i)})
		}
		assert.LessOrEqual(t, b.lists.identities.Len(), schedule.MaxRemembered)
		require.NoError(t, b.StartRecordingToSinkWithContext(t.Context()))
		b.NewRecorder(scheme, controller).Eventf(testPod(1), nil, "Normal", "Tested", "Testing", "note")
		synctest.Wait()
		assert.EqualValues(t, 1, b.Stats().Restored)
		b.Shutdown()
	})
}

// listedWithin is when a list has been made in the scope SameInstance.
const listedWithin = 30*time.Minute + time.Second

// pager is a server that lists as sinks of users may.
type pager struct {
	*server
	limit  int64 // of a page; if zero, there are no pages
	silent bool  // it does not say how many Events remain
}

func (p pager) List(ctx context.Context, namespace string, opts metav1.ListOptions) (*eventsv1.EventList, error) {
	opts.Limit = p.limit
	list, err := p.api.List(ctx, namespace, opts)
	if err == nil && p.silent {
		list.RemainingItemCount = nil
	}
	return list, err
}

// A process lists if the server has few Events. It counts those of all controllers.
// Otherwise, readers take what is left for Unknown.
func TestListLimit(t *testing.T) {
	const own, others = 3, 20
	few, many := Options{listLimit: others + own}, Options{listLimit: others + own - 1}
	oneNamespace, twoNamespaces := many, many
	oneNamespace.Namespaces, twoNamespaces.Namespaces = []string{"ns"}, []string{"ns", "other"}
	twoNamespaces.listLimit = others - 1
	leader, busyLeader := few, many
	leader.Scope, busyLeader.Scope = SameController, SameController
	for name, test := range map[string]struct {
		opts     Options
		sink     pager
		requests int // lists, and questions
		large    int // the number of lists that are not made
	}{
		"few":                        {opts: few, sink: pager{limit: 2}, requests: 1 + 2},
		"many":                       {opts: many, sink: pager{limit: 2}, requests: 1, large: 1},
		"many, and no limit":         {opts: Options{listLimit: math.MaxInt}, sink: pager{limit: 2}, requests: 2},
		"few in the namespace":       {opts: oneNamespace, sink: pager{limit: 2}, requests: 1 + 2},
		"few in one namespace":       {opts: twoNamespaces, sink: pager{limit: 2}, requests: 1 + 2 + 1, large: 1},
		"few, without pages":         {opts: few, requests: 1 + 1},
		"many, without pages":        {opts: many, requests: 1, large: 1},
		"a sink that does not count": {opts: few, sink: pager{limit: 2, silent: true}, requests: 1, large: 1},
		"one process, few":           {opts: leader, sink: pager{limit: 2}, requests: 1 + 2},
		"one process, many":          {opts: busyLeader, sink: pager{limit: 2}, requests: 1, large: 1},
	} {
		runBubble(t, name, func(t *testing.T) {
			s := newServer()
			for i := range others {
				s.put(&eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: fmt.Sprint("x-", i)}})
			}
			leave(t, s, s, own, Options{Scope: test.opts.Scope})
			test.sink.server = s
			second := startOn(t, s, test.sink, test.opts)
			second.list()
			time.Sleep(listedWithin + finishAfter + time.Second)
			synctest.Wait()
			assert.Equal(t, test.requests, s.requestsOf("list"))
			assert.Len(t, second.logs.with("Not listing events"), test.large)
			want := series.Finished
			if second.broadcaster.Stats().Restored == 0 {
				want = series.Ongoing
			}
			assert.Equal(t, test.large > 0 && len(test.opts.Namespaces) < 2, want == series.Ongoing)
			for _, event := range s.list() {
				if event.Namespace == "ns" {
					assert.Equal(t, want.String(), stateOf(event))
					assert.NotEqual(t, series.Ongoing, series.StateAt(event, event.Series.LastObservedTime.Add(36*time.Minute+series.ClockSkew+time.Second)))
				}
			}
		})
	}
}

// A list comes late. What has happened by then counts once.
func TestListThatComesLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLister()
		leave(t, s.server, s, 3, Options{})
		second := startOn(t, s.server, s, Options{listLimit: 3})
		for range 40 * 60 {
			second.emit(0) // found by its name
			time.Sleep(time.Second)
		}
		second.flush(t)
		stats := second.broadcaster.Stats()
		assert.EqualValues(t, []uint64{1, 2}, []uint64{stats.Adopted, stats.Restored})
		assert.ElementsMatch(t, []string{"Ongoing x2402", "Finished x2", "Finished x2"}, statesOf(t, second))
		s.assertNoProblems(t)
	})
}
