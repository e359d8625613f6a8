package compat

import (
	"testing"

	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestCoreSinkRequiresInterface(t *testing.T) {
	event := &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x"}}
	for _, sink := range []*CoreSink{nil, {}} {
		_, create := sink.Create(t.Context(), event)
		_, patch := sink.Patch(t.Context(), event, []byte("{}"))
		_, update := sink.Update(t.Context(), event)
		_, list := sink.List(t.Context(), "", metav1.ListOptions{})
		for _, err := range []error{create, patch, update, list} {
			require.ErrorContains(t, err, "no Interface")
		}
	}
}
