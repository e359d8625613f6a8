package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

func TestNamespaceBeingDeleted(t *testing.T) {
	apiserver.Program(t) // a cluster would delete the Events at any time
	t.Parallel()
	doomed, other := apiserver.Namespace(t), apiserver.Namespace(t)
	r := startRecording(t, apiserver.Config(t), events.Options{})
	recorder := r.recorder()
	before, after, elsewhere := podIn(doomed, "before"), podIn(doomed, "after"), podIn(other, "elsewhere")
	emit(recorder, before, 2)
	emit(recorder, elsewhere, 2)
	r.flush(t)
	terminate(t, r.clients, doomed)
	r.requests.reset()
	requireDropped := func(want uint64) {
		t.Helper()
		assert.Equal(t, map[events.DropReason]uint64{events.DropNamespaceTerminating: want}, r.Stats().Dropped)
	}

	// The server rejects new Events once, which ends the requests.
	emit(recorder, after, 1)
	r.flush(t)
	requireDropped(1)
	emit(recorder, after, 1_000)
	r.flush(t)
	assert.Equal(t, "create events.events.k8s.io: 1", r.requests.String())

	emit(recorder, before, 1)
	r.flush(t)
	event := eventAbout(t, r.clients, doomed, before.UID)
	assert.Equal(t, 3, occurrences(event))

	// The recorder cannot recreate an Event that is deleted.
	require.NoError(t, r.clients.EventsV1().Events(doomed).Delete(t.Context(), event.Name, metav1.DeleteOptions{}))
	emit(recorder, before, 1)
	r.flush(t)
	requireDropped(1 + 4)

	// Other namespaces are unaffected.
	emit(recorder, elsewhere, 1)
	emit(recorder, podIn(other, "new"), 1)
	r.flush(t)
	assert.Equal(t, 3, occurrences(eventAbout(t, r.clients, other, elsewhere.UID)))
	assert.Equal(t, 1, occurrences(eventAbout(t, r.clients, other, podIn(other, "new").UID)))

	r.Shutdown()
	requireDropped(1_001 + 4)
	r.requireAccounted(t, 1_001+4+3+1)
}

// terminate deletes a namespace in which an object with a finalizer remains, and
// waits until the server rejects new objects in it.
func terminate(t *testing.T, clients kubernetes.Interface, namespace string) {
	t.Helper()
	configMaps := clients.CoreV1().ConfigMaps(namespace)
	_, err := configMaps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: "held", Finalizers: []string{"example.com/held"},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := apiserver.CleanupContext()
		defer cancel()
		_, err := configMaps.Patch(ctx, "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		require.NoError(t, err)
	})
	require.NoError(t, clients.CoreV1().Namespaces().Delete(t.Context(), namespace, metav1.DeleteOptions{}))
	eventually(t, func(c *assert.CollectT) {
		_, err := configMaps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "late-"}}, metav1.CreateOptions{})
		assert.True(c, apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause), "%v", err)
	})
}

// TestNamespaceIsCreatedLate emits events before their namespace exists, as a
// fast controller can.
func TestNamespaceIsCreatedLate(t *testing.T) {
	t.Parallel()
	r := startRecording(t, apiserver.Config(t), events.Options{HeartbeatInterval: time.Second})
	namespace := "late-" + r.instance // unique to this test
	recorder, pod := r.recorder(), podIn(namespace, "early")
	emitted := 0
	occur := func(about *corev1.Pod) { emit(recorder, about, 1); emitted++ }
	occur(pod)
	occur(podIn(apiserver.Namespace(t), "elsewhere"))
	r.flush(t)
	assert.Equal(t, map[events.DropReason]uint64{events.DropNamespaceNotFound: 1}, r.Stats().Dropped)
	assert.Equal(t, 2, r.requests.total(), r.requests)

	_, err := r.clients.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { apiserver.DeleteNamespace(t, r.clients, namespace) })
	eventually(t, func(c *assert.CollectT) {
		occur(pod)
		assert.NotEmpty(c, eventsAbout(c, r.clients, namespace, pod.UID))
	})
	occur(pod)
	r.flush(t)
	assert.Equal(t, "Ongoing", state(eventAbout(t, r.clients, namespace, pod.UID)))
	r.requireAccounted(t, emitted)
}

// TestNamespaceThatCannotExist requires that an invalid namespace delays no other
// event.
func TestNamespaceThatCannotExist(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"Not_A_Namespace", "with space", "a/b", ".", "..", "%2e", "a?b#c", "größe", "not\xffUTF-8", strings.Repeat("n", 254),
	} {
		t.Run(fmt.Sprintf("%.20q", name), func(t *testing.T) {
			t.Parallel()
			namespace := apiserver.Namespace(t)
			r := startRecording(t, apiserver.Config(t), events.Options{})
			recorder := r.recorder()
			emit(recorder, podIn(name, "nowhere"), 1)
			emit(recorder, podIn(namespace, "somewhere"), 1)
			r.flushWithin(t, 5*time.Second)
			assert.EqualValues(t, 1, dropped(r.Stats()), r.Stats().Dropped)
			r.Shutdown()
			r.requireAccounted(t, 2)
		})
	}
}
