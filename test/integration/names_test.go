package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/series"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// TestCreateAndPatchAreEnough runs a recorder that may do nothing else, and sees
// what else can be found out with these two.
func TestCreateAndPatchAreEnough(t *testing.T) {
	t.Parallel()
	namespace := apiserver.Namespace(t)
	config := asEventWriter(t, namespace)
	r := startRecording(t, config, events.Options{})
	recorder, pod := r.recorder(), podIn(namespace, "pod")
	emit(recorder, pod, 1)
	r.flush(t)
	emit(recorder, pod, 9)
	r.flush(t)
	event := eventAbout(t, r.clients, namespace, pod.UID)
	assert.Equal(t, 10, occurrences(event))
	r.requireAccounted(t, 10)

	writer := apiserver.ClientsetFor(t, config).EventsV1().Events(namespace)
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
	assert.Equal(t, event, eventAbout(t, r.clients, namespace, pod.UID), "an empty patch leaves the Event and its resourceVersion")
	_, err = writer.Patch(t.Context(), "no-such-event", types.MergePatchType, []byte("{}"), metav1.PatchOptions{})
	assert.True(t, apierrors.IsNotFound(err), "an empty patch of nothing: %v", err)
}

// asEventWriter returns a configuration of a user of the shared server who may
// create and patch Events in a namespace and do nothing else.
func asEventWriter(t *testing.T, namespace string) *rest.Config {
	t.Helper()
	clients := apiserver.Clientset(t)
	user := "event-writer-of-" + namespace
	_, err := clients.RbacV1().Roles(namespace).Create(t.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "event-writer"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = clients.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "event-writer"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "event-writer"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	config := apiserver.Config(t)
	config.Impersonate.UserName = user
	writer := apiserver.ClientsetFor(t, config).EventsV1().Events(namespace)
	apiserver.Eventually(t, patience, func(ctx context.Context) error {
		_, err := writer.Patch(ctx, "no-such-event", types.MergePatchType, []byte("{}"), metav1.PatchOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("the server does not know the role yet: %w", err)
	})
	return config
}

// TestRestart has two processes of one identity, one after the other, emit the
// same: the second goes on in the Event of the first.
func TestRestart(t *testing.T) {
	t.Parallel()
	for name, list := range map[string]bool{"by name": false, "by listing": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := apiserver.Namespace(t)
			pod := podIn(namespace, "pod")
			pod.UID = "uid"
			before := startRecording(t, apiserver.Config(t), events.Options{})
			emit(before.recorder(), pod, 10)
			before.Shutdown()

			opts := events.Options{ReportingInstance: before.instance, Namespaces: []string{namespace}}
			r := newRecording(t, apiserver.Config(t), opts)
			if list {
				recorder := r.recorder()
				require.NoError(t, r.StartRecordingToSinkWithContext(t.Context()))
				apiserver.Eventually(t, patience, func(context.Context) error {
					if r.Stats().Restored != 1 {
						return errors.New("not restored yet")
					}
					return nil
				})
				emit(recorder, pod, 10)
			} else {
				r = startRecording(t, apiserver.Config(t), opts)
				emit(r.recorder(), pod, 10)
			}
			r.flush(t)
			event := eventAbout(t, r.clients, namespace, pod.UID)
			require.NotNil(t, event.Series)
			assert.EqualValues(t, 20, event.Series.Count)
			assert.Equal(t, "Ongoing", event.Annotations[series.AnnotationState])
			assert.Empty(t, r.Stats().Dropped)
		})
	}
}

// TestNameThatIsTaken has a process meet the Event of a series that has ended.
func TestNameThatIsTaken(t *testing.T) {
	t.Parallel()
	for object, wantName := range map[string]string{
		"pod":                        `^pod\.[0-9a-f]{16}\.[0-9a-f]{16}$`,
		strings.Repeat("o", maxName): `^o{219}\.[0-9a-f]{16}\.[0-9a-f]{16}$`,
	} {
		t.Run(fmt.Sprintf("object name of %d bytes", len(object)), func(t *testing.T) {
			t.Parallel()
			namespace := apiserver.Namespace(t)
			pod := podIn(namespace, object)
			pod.UID = "uid"
			before := startRecording(t, apiserver.Config(t), events.Options{})
			emit(before.recorder(), pod, 3)
			before.Shutdown()
			first := eventAbout(t, before.clients, namespace, pod.UID)
			finished := []byte(`{"metadata":{"annotations":{"` + series.AnnotationState + `":"Finished"}}}`)
			_, err := before.clients.EventsV1().Events(namespace).Patch(t.Context(), first.Name, types.MergePatchType, finished, metav1.PatchOptions{})
			require.NoError(t, err)

			r := startRecording(t, apiserver.Config(t), events.Options{ReportingInstance: before.instance})
			emit(r.recorder(), pod, 1)
			r.flush(t)
			emit(r.recorder(), pod, 1)
			r.flush(t)
			apiserver.Eventually(t, patience, func(context.Context) error {
				if requestsOf(r.Stats(), "successor", "written") == 0 {
					return errors.New("the Event under the base name does not lead to the other yet")
				}
				return nil
			})
			stats := r.Stats()
			assert.Equal(t, 1, requestsOf(stats, "create", "taken"))
			assert.Equal(t, 1, requestsOf(stats, "look", "written"))
			assert.Equal(t, 1, requestsOf(stats, "create", "written"))
			assert.Equal(t, 1, requestsOf(stats, "series", "written"))
			assert.Equal(t, 5, r.requests.Total(), r.requests)

			found, err := eventsAbout(t.Context(), r.clients, namespace, pod.UID)
			require.NoError(t, err)
			require.Len(t, found, 2)
			second := found[0]
			if second.Name == first.Name {
				second = found[1]
			}
			assert.Regexp(t, wantName, second.Name)
			assert.LessOrEqual(t, len(second.Name), maxName)
			requireAccounted(t, 2, stats, []eventsv1.Event{second})
		})
	}
}

func TestNameThatAStrangerHas(t *testing.T) {
	t.Parallel()
	namespace := apiserver.Namespace(t)
	r := startRecording(t, apiserver.Config(t), events.Options{})
	pod := podIn(namespace, "pod")
	key := series.Key{
		Regarding:           series.Reference{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: pod.Name, UID: pod.UID},
		Type:                corev1.EventTypeNormal,
		Action:              "Testing",
		Reason:              "Tested",
		ReportingController: controller,
		ReportingInstance:   r.instance,
	}
	stranger := strangersEvent(t, r.clients, namespace, key.BaseName())
	emit(r.recorder(), pod, 2)
	r.flush(t)
	event := eventAbout(t, r.clients, namespace, pod.UID)
	assert.Regexp(t, `^`+key.BaseName()+`\.[0-9a-f]{1,16}$`, event.Name)
	assert.Equal(t, 2, occurrences(event))
	got, err := r.clients.EventsV1().Events(namespace).Get(t.Context(), stranger.Name, metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, stranger, got)
	r.requireAccounted(t, 2)
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
		Regarding:           corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: "other", UID: "other"},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	return event
}
