package coreevents

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	restclient "k8s.io/client-go/rest"
)

// transport answers requests without a network.
type transport struct {
	answer   func(*http.Request) (code int, body string)
	requests []string
}

func (tr *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		body, _ = io.ReadAll(req.Body)
	}
	tr.requests = append(tr.requests, strings.TrimSpace(req.Method+" "+req.URL.RequestURI()+" "+req.Header.Get("Content-Type")+" "+string(body)))
	code, answer := tr.answer(req)
	header := http.Header{"Content-Type": {"application/json"}}
	return &http.Response{StatusCode: code, Header: header, Body: io.NopCloser(strings.NewReader(answer)), Request: req}, nil
}

// newSink returns a sink whose requests go to tr.
func newSink(t *testing.T, tr *transport) *Sink {
	t.Helper()
	// The client's own limit would hold up the second request for hours.
	config := &restclient.Config{Host: "http://server", QPS: 0.0001, Burst: 1}
	client, err := typedcorev1.NewForConfigAndClient(config, &http.Client{Transport: tr})
	require.NoError(t, err)
	return &Sink{Interface: client}
}

func TestSinkRequests(t *testing.T) {
	const stored = `{"apiVersion":"v1","kind":"Event","metadata":{"namespace":"ns","name":"x","resourceVersion":"7"},"message":"m","count":57}`
	tr := &transport{answer: func(*http.Request) (int, string) { return 200, stored }}
	sink := newSink(t, tr)
	for _, call := range []func() (*eventsv1.Event, error){
		func() (*eventsv1.Event, error) { return sink.Create(t.Context(), aSeries()) },
		func() (*eventsv1.Event, error) { return sink.Update(t.Context(), aSeries()) },
		func() (*eventsv1.Event, error) {
			return sink.Patch(t.Context(), aSeries(), []byte(`{"series":{"count":57}}`))
		},
		func() (*eventsv1.Event, error) { return sink.Patch(t.Context(), aSeries(), []byte(`{}`)) },
	} {
		event, err := call()
		require.NoError(t, err)
		assert.Equal(t, "7", event.ResourceVersion)
		assert.Equal(t, "m", event.Note)
		assert.EqualValues(t, 57, event.DeprecatedCount)
	}
	require.Len(t, tr.requests, 4)
	assert.Regexp(t, `^POST /api/v1/namespaces/ns/events application/json \{.*"lastTimestamp":"2026-01-02T03:05:45Z"`, tr.requests[0])
	assert.Regexp(t, `^PUT /api/v1/namespaces/ns/events/x application/json \{.*"count":57`, tr.requests[1])
	assert.Regexp(t, `^PATCH /api/v1/namespaces/ns/events/x application/merge-patch\+json \{"count":57,`, tr.requests[2])
	assert.Equal(t, `PATCH /api/v1/namespaces/ns/events/x application/merge-patch+json {}`, tr.requests[3])
}

