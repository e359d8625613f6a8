package record

import (
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/eventseries/eventseries/internal/eventclient/eventclienttest"
)

// legacySink records its calls and returns the Events that it receives.
type legacySink struct {
	mu               sync.Mutex
	created, patched []*corev1.Event
	patches          []string
}

func (s *legacySink) Create(event *corev1.Event) (*corev1.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.created = append(s.created, event)
	return event, nil
}

func (s *legacySink) Update(*corev1.Event) (*corev1.Event, error) { panic("not called") }

func (s *legacySink) Patch(event *corev1.Event, data []byte) (*corev1.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.patched, s.patches = append(s.patched, event), append(s.patches, string(data))
	return event, nil
}

// sinkFunc is a sink that cannot be compared.
type sinkFunc struct {
	*legacySink
	_ func()
}

// wrapper is a client of a test.
type wrapper struct{ typedcorev1.EventInterface }

func clientOf(t *testing.T, tr *eventclienttest.Transport) *typedcorev1.CoreV1Client {
	t.Helper()
	client, err := typedcorev1.NewForConfigAndClient(eventclienttest.Config(), &http.Client{Transport: tr})
	require.NoError(t, err)
	return client
}

func newEvent() *eventsv1.Event {
	return &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: "ns", Name: "x"},
		EventTime:           metav1.NowMicro(),
		ReportingController: "tester",
		ReportingInstance:   "node-1",
	}
}

// The transport fails the test if requests wait for the rate limiter of the client, or
// are made again.
func TestRESTClientIsUsedDirectly(t *testing.T) {
	tr := &eventclienttest.Transport{Body: `{"apiVersion":"v1","kind":"Event","metadata":{"namespace":"ns","name":"x","resourceVersion":"7"}}`}
	for _, namespace := range []string{"", "ns"} {
		tr.Requests = nil
		to, err := newDestination(&typedcorev1.EventSinkImpl{Interface: clientOf(t, tr).Events(namespace)})
		require.NoError(t, err)
		created, err := to.Create(t.Context(), newEvent())
		require.NoError(t, err)
		assert.Equal(t, "7", created.ResourceVersion)
		_, err = to.Patch(t.Context(), newEvent(), []byte(`{"series":{"count":2}}`))
		require.NoError(t, err)
		require.Len(t, tr.Requests, 2)
		assert.Regexp(t, `^POST /api/v1/namespaces/ns/events application/vnd.kubernetes.protobuf \{.*"source":\{"component":"tester","host":"node-1"\}`, tr.Requests[0])
		assert.Regexp(t, `^PATCH /api/v1/namespaces/ns/events/x application/merge-patch\+json \{"count":2,`, tr.Requests[1])
	}

	other, err := newDestination(&typedcorev1.EventSinkImpl{Interface: clientOf(t, tr).Events("other")})
	require.NoError(t, err)
	_, err = other.Create(t.Context(), newEvent())
	require.True(t, apierrors.IsBadRequest(err), err)
	require.ErrorContains(t, err, `cannot create event in namespace "ns": the client is for namespace "other"`)
	assert.Len(t, tr.Requests, 2, "client-go sends no request, either")

	overloaded := &eventclienttest.Transport{Code: http.StatusServiceUnavailable, Header: http.Header{"Retry-After": {"1"}}}
	to, err := newDestination(&typedcorev1.EventSinkImpl{Interface: clientOf(t, overloaded).Events("")})
	require.NoError(t, err)
	_, err = to.Create(t.Context(), newEvent())
	require.Error(t, err)
	assert.Len(t, overloaded.Requests, 1)
}

func TestNilSinks(t *testing.T) {
	for _, sink := range []EventSink{
		nil,
		(*typedcorev1.EventSinkImpl)(nil),
		&typedcorev1.EventSinkImpl{},
		&typedcorev1.EventSinkImpl{Interface: typedcorev1.New(nil).Events("")},
	} {
		_, err := newDestination(sink)
		require.ErrorIs(t, err, errNoSink)
	}
}

func TestSameDestination(t *testing.T) {
	one, two := clientOf(t, &eventclienttest.Transport{}), clientOf(t, &eventclienttest.Transport{})
	impl := func(events typedcorev1.EventInterface) EventSink {
		return &typedcorev1.EventSinkImpl{Interface: events}
	}
	clientset := fake.NewClientset()
	fakeEvents := clientset.CoreV1().Events("")
	custom, incomparable := &legacySink{}, sinkFunc{legacySink: &legacySink{}}
	for _, tt := range []struct {
		name string
		a, b EventSink
		same bool
	}{
		{"two clients of a server", impl(one.Events("")), impl(two.Events("")), true},
		{"other namespace", impl(one.Events("")), impl(one.Events("ns")), false},
		{"one fake client", impl(fakeEvents), impl(fakeEvents), true},
		{"two clients of a fake clientset", impl(fakeEvents), impl(clientset.CoreV1().Events("")), false},
		{"other namespace of a fake clientset", impl(fakeEvents), impl(clientset.CoreV1().Events("ns")), false},
		{"two fake clientsets", impl(fakeEvents), impl(fake.NewClientset().CoreV1().Events("")), false},
		{"two wrappers", impl(wrapper{fakeEvents}), impl(&wrapper{fakeEvents}), false},
		{"one custom sink", custom, custom, true},
		{"two custom sinks", custom, &legacySink{}, false},
		{"custom sink and client", custom, impl(one.Events("")), false},
		{"incomparable sinks", incomparable, incomparable, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, err := newDestination(tt.a)
			require.NoError(t, err)
			b, err := newDestination(tt.b)
			require.NoError(t, err)
			assert.Equal(t, tt.same, a.is(b))
		})
	}
}
