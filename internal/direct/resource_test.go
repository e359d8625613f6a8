package direct

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	restclient "k8s.io/client-go/rest"
)

// transport answers every request alike and keeps what it was asked.
type transport struct {
	code     int
	header   http.Header
	body     string
	requests []string
	accepted []string
}

func (tr *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		body, _ = io.ReadAll(req.Body)
	}
	tr.requests = append(tr.requests, strings.Join([]string{req.Method, req.URL.RequestURI(), req.Header.Get("Content-Type"), strings.TrimSpace(string(body))}, " "))
	tr.accepted = append(tr.accepted, req.Header.Get("Accept"))
	header := tr.header.Clone()
	if header == nil {
		header = http.Header{}
	}
	header.Set("Content-Type", "application/json")
	return &http.Response{StatusCode: tr.code, Header: header, Body: io.NopCloser(strings.NewReader(tr.body)), Request: req}, nil
}

// clientset returns clients whose requests go to tr. Their content type is
// protobuf, their own rate limit would hold up the second request for hours.
func clientset(t *testing.T, tr *transport) *kubernetes.Clientset {
	t.Helper()
	config := &restclient.Config{Host: "http://server/prefix", QPS: 0.0001, Burst: 1}
	config.ContentType = runtime.ContentTypeProtobuf
	clients, err := kubernetes.NewForConfigAndClient(config, &http.Client{Transport: tr})
	require.NoError(t, err)
	return clients
}

func coreEvents(t *testing.T, tr *transport) *Resource[*corev1.Event, *corev1.EventList] {
	t.Helper()
	return NewResource[*corev1.Event, *corev1.EventList](clientset(t, tr).CoreV1().RESTClient(), corev1.SchemeGroupVersion, "events")
}

// One is in the legacy group and the other in a named one: their paths differ.
func TestRequests(t *testing.T) {
	opts := metav1.ListOptions{FieldSelector: "type=Warning", Limit: 500, Continue: "next"}

	core := &transport{code: 200, body: `{"apiVersion":"v1","kind":"Event","metadata":{"namespace":"ns","name":"x","resourceVersion":"7"}}`}
	events := coreEvents(t, core)
	event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x"}}
	for _, call := range []func() (*corev1.Event, error){
		func() (*corev1.Event, error) { return events.Create(t.Context(), "ns", event) },
		func() (*corev1.Event, error) { return events.Update(t.Context(), "ns", "x", event) },
		func() (*corev1.Event, error) { return events.Patch(t.Context(), "ns", "x", []byte(`{"count":2}`)) },
	} {
		got, err := call()
		require.NoError(t, err)
		assert.Equal(t, "7", got.ResourceVersion)
	}
	core.body = `{"apiVersion":"v1","kind":"EventList","metadata":{"continue":"more"},"items":[{"metadata":{"name":"x"}}]}`
	list, err := events.List(t.Context(), "ns", opts)
	require.NoError(t, err)
	assert.Equal(t, "more", list.Continue)
	require.Len(t, list.Items, 1)
	require.Len(t, core.requests, 4)
	assert.Regexp(t, `^POST /prefix/api/v1/namespaces/ns/events application/json \{"kind":"Event","apiVersion":"v1",.*"name":"x"`, core.requests[0])
	assert.Regexp(t, `^PUT /prefix/api/v1/namespaces/ns/events/x application/json \{.*"name":"x"`, core.requests[1])
	assert.Equal(t, `PATCH /prefix/api/v1/namespaces/ns/events/x application/merge-patch+json {"count":2}`, core.requests[2])
	assert.Equal(t, `GET /prefix/api/v1/namespaces/ns/events?continue=next&fieldSelector=type%3DWarning&limit=500`, strings.TrimSpace(core.requests[3]))

	named := &transport{code: 200, body: `{"apiVersion":"events.k8s.io/v1","kind":"EventList","items":[]}`}
	_, err = NewResource[*eventsv1.Event, *eventsv1.EventList](clientset(t, named).EventsV1().RESTClient(), eventsv1.SchemeGroupVersion, "events").
		List(t.Context(), "", opts)
	require.NoError(t, err)
	assert.Equal(t, `GET /prefix/apis/events.k8s.io/v1/events?continue=next&fieldSelector=type%3DWarning&limit=500`, strings.TrimSpace(named.requests[0]))

	for _, accepted := range append(core.accepted, named.accepted...) {
		assert.NotContains(t, accepted, "protobuf")
	}
}

