package apigroup

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
)

// group is a Group that responds to all requests in the same way.
type group func(verb string) (*eventsv1.Event, error)

func (g group) Create(context.Context, *eventsv1.Event) (*eventsv1.Event, error) { return g("create") }
func (g group) Update(context.Context, *eventsv1.Event) (*eventsv1.Event, error) { return g("update") }
func (g group) Patch(context.Context, *eventsv1.Event, []byte) (*eventsv1.Event, error) {
	return g("patch")
}

func (g group) List(context.Context, string, metav1.ListOptions) (*eventsv1.EventList, error) {
	event, err := g("list")
	if err != nil {
		return nil, err
	}
	return &eventsv1.EventList{Items: []eventsv1.Event{*event}}, nil
}

// pair is a Fallback with two groups that respond with an Event or an error.
type pair struct {
	*Fallback
	events, core       *eventsv1.Event
	eventsErr, coreErr error
	calls, log         []string
}

func newPair() *pair {
	p := &pair{events: newSeries(), core: fromStored(toStored(newSeries()))}
	respond := func(name string, event **eventsv1.Event, err *error) Group {
		return group(func(string) (*eventsv1.Event, error) {
			p.calls = append(p.calls, name)
			if *err != nil {
				return nil, *err
			}
			return *event, nil
		})
	}
	p.Fallback = &Fallback{Events: respond("events", &p.events, &p.eventsErr), Core: respond("core", &p.core, &p.coreErr)}
	return p
}

// call makes a request in a namespace, and returns which groups received it.
func (p *pair) call(t *testing.T, verb, namespace string) (calls string, err error) {
	t.Helper()
	ctx := klog.NewContext(t.Context(), funcr.New(func(_, args string) { p.log = append(p.log, args) }, funcr.Options{}))
	event := newSeries()
	event.Namespace = namespace
	p.calls = nil
	var got any
	switch verb {
	case "create":
		got, err = p.Create(ctx, event)
	case "update":
		got, err = p.Update(ctx, event)
	case "patch":
		got, err = p.Patch(ctx, event, []byte("{}"))
	case "list":
		got, err = p.List(ctx, namespace, metav1.ListOptions{})
	}
	if err == nil {
		require.NotNil(t, got)
	} else {
		require.Nil(t, got)
	}
	return strings.Join(p.calls, " "), err
}

var (
	resource = schema.GroupResource{Group: "events.k8s.io", Resource: "events"}
	// errDenied is the error of RBAC.
	errDenied = apierrors.NewForbidden(resource, "", errors.New(`User "x" cannot create resource "events"`)) //nolint:staticcheck // the text of RBAC
	// errUnserved is the error for the page "404 page not found".
	errUnserved = apierrors.NewGenericServerResponse(404, "post", resource, "x", "404 page not found", 0, true)
)

// answers are responses of a server by what they say about the API group.
var answers = map[answer]map[string]error{
	permitted: {
		"success":               nil,
		"Event exists":          apierrors.NewAlreadyExists(resource, "x"),
		"version is stale":      apierrors.NewConflict(resource, "x", errors.New("modified")),
		"no such Event":         apierrors.NewNotFound(resource, "x"),
		"no such namespace":     apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "ns"),
		"invalid":               apierrors.NewInvalid(schema.GroupKind{Kind: "Event"}, "x", nil),
		"bad request":           apierrors.NewBadRequest("field label not supported"),
		"namespace terminating": terminating(),
	},
	denied: {
		"denied": errDenied,
		"quota":  fmt.Errorf("wrapped: %w", apierrors.NewForbidden(resource, "x", errors.New("exceeded quota"))),
		"proxy":  apierrors.NewGenericServerResponse(403, "post", resource, "x", "RBAC: access denied", 0, true),
	},
	unserved: {
		"404 page":               errUnserved,
		"404 without an object":  apierrors.NewNotFound(resource, ""),
		"404 without any detail": &apierrors.StatusError{ErrStatus: metav1.Status{Code: 404, Reason: metav1.StatusReasonNotFound}},
	},
	unclear: {
		"invalid credentials": apierrors.NewUnauthorized("expired"),
		"push-back":           apierrors.NewTooManyRequests("busy", 1),
		"request timeout":     &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusRequestTimeout}},
		"server error":        apierrors.NewInternalError(errors.New("webhook fails")),
		"unavailable":         apierrors.NewServiceUnavailable("starting"),
		"page of a proxy":     apierrors.NewGenericServerResponse(400, "post", resource, "x", "<html>", 0, true),
		"no status code":      &apierrors.StatusError{},
		"no connection":       errors.New("connection refused"),
	},
}

func terminating() error {
	err := apierrors.NewForbidden(resource, "x", errors.New("namespace is being terminated"))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	return err
}

