package compat

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/internal/eventclient/eventclienttest"
)

// Kubernetes 1.18 does not serve events.k8s.io/v1.
func TestSinkOnAnOldServer(t *testing.T) {
	const stored = `{"apiVersion":"v1","kind":"Event","metadata":{"namespace":"ns","name":"x"},"message":"m"}`
	tr := &eventclienttest.Transport{Respond: func(r *http.Request) (int, string) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/apis/events.k8s.io/"):
			return 404, "404 page not found\n"
		case r.Method == http.MethodGet:
			return 200, `{"apiVersion":"v1","kind":"EventList","items":[` + stored + `]}`
		default:
			return 200, stored
		}
	}}
	clientset, err := kubernetes.NewForConfigAndClient(eventclienttest.Config(), &http.Client{Transport: tr})
	require.NoError(t, err)
	sink := NewSink(clientset)
	event := &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x"}}
	check := func(event *eventsv1.Event, err error) {
		t.Helper()
		require.NoError(t, err)
		assert.Equal(t, "m", event.Note)
	}
	for range 2 {
		check(sink.Create(t.Context(), event))
		check(sink.Update(t.Context(), event))
		check(sink.Patch(t.Context(), event, []byte("{}")))
		list, err := sink.List(t.Context(), "ns", metav1.ListOptions{})
		require.NoError(t, err)
		assert.Len(t, list.Items, 1)
	}
	var sent []string
	for _, request := range tr.Requests {
		fields := strings.Fields(request)
		sent = append(sent, strings.ReplaceAll(fields[0]+" "+fields[1], "/namespaces/ns/events", ""))
	}
	assert.Equal(t, []string{
		"POST /api/v1", "PUT /api/v1/x", "PATCH /api/v1/x", "GET /api/v1",
		"POST /api/v1", "PUT /api/v1/x", "PATCH /api/v1/x", "GET /api/v1",
	}, sent)
}

func TestSinksRequireClients(t *testing.T) {
	clientset := fake.NewClientset()
	event := &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x"}}
	type sink interface {
		events.EventSink
		events.EventLister
	}
	const both, one = "sink requires clients for events.k8s.io/v1 and core/v1", "no Interface"
	for sink, want := range map[sink]string{
		(*Sink)(nil): both, &Sink{}: both, NewSink(nil): both, &Sink{EventsV1: clientset.EventsV1()}: both, &Sink{CoreV1: clientset.CoreV1()}: both,
		(*CoreSink)(nil): one, &CoreSink{}: one,
	} {
		_, create := sink.Create(t.Context(), event)
		_, patch := sink.Patch(t.Context(), event, []byte("{}"))
		_, update := sink.Update(t.Context(), event)
		_, list := sink.List(t.Context(), "", metav1.ListOptions{})
		for _, err := range []error{create, patch, update, list} {
			require.ErrorContains(t, err, want)
		}
	}
}

// Sinks that forward calls forward the receiver of a list, too.
func TestSinksPassOnListedEvents(t *testing.T) {
	list := &corev1.EventList{Items: []corev1.Event{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x"}, ReportingController: "example.com/x", Message: "m",
		EventTime: metav1.NowMicro(), Count: 3,
	}, {ReportingController: "example.com/other"}}}
	info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	require.True(t, ok)
	var body strings.Builder
	require.NoError(t, scheme.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion).Encode(list, &body))
	// A server that knows neither events.k8s.io/v1 nor the selector.
	tr := &eventclienttest.Transport{Respond: func(r *http.Request) (int, string) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/apis/events.k8s.io/"):
			return 404, "404 page not found\n"
		case r.URL.Query().Get("fieldSelector") != "":
			return 400, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"BadRequest","code":400}`
		case r.Method == http.MethodGet:
			return 200, body.String()
		default:
			return 200, `{"apiVersion":"v1","kind":"Event","metadata":{"namespace":"ns","name":"x"}}`
		}
	}}
	clientset, err := kubernetes.NewForConfigAndClient(eventclienttest.Config(), &http.Client{Transport: tr})
	require.NoError(t, err)
	for _, sink := range []events.EventLister{NewSink(clientset), &CoreSink{Interface: clientset.CoreV1()}} {
		page, err := sink.List(t.Context(), "ns", metav1.ListOptions{FieldSelector: "reportingController=example.com/x"})
		require.NoError(t, err)
		require.Len(t, page.Items, 1, "%T", sink)
		assert.Equal(t, "m", page.Items[0].Note)
	}
}
