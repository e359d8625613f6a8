package apigroup

import (
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

	"github.com/eventseries/eventseries/internal/eventclient/eventclienttest"
)

// newSink returns a sink that sends its requests to tr.
func newSink(t *testing.T, tr *eventclienttest.Transport) *CoreSink {
	t.Helper()
	client, err := typedcorev1.NewForConfigAndClient(eventclienttest.Config(), &http.Client{Transport: tr})
	require.NoError(t, err)
	return &CoreSink{Interface: client}
}

// writeWith calls all methods of sink that write.
func writeWith(t *testing.T, sink *CoreSink, event *eventsv1.Event, patch string, check func(*eventsv1.Event, error)) {
	t.Helper()
	check(sink.Create(t.Context(), event))
	check(sink.Patch(t.Context(), event, []byte(patch)))
}

func TestSinkRequests(t *testing.T) {
	const stored = `{"apiVersion":"v1","kind":"Event","metadata":{"namespace":"ns","name":"x","resourceVersion":"7"},"message":"m","count":57}`
	tr := &eventclienttest.Transport{Body: stored}
	check := func(event *eventsv1.Event, err error) {
		t.Helper()
		require.NoError(t, err)
		assert.Equal(t, "7", event.ResourceVersion)
		assert.Equal(t, "m", event.Note)
		assert.EqualValues(t, 57, event.DeprecatedCount)
	}
	sink := newSink(t, tr)
	writeWith(t, sink, newSeries(), `{"series":{"count":57}}`, check)
	check(sink.Patch(t.Context(), newSeries(), []byte(`{}`)))
	require.Len(t, tr.Requests, 3)
	assert.Regexp(t, `^POST /api/v1/namespaces/ns/events application/vnd.kubernetes.protobuf \{.*"lastTimestamp":"2026-01-02T03:05:45Z"`, tr.Requests[0])
	assert.Regexp(t, `^PATCH /api/v1/namespaces/ns/events/x application/merge-patch\+json \{"count":57,`, tr.Requests[1])
	assert.Equal(t, `PATCH /api/v1/namespaces/ns/events/x application/merge-patch+json {}`, tr.Requests[2])
}

func TestSinkList(t *testing.T) {
	opts := metav1.ListOptions{FieldSelector: "reportingController=example.com/x,type=Normal", Limit: 500, Continue: "next"}
	const page = `{"apiVersion":"v1","kind":"EventList","metadata":{"continue":"more"},"items":[
		{"metadata":{"name":"ours"},"message":"m","reportingComponent":"example.com/x"},
		{"metadata":{"name":"theirs"},"reportingComponent":"example.com/y"},
		{"metadata":{"name":"without controller"}}]}`
	requireOurs := func(t *testing.T, list *eventsv1.EventList, err error) {
		t.Helper()
		require.NoError(t, err)
		assert.Equal(t, "more", list.Continue)
		require.Len(t, list.Items, 1)
		assert.Equal(t, "ours", list.Items[0].Name)
		assert.Equal(t, "m", list.Items[0].Note)
	}
	t.Run("server selects by reportingComponent", func(t *testing.T) {
		tr := &eventclienttest.Transport{Body: page}
		list, err := newSink(t, tr).List(t.Context(), "ns", opts)
		requireOurs(t, list, err)
		require.Equal(t, []string{
			"GET /api/v1/namespaces/ns/events?continue=next&fieldSelector=reportingComponent%3Dexample.com%2Fx%2Ctype%3DNormal&limit=500",
		}, tr.Requests)
	})
	t.Run("server does not support reportingComponent", func(t *testing.T) {
		tr := &eventclienttest.Transport{Respond: func(r *http.Request) (int, string) {
			if strings.Contains(r.URL.Query().Get("fieldSelector"), "reportingComponent") {
				return 400, `{"apiVersion":"v1","kind":"Status","status":"Failure","code":400,"reason":"BadRequest","message":"field label not supported: reportingComponent"}`
			}
			return 200, page
		}}
		list, err := newSink(t, tr).List(t.Context(), "", opts)
		requireOurs(t, list, err)
		require.Len(t, tr.Requests, 2)
		assert.Equal(t, "GET /api/v1/events?continue=next&fieldSelector=type%3DNormal&limit=500", tr.Requests[1])
	})
	t.Run("server returns an error", func(t *testing.T) {
		for code, requests := range map[int]int{400: 2, 403: 1, 410: 1, 429: 1, 500: 1} {
			tr := &eventclienttest.Transport{Code: code}
			_, err := newSink(t, tr).List(t.Context(), "", opts)
			var status apierrors.APIStatus
			require.ErrorAs(t, err, &status)
			assert.EqualValues(t, code, status.Status().Code)
			assert.Len(t, tr.Requests, requests)
		}
	})
}

