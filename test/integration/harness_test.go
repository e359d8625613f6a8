package integration

import (
	"testing"

	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// deleteEvent deletes an Event that does not go with its namespace.
func deleteEvent(t *testing.T, clients kubernetes.Interface, event *eventsv1.Event) {
	t.Helper()
	ctx, cancel := apiserver.CleanupContext()
	defer cancel()
	err := clients.EventsV1().Events(event.Namespace).Delete(ctx, event.Name, metav1.DeleteOptions{})
	if !apierrors.IsNotFound(err) {
		require.NoError(t, err)
	}
}
