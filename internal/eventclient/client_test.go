package eventclient

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	restclient "k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/eventseries/eventseries/internal/eventclient/eventclienttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clientset returns clients with the content type JSON that send their requests to tr.
func clientset(t *testing.T, tr *eventclienttest.Transport) *kubernetes.Clientset {
	t.Helper()
	return clientsetOf(t, tr, restclient.ContentConfig{ContentType: runtime.ContentTypeJSON})
}

func clientsetOf(t *testing.T, tr *eventclienttest.Transport, content restclient.ContentConfig) *kubernetes.Clientset {
	t.Helper()
	config := eventclienttest.Config()
	config.Host += "/prefix"
	config.ContentConfig = content
	clients, err := kubernetes.NewForConfigAndClient(config, &http.Client{Transport: tr})
	require.NoError(t, err)
	return clients
}

func coreEventsOf(client restclient.Interface) *Client[*corev1.Event, *corev1.EventList] {
	return New[*corev1.Event, *corev1.EventList](client, corev1.SchemeGroupVersion)
}

func coreEvents(t *testing.T, tr *eventclienttest.Transport) *Client[*corev1.Event, *corev1.EventList] {
	t.Helper()
	return coreEventsOf(clientset(t, tr).CoreV1().RESTClient())
}

// write calls all methods of events that write, for the Event ns/x.
func write(t *testing.T, events *Client[*corev1.Event, *corev1.EventList], check func(*corev1.Event, error)) {
	t.Helper()
	event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x"}}
	check(events.Create(t.Context(), "ns", event))
	check(events.Patch(t.Context(), "ns", "x", []byte(`{"count":2}`)))
}

// The paths of core/v1 and of named groups differ.
func TestRequests(t *testing.T) {
	opts := metav1.ListOptions{FieldSelector: "type=Warning", Limit: 500, Continue: "next"}

	core := &eventclienttest.Transport{Body: `{"apiVersion":"v1","kind":"Event","metadata":{"namespace":"ns","name":"x","resourceVersion":"7"}}`}
	events := coreEvents(t, core)
	write(t, events, func(event *corev1.Event, err error) {
		require.NoError(t, err)
		assert.Equal(t, "7", event.ResourceVersion)
	})
	core.Body = `{"apiVersion":"v1","kind":"EventList","metadata":{"continue":"more"},"items":[{"metadata":{"name":"x"}}]}`
	list, err := events.List(t.Context(), "ns", opts)
	require.NoError(t, err)
	assert.Equal(t, "more", list.Continue)
	require.Len(t, list.Items, 1)
	require.Len(t, core.Requests, 3)
	assert.Regexp(t, `^POST /prefix/api/v1/namespaces/ns/events application/vnd.kubernetes.protobuf \{"kind":"Event","apiVersion":"v1",.*"name":"x"`, core.Requests[0])
	assert.Equal(t, `PATCH /prefix/api/v1/namespaces/ns/events/x application/merge-patch+json {"count":2}`, core.Requests[1])
	assert.Equal(t, `GET /prefix/api/v1/namespaces/ns/events?continue=next&fieldSelector=type%3DWarning&limit=500`, core.Requests[2])

	named := &eventclienttest.Transport{Body: `{"apiVersion":"events.k8s.io/v1","kind":"EventList","items":[]}`}
	_, err = New[*eventsv1.Event, *eventsv1.EventList](clientset(t, named).EventsV1().RESTClient(), eventsv1.SchemeGroupVersion).
		List(t.Context(), "", opts)
	require.NoError(t, err)
	assert.Equal(t, `GET /prefix/apis/events.k8s.io/v1/events?continue=next&fieldSelector=type%3DWarning&limit=500`, named.Requests[0])

	assert.Equal(t, []string{accept}, core.Accepted[2:])
	assert.Equal(t, []string{accept}, named.Accepted)
}