// An answer is what was asked for, or an error.
func TestAnswersOfAnotherType(t *testing.T) {
	const event, list = `{"apiVersion":"v1","kind":"Event","metadata":{"namespace":"ns","name":"x"}}`, `{"apiVersion":"v1","kind":"EventList","items":[]}`
	for name, test := range map[string]struct {
		body         string
		object, list bool // whether it is an answer to a patch, and to a list
		unexpected   bool
	}{
		"the object":     {body: event, object: true, unexpected: true},
		"a list of them": {body: list, list: true, unexpected: true},
		"success":        {body: `{"apiVersion":"v1","kind":"Status","status":"Success"}`, unexpected: true},
		"another object": {body: `{"apiVersion":"v1","kind":"Pod"}`, unexpected: true},
		"another group":  {body: `{"apiVersion":"events.k8s.io/v1","kind":"Event"}`, unexpected: true},
		"a failure":      {body: `{"apiVersion":"v1","kind":"Status","status":"Failure","code":500}`},
		"unknown kind":   {body: `{"apiVersion":"example.com/v1","kind":"Thing"}`},
		"no JSON":        {body: `<html>login</html>`},
		"empty":          {body: ``},
	} {
		t.Run(name, func(t *testing.T) {
			events := coreEvents(t, &transport{code: 200, body: test.body})
			for verb, call := range map[string]struct {
				request func() (runtime.Object, error)
				fine    bool
			}{
				"patch": {func() (runtime.Object, error) { return events.Patch(t.Context(), "ns", "x", nil) }, test.object},
				"list":  {func() (runtime.Object, error) { return events.List(t.Context(), "ns", metav1.ListOptions{}) }, test.list},
			} {
				got, err := call.request()
				if call.fine {
					require.NoError(t, err, verb)
					require.NotNil(t, got)
					continue
				}
				require.Error(t, err, verb)
				assert.Nil(t, got)
				var unexpected *apierrors.UnexpectedObjectError
				assert.Equal(t, test.unexpected, errors.As(err, &unexpected), "%s: %v", verb, err)
			}
		})
	}
}

func TestAnswersAboutAnotherObject(t *testing.T) {
	for _, metadata := range []string{`{"namespace":"ns","name":"y"}`, `{"namespace":"other","name":"x"}`, `{"name":"x"}`, `{}`} {
		events := coreEvents(t, &transport{code: 200, body: `{"apiVersion":"v1","kind":"Event","metadata":` + metadata + `}`})
		event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x"}}
		for verb, call := range map[string]func() (*corev1.Event, error){
			"create": func() (*corev1.Event, error) { return events.Create(t.Context(), "ns", event) },
			"update": func() (*corev1.Event, error) { return events.Update(t.Context(), "ns", "x", event) },
			"patch":  func() (*corev1.Event, error) { return events.Patch(t.Context(), "ns", "x", nil) },
		} {
			got, err := call()
			require.ErrorContains(t, err, "asked about events ns/x", "%s: %s", verb, metadata)
			assert.Nil(t, got)
		}
	}
}

// client-go would wait and try again, however long that takes.
func TestNothingIsTriedAgain(t *testing.T) {
	tr := &transport{code: 429, header: http.Header{"Retry-After": {time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)}}}
	events := coreEvents(t, tr)
	_, err := events.Patch(t.Context(), "ns", "x", nil)
	require.True(t, apierrors.IsTooManyRequests(err), err)
	seconds, ok := apierrors.SuggestsClientDelay(err)
	assert.True(t, ok)
	assert.InDelta(t, 3600, seconds, 60, "a date is understood")
	_, err = events.List(t.Context(), "ns", metav1.ListOptions{})
	require.True(t, apierrors.IsTooManyRequests(err), err)
	assert.Len(t, tr.requests, 2)
}

func TestNoClient(t *testing.T) {
	fakes := fake.NewClientset().CoreV1().RESTClient()
	require.True(t, fakes != nil, "a nil pointer in an interface") // which NotNil takes for nil
	for _, client := range []restclient.Interface{nil, fakes} {
		assert.Nil(t, NewResource[*corev1.Event, *corev1.EventList](client, corev1.SchemeGroupVersion, "events"))
	}
}

// stranger is a client that is not client-go's own.
type stranger struct{ restclient.Interface }

func TestAClientOfAnotherKindIsUsedAsItIs(t *testing.T) {
	tr := &transport{code: 200, body: `{"apiVersion":"v1","kind":"Event","metadata":{"namespace":"ns","name":"x"}}`}
	client := stranger{clientset(t, tr).CoreV1().RESTClient()}
	events := NewResource[*corev1.Event, *corev1.EventList](client, corev1.SchemeGroupVersion, "events")
	for range 2 { // its limit would stop the second
		event, err := events.Patch(t.Context(), "ns", "x", []byte(`{}`))
		require.NoError(t, err)
		assert.Equal(t, "x", event.Name)
	}
}