// TestFallback makes each request with each pair of answers, through a Fallback that begins
// with either group.
func TestFallback(t *testing.T) {
	const first, second = 1, 2 // whose result the caller gets
	decide := func(one, two answer) (sent, result int, moves bool) {
		switch {
		case one != denied && one != unserved:
			return 1, first, false
		case two == permitted:
			return 2, second, true
		case two == unclear:
			return 2, second, false
		default: // the server permits neither, and no role changes that for a group that is not served
			return 2, 0, one == unserved && two == denied
		}
	}
	try := func(t *testing.T, verb string, newer bool, one, two answer, oneErr, twoErr error, name string) {
		t.Helper()
		p, order := newPair(), []string{"core", "events"}
		firstErr, secondErr := &p.coreErr, &p.eventsErr
		if newer {
			p.coreErr = errDenied
			_, err := p.call(t, verb, "ns")
			require.NoError(t, err)
			order, firstErr, secondErr = []string{"events", "core"}, secondErr, firstErr
		}
		*firstErr, *secondErr = oneErr, twoErr
		sent, result, moves := decide(one, two)
		calls, err := p.call(t, verb, "ns")
		require.Equal(t, strings.Join(order[:sent], " "), calls, name)
		want := map[int]error{first: oneErr, second: twoErr}[result]
		if result == 0 {
			want = p.coreErr
			if answerOf(p.coreErr) == unserved && answerOf(p.eventsErr) == denied {
				want = p.eventsErr
			}
		}
		require.Equal(t, want, err, name)

		p.eventsErr, p.coreErr = nil, nil
		calls, err = p.call(t, verb, "ns")
		require.NoError(t, err, name)
		require.Equal(t, moves, calls == order[1], name)
	}
	for _, verb := range []string{"create", "update", "patch", "list"} {
		for _, newer := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, begins with events.k8s.io %t", verb, newer), func(t *testing.T) {
				for one, oneErrs := range answers {
					for oneName, oneErr := range oneErrs {
						for two, twoErrs := range answers {
							for twoName, twoErr := range twoErrs {
								try(t, verb, newer, one, two, oneErr, twoErr, oneName+", then "+twoName)
							}
						}
					}
				}
			})
		}
	}
}

// A role permits verbs one by one, in each namespace. Those that create and patch Events go to the
// same group.
func TestFallbackChoosesForEachVerbAndNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair()
		request := func(verb, namespace string, coreErr, eventsErr error, want string) {
			t.Helper()
			p.eventsErr, p.coreErr = eventsErr, coreErr
			calls, err := p.call(t, verb, namespace)
			require.NoError(t, err)
			assert.Equal(t, want, calls)
		}
		request("list", "a", errDenied, nil, "core events")
		request("create", "a", nil, nil, "core")
		request("patch", "a", errDenied, nil, "core events")
		request("create", "a", nil, nil, "events")
		request("create", "b", errDenied, nil, "core events")
		request("patch", "b", nil, nil, "events")
		request("list", "b", nil, nil, "core")
		request("patch", "b", nil, errDenied, "events core")
		request("create", "b", nil, nil, "core")
		request("update", "c", nil, nil, "core")

		// A rule may have been added.
		time.Sleep(retryCore)
		request("create", "a", errDenied, nil, "core events")
		request("patch", "a", nil, nil, "events")
		time.Sleep(retryCore)
		request("patch", "a", nil, nil, "core")
		request("create", "a", nil, nil, "core")
	})
}

// What both groups have denied a moment ago, one request asks the group with which it begins, for as long as a
// denied series waits: 1 second, doubling to 5 minutes. A permission in either group ends that.
func TestFallbackAsksBothGroupsOnce(t *testing.T) {
	for name, tt := range map[string]struct {
		coreErr, eventsErr error
		newer              bool // the requests begin with events.k8s.io/v1
		alone              string
	}{
		"core denies first":     {errDenied, errDenied, false, "core"},
		"events denies first":   {errDenied, errDenied, true, "events"},
		"core is not served":    {errUnserved, errDenied, false, "events"},
		"events is not served":  {errDenied, errUnserved, true, "core"},
		"nothing is served":     {errUnserved, errUnserved, false, "core"},
		"a quota, then a proxy": {answers[denied]["quota"], answers[denied]["proxy"], false, "core"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPair()
				if tt.newer {
					p.coreErr = errDenied
					_, err := p.call(t, "create", "ns")
					require.NoError(t, err)
				}
				p.coreErr, p.eventsErr = tt.coreErr, tt.eventsErr
				both := 0
				for range 18_000 { // ten new series a second for half an hour
					calls, err := p.call(t, "create", "ns")
					require.Error(t, err)
					if strings.Contains(calls, " ") {
						both++
					} else {
						require.Equal(t, tt.alone, calls)
					}
					time.Sleep(100 * time.Millisecond)
				}
				assert.InDelta(t, 10+4, both, 1, "1 s to 5 min, and every 5 minutes")
				calls, _ := p.call(t, "patch", "ns")
				assert.Len(t, strings.Fields(calls), 2, "another verb")
				calls, _ = p.call(t, "create", "other")
				assert.Len(t, strings.Fields(calls), 2, "another namespace")

				for _, permitted := range []*error{&p.coreErr, &p.eventsErr} {
					p.coreErr, p.eventsErr = errDenied, errDenied
					_, _ = p.call(t, "create", "ns")
					*permitted = nil
					permittedAt := time.Now()
					for {
						if _, err := p.call(t, "create", "ns"); err == nil {
							break
						}
						time.Sleep(time.Second)
					}
					assert.LessOrEqual(t, time.Since(permittedAt), 5*time.Minute)
					p.coreErr, p.eventsErr = errDenied, errDenied
					calls, _ = p.call(t, "create", "ns")
					assert.Len(t, strings.Fields(calls), 2, "the denial is a new one")
					time.Sleep(time.Second)
					calls, _ = p.call(t, "create", "ns")
					assert.Len(t, strings.Fields(calls), 2, "and is remembered for a second")
				}
			})
		})
	}
}