func TestSinkReturnsErrors(t *testing.T) {
	var none *CoreSink
	fakeSink := &CoreSink{Interface: fake.NewClientset().CoreV1()}
	misled := newSink(t, &eventclienttest.Transport{Body: `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"}}`})
	for _, test := range []struct {
		sink  *CoreSink
		event *eventsv1.Event
		want  string
	}{
		{none, newSeries(), "no Interface"},
		{&CoreSink{}, newSeries(), "no Interface"},
		{fakeSink, nil, "nil event"},
		{fakeSink, &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, `event "x" without a namespace`},
		{misled, newSeries(), "unexpected object"},
	} {
		writeWith(t, test.sink, test.event, "{}", func(_ *eventsv1.Event, err error) {
			t.Helper()
			require.ErrorContains(t, err, test.want)
		})
	}
	for _, test := range []struct {
		sink           *CoreSink
		selector, want string
	}{
		{none, "", "no Interface"},
		{&CoreSink{}, "", "no Interface"},
		{fakeSink, "a>b", `"a>b"`},
		{misled, "", "unexpected object"},
	} {
		_, err := test.sink.List(t.Context(), "", metav1.ListOptions{FieldSelector: test.selector})
		require.ErrorContains(t, err, test.want)
	}
	_, err := fakeSink.Patch(t.Context(), newSeries(), []byte("[]"))
	require.ErrorContains(t, err, "apigroup: patch event ns/x: parse merge patch: ")
}

// A fake clientset ignores field selectors.
func TestSinkWithFakeClientset(t *testing.T) {
	sink := &CoreSink{Interface: fake.NewClientset().CoreV1()}
	ours, theirs := newSeries(), newSeries()
	theirs.Name, theirs.ReportingController = "y", "example.com/y"
	for _, event := range []*eventsv1.Event{ours, theirs} {
		writeWith(t, sink, event, "{}", func(written *eventsv1.Event, err error) {
			t.Helper()
			require.NoError(t, err)
			assert.EqualValues(t, 57, written.DeprecatedCount)
		})
		_, err := sink.Create(t.Context(), event)
		require.True(t, apierrors.IsAlreadyExists(err), err)
	}
	list, err := sink.List(t.Context(), "", metav1.ListOptions{FieldSelector: "reportingController=example.com/x"})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	assert.Equal(t, ours.Name, list.Items[0].Name)
}

func TestCoreSelector(t *testing.T) {
	for _, test := range []struct {
		selector, server, oldServer string
		selects                     bool // whether it selects example.com/x
	}{
		{"", "", "", true},
		{"type=Warning", "type=Warning", "type=Warning", true},
		{"reportingController=example.com/x", "reportingComponent=example.com/x", "", true},
		{"reportingController==example.com/x", "reportingComponent=example.com/x", "", true},
		{"reportingController=example.com/y", "reportingComponent=example.com/y", "", false},
		{"reportingController!=example.com/x", "reportingComponent!=example.com/x", "", false},
		{
			"regarding.name=a,reportingController=example.com/x,reason!=b",
			"reason!=b,involvedObject.name=a,reportingComponent=example.com/x", "reason!=b,involvedObject.name=a", true,
		},
		{`regarding.name=a\,b\=c`, `involvedObject.name=a\,b\=c`, `involvedObject.name=a\,b\=c`, true},
		// The server rejects unsupported fields.
		{"reportingInstance=i", "reportingInstance=i", "reportingInstance=i", true},
	} {
		t.Run(test.selector, func(t *testing.T) {
			s, err := newCoreSelector(test.selector)
			require.NoError(t, err)
			assert.Equal(t, test.server, s.server.String())
			assert.Equal(t, test.oldServer, s.oldServer.String())
			assert.Equal(t, test.server != test.oldServer, s.reduced)
			assert.Equal(t, test.selects, s.selects("example.com/x"))
		})
	}
	_, err := newCoreSelector("a>b")
	require.ErrorContains(t, err, `apigroup: field selector "a>b"`)
}

func TestCoreField(t *testing.T) {
	for _, field := range []string{"metadata.namespace", "metadata.name"} {
		assert.Equal(t, field, coreField(field))
	}
	for _, subfield := range []string{"kind", "namespace", "uid", "apiVersion", "resourceVersion", "fieldPath"} {
		assert.Equal(t, "involvedObject."+subfield, coreField("regarding."+subfield))
	}
}