func TestSinkLists(t *testing.T) {
	opts := metav1.ListOptions{FieldSelector: "reportingController=example.com/x,type=Normal", Limit: 500, Continue: "next"}
	const page = `{"apiVersion":"v1","kind":"EventList","metadata":{"continue":"more"},"items":[
		{"metadata":{"name":"ours"},"message":"m","reportingComponent":"example.com/x"},
		{"metadata":{"name":"another's"},"reportingComponent":"example.com/y"},
		{"metadata":{"name":"nobody's"}}]}`
	requireOurs := func(t *testing.T, list *eventsv1.EventList, err error) {
		t.Helper()
		require.NoError(t, err)
		assert.Equal(t, "more", list.Continue)
		require.Len(t, list.Items, 1)
		assert.Equal(t, "ours", list.Items[0].Name)
		assert.Equal(t, "m", list.Items[0].Note)
	}
	t.Run("a server of today", func(t *testing.T) {
		tr := &transport{answer: func(*http.Request) (int, string) { return 200, page }}
		list, err := newSink(t, tr).List(t.Context(), "ns", opts)
		requireOurs(t, list, err)
		require.Equal(t, []string{
			"GET /api/v1/namespaces/ns/events?continue=next&fieldSelector=reportingComponent%3Dexample.com%2Fx%2Ctype%3DNormal&limit=500",
		}, tr.requests)
	})
	t.Run("a server that cannot select by it", func(t *testing.T) {
		tr := &transport{answer: func(r *http.Request) (int, string) {
			if strings.Contains(r.URL.Query().Get("fieldSelector"), "reportingComponent") {
				return 400, `{"apiVersion":"v1","kind":"Status","status":"Failure","code":400,"reason":"BadRequest","message":"field label not supported: reportingComponent"}`
			}
			return 200, page
		}}
		list, err := newSink(t, tr).List(t.Context(), "", opts)
		requireOurs(t, list, err)
		require.Len(t, tr.requests, 2)
		assert.Equal(t, "GET /api/v1/events?continue=next&fieldSelector=type%3DNormal&limit=500", tr.requests[1])
	})
	t.Run("a server that refuses", func(t *testing.T) {
		for code, requests := range map[int]int{400: 2, 403: 1, 410: 1, 429: 1, 500: 1} {
			tr := &transport{answer: func(*http.Request) (int, string) { return code, "" }}
			_, err := newSink(t, tr).List(t.Context(), "", opts)
			var status apierrors.APIStatus
			require.ErrorAs(t, err, &status)
			assert.EqualValues(t, code, status.Status().Code)
			assert.Len(t, tr.requests, requests)
		}
	})
	t.Run("a selector that cannot be", func(t *testing.T) {
		_, err := newSink(t, &transport{}).List(t.Context(), "", metav1.ListOptions{FieldSelector: "a>b"})
		require.ErrorContains(t, err, `"a>b"`)
	})
}

// What is no answer of an API server is no success.
func TestSinkAndStrangeAnswers(t *testing.T) {
	for name, body := range map[string]string{
		"empty":           "",
		"no JSON":         "<html>login</html>",
		"another object":  `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"}}`,
		"the other group": `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"x"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			sink := newSink(t, &transport{answer: func(*http.Request) (int, string) { return 200, body }})
			_, create := sink.Create(t.Context(), aSeries())
			_, patch := sink.Patch(t.Context(), aSeries(), []byte(`{}`))
			_, update := sink.Update(t.Context(), aSeries())
			_, list := sink.List(t.Context(), "ns", metav1.ListOptions{})
			for _, err := range []error{create, patch, update, list} {
				require.Error(t, err)
			}
		})
	}
}

func TestSinkThatCannotBeUsed(t *testing.T) {
	var none *Sink
	fine := &Sink{Interface: fake.NewClientset().CoreV1()}
	for _, tt := range []struct {
		sink  *Sink
		event *eventsv1.Event
		want  string
	}{
		{none, aSeries(), "no Interface"},
		{&Sink{}, aSeries(), "no Interface"},
		{fine, nil, "nil event"},
		{fine, &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, `event "x" without a namespace`},
	} {
		_, create := tt.sink.Create(t.Context(), tt.event)
		_, patch := tt.sink.Patch(t.Context(), tt.event, nil)
		_, update := tt.sink.Update(t.Context(), tt.event)
		for _, err := range []error{create, patch, update} {
			require.ErrorContains(t, err, tt.want)
		}
	}
	for _, sink := range []*Sink{none, {}} {
		_, err := sink.List(t.Context(), "", metav1.ListOptions{})
		require.ErrorContains(t, err, "no Interface")
	}
	_, err := fine.Patch(t.Context(), aSeries(), []byte("[]"))
	require.ErrorContains(t, err, "coreevents: patch of event ns/x: no merge patch")
}

// Lists of a fake clientset are selected here.
func TestSinkListsOfAFakeClientset(t *testing.T) {
	clients := fake.NewClientset()
	sink := &Sink{Interface: clients.CoreV1()}
	for name, reporter := range map[string]string{"ours": "example.com/x", "theirs": "example.com/y"} {
		event := aSeries()
		event.Name, event.ReportingController = name, reporter
		_, err := sink.Create(t.Context(), event)
		require.NoError(t, err)
		_, err = sink.Create(t.Context(), event)
		require.True(t, apierrors.IsAlreadyExists(err), err)
		updated, err := sink.Update(t.Context(), event)
		require.NoError(t, err)
		assert.EqualValues(t, 57, updated.DeprecatedCount)
	}
	list, err := sink.List(t.Context(), "", metav1.ListOptions{FieldSelector: "reportingController=example.com/x"})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	assert.Equal(t, "ours", list.Items[0].Name)
}