// There is one line for each rule that the role lacks, whatever the number of namespaces.
func TestFallbackLogsOnce(t *testing.T) {
	p := newPair()
	requests := func(eventsErr, coreErr error) {
		p.eventsErr, p.coreErr = eventsErr, coreErr
		for i := range 10 {
			for _, verb := range []string{"create", "patch", "list"} {
				_, _ = p.call(t, verb, fmt.Sprintf("ns-%d", i))
			}
		}
	}
	requests(nil, nil)
	requests(errDenied, errDenied)
	assert.Empty(t, p.log)
	for range 2 {
		requests(nil, errDenied)
		requests(errDenied, nil)
	}
	require.Len(t, p.log, 1, "the recorder does not need list")
	assert.Contains(t, p.log[0], `because core/v1 is denied. To change that, grant the verbs" "verbs"="create,patch" `+
		`"resource"="events" "namespace"="ns-0" "err"="events.events.k8s.io is forbidden: `)

	p = newPair()
	requests(nil, errUnserved)
	requests(errUnserved, nil)
	require.Len(t, p.log, 1)
	assert.Contains(t, p.log[0], "does not serve core/v1")
}

func TestFallbackRemembersALimitedNumberOfNamespaces(t *testing.T) {
	p := newPair()
	p.coreErr = errDenied
	for i := range maxNamespaces + 5 {
		_, err := p.call(t, "create", fmt.Sprintf("ns-%d", i))
		require.NoError(t, err)
		isNewer, _ := p.recall(create, fmt.Sprintf("ns-%d", i))
		require.True(t, isNewer)
	}
	assert.Len(t, p.newer, maxNamespaces)
}

// Permissions change while requests are in flight.
func TestFallbackIsSafeForConcurrentUse(t *testing.T) {
	var mu sync.Mutex
	denies, requests, created := 0, 0, [2]int{}
	newGroup := func(i int) Group {
		return group(func(string) (*eventsv1.Event, error) {
			mu.Lock()
			defer mu.Unlock()
			if requests++; requests%50 == 0 {
				denies = 1 - denies
			}
			if denies == i {
				return nil, errDenied
			}
			created[i]++
			return newSeries(), nil
		})
	}
	f := &Fallback{Events: newGroup(0), Core: newGroup(1)}
	var workers sync.WaitGroup
	var failed atomic.Int32
	for range 8 {
		workers.Go(func() {
			for i := range 500 {
				event := newSeries()
				event.Namespace = fmt.Sprintf("ns-%d", i%7)
				if _, err := f.Create(t.Context(), event); err != nil {
					failed.Add(1)
				}
			}
		})
	}
	workers.Wait()
	assert.Equal(t, 8*500, created[0]+created[1]+int(failed.Load()))
	assert.Positive(t, created[0])
	assert.Positive(t, created[1])
}

func TestFallbackRequiresBothGroups(t *testing.T) {
	for _, f := range []*Fallback{nil, {}, {Events: &CoreSink{}}, {Core: &CoreSink{}}} {
		_, create := f.Create(t.Context(), newSeries())
		_, update := f.Update(t.Context(), newSeries())
		_, patch := f.Patch(t.Context(), newSeries(), []byte("{}"))
		_, list := f.List(t.Context(), "", metav1.ListOptions{})
		for _, err := range []error{create, update, patch, list} {
			require.ErrorIs(t, err, errNoGroup)
		}
	}
	_, err := (&Fallback{Events: &CoreSink{}, Core: &CoreSink{}}).Create(t.Context(), nil)
	require.Error(t, err)
}

func TestFallbackAllocatesNothing(t *testing.T) {
	p := newPair()
	p.coreErr = errDenied
	_, err := p.call(t, "create", "ns")
	require.NoError(t, err)
	p.Events = group(func(string) (*eventsv1.Event, error) { return p.events, nil })
	ctx, event := t.Context(), p.events
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		_, _ = p.Create(ctx, event)
		_, _ = p.Patch(ctx, event, nil)
	}))
}
