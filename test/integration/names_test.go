package integration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/series"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// TestCreateAndPatchAreEnough looks an Event up without permission to get or
// list it.
func TestCreateAndPatchAreEnough(t *testing.T) {
	t.Parallel()
	namespace, clients := apiserver.Namespace(t), apiserver.Clientset(t)
	a := accountIn(namespace)
	a.grant(t, clients, mayWrite)
	event := strangersEvent(t, clients, namespace, "taken")
	writer := apiserver.ClientsetFor(t, a.config(apiserver.Config(t))).EventsV1().Events(namespace)
	_, err := writer.Get(t.Context(), event.Name, metav1.GetOptions{})
	require.True(t, apierrors.IsForbidden(err), "get: %v", err)
	_, err = writer.List(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsForbidden(err), "list: %v", err)

	copied := event.DeepCopy()
	copied.ResourceVersion, copied.UID = "", ""
	_, err = writer.Create(t.Context(), copied, metav1.CreateOptions{})
	assert.True(t, apierrors.IsAlreadyExists(err), "create of a name that is taken: %v", err)

	patched, err := writer.Patch(t.Context(), event.Name, types.MergePatchType, []byte("{}"), metav1.PatchOptions{})
	require.NoError(t, err)
	assert.Equal(t, event, patched, "an empty patch returns the Event")
	assert.Equal(t, event, eventAbout(t, clients, namespace, event.Regarding.UID), "an empty patch keeps the Event and its resourceVersion")
	_, err = writer.Patch(t.Context(), "no-such-event", types.MergePatchType, []byte("{}"), metav1.PatchOptions{})
	assert.True(t, apierrors.IsNotFound(err), "an empty patch of nothing: %v", err)
}

// TestSuccessorOfAFinishedEvent starts a process whose series has the name of a
// Finished Event. It writes another Event, and links the first one to it without
// any other change.
func TestSuccessorOfAFinishedEvent(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("o", maxName)
	for _, row := range []struct {
		sink, object, wantName string
	}{
		{"events.k8s.io", "pod", `^pod\.[0-9a-f]{16}\.[0-9a-f]{16}$`},
		{"events.k8s.io", long, `^o{219}\.[0-9a-f]{16}\.[0-9a-f]{16}$`},
		{"core", "pod", `^pod\.[0-9a-f]{16}\.[0-9a-f]{16}$`},
	} {
		t.Run(fmt.Sprintf("%s, object name of %d bytes", row.sink, len(row.object)), func(t *testing.T) {
			t.Parallel()
			namespace, sink := apiserver.Namespace(t), sinks[row.sink]
			pod := podIn(namespace, row.object)
			pod.UID = "uid"
			before := startRecordingTo(t, sink, apiserver.Config(t), events.Options{})
			emit(before.recorder(), pod, 3)
			before.Shutdown()
			first := finish(t, before.clients, eventAbout(t, before.clients, namespace, pod.UID))

			r := startRecordingTo(t, sink, apiserver.Config(t), events.Options{ReportingInstance: before.instance})
			for range 2 {
				emit(r.recorder(), pod, 1)
				r.flush(t)
			}
			r.awaitWrites(t, "successor", "written", 1)
			stats := r.Stats()
			assert.Equal(t, 1, requestsOf(stats, "create", "taken"))
			assert.Equal(t, 1, requestsOf(stats, "look", "written"))
			assert.Equal(t, 1, requestsOf(stats, "create", "written"))
			assert.Equal(t, 1, requestsOf(stats, "series", "written"))
			assert.Equal(t, 5, r.requests.Total(), r.requests)

			found, err := eventsAbout(t.Context(), r.clients, namespace, pod.UID)
			require.NoError(t, err)
			require.Len(t, found, 2)
			old, next := &found[0], &found[1]
			if old.Name != first.Name {
				old, next = next, old
			}
			assert.Regexp(t, row.wantName, next.Name)
			assert.LessOrEqual(t, len(next.Name), maxName)
			requireAccounted(t, 2, stats, []eventsv1.Event{*next})
			if row.sink == "core" {
				requireOldFields(t, r.clients, old)
				requireOldFields(t, r.clients, next)
			}
			assert.Equal(t, next.Name, strings.Fields(old.Annotations[series.AnnotationSuccessor])[0])
			delete(old.Annotations, series.AnnotationSuccessor)
			old.ResourceVersion, old.ManagedFields, old.TypeMeta = first.ResourceVersion, first.ManagedFields, first.TypeMeta
			assert.Equal(t, first, old)
		})
	}
}

// strangersEvent creates an Event of another controller.
func strangersEvent(t *testing.T, clients kubernetes.Interface, namespace, name string) *eventsv1.Event {
	t.Helper()
	event, err := clients.EventsV1().Events(namespace).Create(t.Context(), &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Name: name},
		EventTime:           metav1.NowMicro(),
		ReportingController: "example.com/stranger",
		ReportingInstance:   "stranger-0",
		Action:              "Intruding",
		Reason:              "Intruded",
		Type:                corev1.EventTypeNormal,
		Regarding:           corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: "other", UID: types.UID("other-" + namespace)},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	return event
}