// The typed client is the model: it sends the same requests. The content type is that of this package.
func TestContentTypes(t *testing.T) {
	for _, content := range []restclient.ContentConfig{{}, {ContentType: "application/json"}, {AcceptContentTypes: "application/json"}, {ContentType: "text/plain"}} {
		tr := &eventclienttest.Transport{Body: `{"apiVersion":"v1","kind":"Event","metadata":{"namespace":"ns","name":"x"}}`}
		clients := clientsetOf(t, tr, content)
		write(t, coreEventsOf(clients.CoreV1().RESTClient()), func(_ *corev1.Event, err error) {
			t.Helper()
			require.NoError(t, err)
		})
		require.Len(t, tr.Requests, 2)
		for i, contentType := range []string{runtime.ContentTypeProtobuf, string(types.MergePatchType)} {
			assert.Equal(t, contentType, strings.Fields(tr.Requests[i])[2])
			assert.Equal(t, accept, tr.Accepted[i])
		}
		config := eventclienttest.Config()
		config.QPS = -1
		typed, err := kubernetes.NewForConfigAndClient(config, &http.Client{Transport: tr})
		require.NoError(t, err)
		_, err = typed.CoreV1().Events("ns").Create(t.Context(), &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x"}}, metav1.CreateOptions{})
		require.NoError(t, err)
		assert.Equal(t, strings.Replace(tr.Requests[0], "/prefix", "", 1), tr.Requests[2])
	}
}

// A proxy can reject what the server understands.
func TestRejectedContentType(t *testing.T) {
	tr := &eventclienttest.Transport{Respond: func(req *http.Request) (code int, body string) {
		if req.Header.Get("Content-Type") == runtime.ContentTypeProtobuf {
			return http.StatusUnsupportedMediaType, `{"apiVersion":"v1","kind":"Status","status":"Failure","code":415,"reason":"UnsupportedMediaType"}`
		}
		return http.StatusOK, `{"apiVersion":"v1","kind":"Event","metadata":{"namespace":"ns","name":"x"}}`
	}}
	events := coreEventsOf(clientsetOf(t, tr, restclient.ContentConfig{}).CoreV1().RESTClient())
	for range 2 {
		write(t, events, func(_ *corev1.Event, err error) {
			t.Helper()
			require.NoError(t, err)
		})
	}
	assert.Len(t, tr.Requests, 5, "one is repeated")
}

func TestResponseTypes(t *testing.T) {
	for name, test := range map[string]struct {
		body         string
		object, list bool // whether it is a valid response to a patch or a list
		unexpected   bool
	}{
		"object":        {body: `{"apiVersion":"v1","kind":"Event","metadata":{"namespace":"ns","name":"x"}}`, object: true, unexpected: true},
		"list":          {body: `{"apiVersion":"v1","kind":"EventList","items":[]}`, list: true, unexpected: true},
		"success":       {body: `{"apiVersion":"v1","kind":"Status","status":"Success"}`, unexpected: true},
		"another kind":  {body: `{"apiVersion":"v1","kind":"Pod"}`, unexpected: true},
		"another group": {body: `{"apiVersion":"events.k8s.io/v1","kind":"Event"}`, unexpected: true},
		"failure":       {body: `{"apiVersion":"v1","kind":"Status","status":"Failure","code":500}`},
		"unknown kind":  {body: `{"apiVersion":"example.com/v1","kind":"Thing"}`},
		"not JSON":      {body: `<html>login</html>`},
		"half of JSON":  {body: `{"apiVersion":"v1","kind":"EventList","items":[`},
		"empty":         {body: ``},
	} {
		t.Run(name, func(t *testing.T) {
			check := func(valid bool, got runtime.Object, err error) {
				t.Helper()
				if valid {
					require.NoError(t, err)
					require.NotNil(t, got)
					return
				}
				require.Error(t, err)
				assert.Nil(t, got)
				var unexpected *apierrors.UnexpectedObjectError
				assert.Equal(t, test.unexpected, errors.As(err, &unexpected), err)
			}
			events := coreEvents(t, &eventclienttest.Transport{Body: test.body})
			write(t, events, func(event *corev1.Event, err error) { check(test.object, event, err) })
			list, err := events.List(t.Context(), "ns", metav1.ListOptions{})
			check(test.list, list, err)
		})
	}
}

// A response is in memory while it is read, and a compressed one is a thousand times as long as what
// was sent.
func TestResponsesAreBounded(t *testing.T) {
	for _, code := range []int{http.StatusOK, http.StatusInternalServerError} {
		respond := func(length int, request func(*Client[*corev1.Event, *corev1.EventList]) error) error {
			read := 0
			clients := clientsetOf(t, nil, restclient.ContentConfig{})
			rest := clients.CoreV1().RESTClient().(*restclient.RESTClient)
			rest.Client = &http.Client{Transport: roundTripper(func(req *http.Request) (*http.Response, error) {
				const object = `{"apiVersion":"v1","kind":"Event","metadata":{"namespace":"ns","name":"x"}}`
				body := io.MultiReader(strings.NewReader(object), io.LimitReader(countingSpaces{&read}, int64(length-len(object))))
				header := http.Header{"Content-Type": {"application/json"}}
				return &http.Response{StatusCode: code, Header: header, Body: io.NopCloser(body), Request: req}, nil
			})}
			err := request(coreEventsOf(rest))
			assert.LessOrEqual(t, read, maxBody+64<<10)
			return err
		}
		create := func(c *Client[*corev1.Event, *corev1.EventList]) error {
			_, err := c.Create(t.Context(), "ns", &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x"}})
			return err
		}
		for name, request := range map[string]func(*Client[*corev1.Event, *corev1.EventList]) error{
			"create": create,
			"patch": func(c *Client[*corev1.Event, *corev1.EventList]) error {
				_, err := c.Patch(t.Context(), "ns", "x", nil)
				return err
			},
			"list": func(c *Client[*corev1.Event, *corev1.EventList]) error {
				_, err := c.List(t.Context(), "ns", metav1.ListOptions{})
				return err
			},
		} {
			require.ErrorContains(t, respond(1<<30, request), "body too large", name)
			require.ErrorContains(t, respond(maxBody+1, request), "body too large", name)
			if err := respond(maxBody, request); err != nil {
				assert.NotContains(t, err.Error(), "body too large", name)
			}
		}
		if code == http.StatusOK {
			require.NoError(t, respond(maxBody, create))
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// countingSpaces has spaces without end, and counts those that are read.
type countingSpaces struct{ n *int }

func (s countingSpaces) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	*s.n += len(p)
	return len(p), nil
}

func TestResponsesWithAnotherObject(t *testing.T) {
	for _, metadata := range []string{`{"namespace":"ns","name":"y"}`, `{"namespace":"other","name":"x"}`, `{"name":"x"}`, `{}`} {
		events := coreEvents(t, &eventclienttest.Transport{Body: `{"apiVersion":"v1","kind":"Event","metadata":` + metadata + `}`})
		write(t, events, func(event *corev1.Event, err error) {
			t.Helper()
			require.ErrorContains(t, err, "request for events ns/x returned ", metadata)
			assert.Nil(t, event)
		})
	}
}

func encode(t *testing.T, object runtime.Object, mediaType string) string {
	t.Helper()
	info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), mediaType)
	require.True(t, ok)
	var b strings.Builder
	require.NoError(t, info.Serializer.Encode(object, &b))
	return b.String()
}

// The content decides how a list is read, because a proxy may change the content type. A
// receiver gets the Events of a list in protobuf only.
func TestListContent(t *testing.T) {
	list := &corev1.EventList{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "EventList"},
		ListMeta: metav1.ListMeta{ResourceVersion: "7", Continue: "more", RemainingItemCount: ptr.To[int64](3)},
		Items:    []corev1.Event{{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x"}, Message: "m"}},
	}
	failure := &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonExpired, Code: 410}
	for _, mediaType := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
		for _, contentType := range []string{mediaType, "", "application/json", "application/vnd.kubernetes.protobuf"} {
			tr := &eventclienttest.Transport{Body: encode(t, list, mediaType), Header: http.Header{"Content-Type": {contentType}}}
			events := coreEvents(t, tr)
			got, err := events.List(t.Context(), "ns", metav1.ListOptions{})
			require.NoError(t, err)
			assert.Equal(t, list.ListMeta, got.ListMeta)
			assert.Equal(t, list.Items, got.Items)

			tr.Body = encode(t, failure, mediaType)
			for _, tr.Code = range []int{200, 410} {
				if tr.Code == 410 && contentType != mediaType {
					continue // client-go reads errors by their content type
				}
				_, err = events.List(t.Context(), "ns", metav1.ListOptions{})
				require.True(t, apierrors.IsResourceExpired(err), "%d: %v", tr.Code, err)
			}
		}
	}
}

// client-go would wait for the Retry-After and retry. It prefers the Status in the body, which can lack what
// the header and the status line say.
func TestPushBack(t *testing.T) {
	for name, tt := range map[string]struct {
		retryAfter, body string
		code             int
		want             int
	}{
		"no Status":                 {"30", "", 429, 30},
		"a date":                    {time.Now().Add(time.Hour).UTC().Format(http.TimeFormat), "", 429, 3600},
		"Status with details":       {"", `"code":429,"details":{"retryAfterSeconds":7}`, 429, 7},
		"Status without details":    {"30", `"code":429,"reason":"TooManyRequests"`, 429, 30},
		"Status with other details": {"30", `"code":429,"details":{"name":"x"}`, 429, 30},
		"Status with less":          {"30", `"code":429,"details":{"retryAfterSeconds":7}`, 429, 30},
		"Status without a code":     {"30", `"message":"busy"`, 429, 30},
		"503":                       {"30", `"code":503`, 503, 30},
		"neither":                   {"", `"code":429`, 429, 0},
		"a conflict":                {"30", `"code":409,"reason":"AlreadyExists"`, 409, 30},
		"a namespace that ends":     {"30", `"code":403,"reason":"Forbidden","details":{"causes":[{"reason":"NamespaceTerminating"}]}`, 403, 30},
	} {
		t.Run(name, func(t *testing.T) {
			tr := &eventclienttest.Transport{Code: tt.code, Header: http.Header{"Retry-After": {tt.retryAfter}}}
			if tt.body != "" {
				tr.Body = `{"kind":"Status","apiVersion":"v1","status":"Failure",` + tt.body + `}`
			}
			check := func(err error) {
				t.Helper()
				var status apierrors.APIStatus
				require.ErrorAs(t, err, &status)
				require.EqualValues(t, tt.code, status.Status().Code)
				seconds, _ := apierrors.SuggestsClientDelay(err)
				if details := status.Status().Details; details != nil {
					seconds = int(details.RetryAfterSeconds)
				}
				assert.InDelta(t, tt.want, seconds, 60*float64(tt.want/3600))
				if status.Status().Reason != "" && tt.code != 429 {
					assert.False(t, apierrors.IsUnexpectedServerError(err), "a header does not change what the body means")
				}
			}
			events := coreEvents(t, tr)
			write(t, events, func(_ *corev1.Event, err error) { check(err) })
			_, err := events.List(t.Context(), "ns", metav1.ListOptions{})
			check(err)
			assert.Len(t, tr.Requests, 3)
		})
	}
}

// warnings counts warnings.
type warnings struct{ n int }

func (w *warnings) HandleWarningHeader(int, string, string) { w.n++ }

// A webhook warns of each request.
func TestWarnings(t *testing.T) {
	given, byDefault := &warnings{}, &warnings{}
	restclient.SetDefaultWarningHandler(byDefault)
	defer restclient.SetDefaultWarningHandler(restclient.WarningLogger{})
	tr := &eventclienttest.Transport{Body: `{"apiVersion":"v1","kind":"Event","metadata":{"namespace":"ns","name":"x"}}`, Header: http.Header{"Warning": {`299 - "no heartbeats on Sundays"`}}}
	config := eventclienttest.Config()
	config.WarningHandler = given
	clients, err := kubernetes.NewForConfigAndClient(config, &http.Client{Transport: tr})
	require.NoError(t, err)
	events := coreEventsOf(clients.CoreV1().RESTClient())
	write(t, events, func(_ *corev1.Event, err error) { require.NoError(t, err) })
	tr.Body = `{"kind":"EventList","apiVersion":"v1"}`
	_, err = events.List(t.Context(), "ns", metav1.ListOptions{})
	require.NoError(t, err)
	assert.Zero(t, given.n)
	assert.Zero(t, byDefault.n)
}

func TestNewWithoutClient(t *testing.T) {
	nilClient := fake.NewClientset().CoreV1().RESTClient()
	require.True(t, nilClient != nil, "an interface with a nil pointer") // NotNil would fail
	assert.Nil(t, coreEventsOf(nil))
	assert.Nil(t, coreEventsOf(nilClient))
}

// The rate limiter of the client would delay the second request.
func TestNewWithAnotherImplementation(t *testing.T) {
	tr := &eventclienttest.Transport{Body: `{"apiVersion":"v1","kind":"Event","metadata":{"namespace":"ns","name":"x"}}`}
	client := struct{ restclient.Interface }{clientset(t, tr).CoreV1().RESTClient()}
	write(t, coreEventsOf(client), func(event *corev1.Event, err error) {
		t.Helper()
		require.NoError(t, err)
		assert.Equal(t, "x", event.Name)
	})
}

func TestRetryAfterSeconds(t *testing.T) {
	date := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	in := func(d time.Duration) string { return date.Add(d).Format(http.TimeFormat) }
	for name, test := range map[string]struct{ retryAfter, date, want string }{
		"missing":                {"", in(0), ""},
		"seconds":                {"17", in(0), "17"},
		"date":                   {in(90 * time.Second), in(0), "90"},
		"date in the past":       {in(-time.Hour), in(0), "0"},
		"date in the far future": {"Fri, 31 Dec 9999 23:59:59 GMT", in(0), "2147483647"},
		"clock in the far past":  {in(0), "Mon, 01 Jan 0001 00:00:00 GMT", "2147483647"},
		"many seconds":           {"1000000000", in(0), "1000000000"},
		"more than an int32":     {"4294967301", in(0), "2147483647"},
		"more than an int64":     {"99999999999999999999", in(0), "2147483647"},
		"negative":               {"-1", in(0), "0"},
		"malformed":              {"soon", in(0), "soon"},
		"date without clock":     {"Fri, 02 Jan 1970 00:00:00 GMT", "", "0"},
	} {
		t.Run(name, func(t *testing.T) {
			header := http.Header{"Retry-After": {test.retryAfter}, "Date": {test.date}}
			response, err := transport{&eventclienttest.Transport{Header: header}}.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			assert.Equal(t, test.want, response.Header.Get("Retry-After"))
		})
	}
}
