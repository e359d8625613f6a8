package compat

import (
	"testing"

	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/eventseries/eventseries/events"
)

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
