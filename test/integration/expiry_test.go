package integration

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/internal/controlplane"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// TestEventGoesWhileItsSeriesGoesOn has the Event expire, deletes the next one,
// and sees each of them made anew by the heartbeat after it.
func TestEventGoesWhileItsSeriesGoesOn(t *testing.T) {
	t.Parallel()
	// A heartbeat that comes later than the Event lives.
	const ttl, interval, finish = 4 * time.Second, 7 * time.Second, 8 * time.Second
	server := apiserver.Start(t, controlplane.Options{EventTTL: ttl})
	config := apiserver.ConfigOf(t, server)
	namespace := apiserver.NamespaceOn(t, apiserver.ClientsetFor(t, config))
	r := startRecording(t, config, events.Options{HeartbeatInterval: interval, FinishAfter: finish})
	history := watchEvents(t, r.clients, namespace)
	recorder, pod := r.recorder().(events.AnnotatedEventRecorder), podIn(namespace, "looping")
	emitted := 0
	occur := func() {
		emitted++
		recorder.AnnotatedEventf(pod, nil, map[string]string{"example.com/a": "1"},
			corev1.EventTypeWarning, "Looped", "Looping", "it looped")
	}

	occur()
	r.flush(t)
	occur()
	r.flush(t)
	original := eventAbout(t, r.clients, namespace, pod.UID)
	uids := map[types.UID]bool{original.UID: true}
	untilAnew := func() *eventsv1.Event {
		t.Helper()
		var anew *eventsv1.Event
		apiserver.Eventually(t, patience, func(ctx context.Context) error {
			occur()
			found, err := eventsAbout(ctx, r.clients, namespace, pod.UID)
			if err != nil {
				return err
			}
			if len(found) != 1 || uids[found[0].UID] {
				return fmt.Errorf("%d Events, none of them new", len(found))
			}
			anew = &found[0]
			return nil
		})
		uids[anew.UID] = true
		assert.Equal(t, original.Name, anew.Name)
		assert.Equal(t, original.EventTime, anew.EventTime)
		assert.Equal(t, "Ongoing", state(anew))
		assert.Equal(t, "1", anew.Annotations["example.com/a"])
		return anew
	}

	// The answer comes a moment after the Event can be seen.
	requireRecreated := func(want int) {
		t.Helper()
		apiserver.Eventually(t, patience, func(context.Context) error {
			if got := requestsOf(r.Stats(), "recreate", "written"); got != want {
				return fmt.Errorf("recreated %d times, not %d", got, want)
			}
			return nil
		})
	}

	second := untilAnew()
	assert.Greater(t, occurrences(second), occurrences(original))
	requireRecreated(1)
	assert.Equal(t, 1, requestsOf(r.Stats(), "heartbeat", "gone"))

	err := r.clients.EventsV1().Events(namespace).Delete(t.Context(), second.Name, metav1.DeleteOptions{})
	require.NoError(t, err)
	third := untilAnew()
	assert.Greater(t, occurrences(third), occurrences(second))
	requireRecreated(2)

	// It stops, and the Event expires once more before its series is finished.
	var finished *eventsv1.Event
	apiserver.Eventually(t, patience, func(ctx context.Context) error {
		found, err := eventsAbout(ctx, r.clients, namespace, pod.UID)
		if err != nil {
			return err
		}
		if len(found) != 1 || state(&found[0]) != "Finished" {
			return errors.New("no Event that is Finished")
		}
		finished = &found[0]
		return nil
	})
	assert.Equal(t, original.Name, finished.Name)
	assert.Equal(t, original.EventTime, finished.EventTime)
	requireAccounted(t, emitted, r.Stats(), []eventsv1.Event{*finished})

	requireStates(t, history, "", "Ongoing", "Finished")
	kinds := map[watch.EventType]int{}
	for _, c := range history.all() {
		kinds[c.kind]++
	}
	assert.GreaterOrEqual(t, kinds[watch.Added], 3)
	assert.GreaterOrEqual(t, kinds[watch.Deleted], 2)
	assert.Empty(t, r.Stats().Dropped)
	t.Logf("%d occurrences in %d Events of the name: %s", emitted, kinds[watch.Added], r.requests)
}

// TestSingletonThatIsGoneBecomesASeries deletes an Event before it happens again.
func TestSingletonThatIsGoneBecomesASeries(t *testing.T) {
	t.Parallel()
	namespace := apiserver.Namespace(t)
	r := startRecording(t, apiserver.Config(t), events.Options{})
	recorder, pod := r.recorder(), podIn(namespace, "deleted")
	emit(recorder, pod, 1)
	r.flush(t)
	first := eventAbout(t, r.clients, namespace, pod.UID)
	require.NoError(t, r.clients.EventsV1().Events(namespace).Delete(t.Context(), first.Name, metav1.DeleteOptions{}))

	emit(recorder, pod, 1)
	r.flush(t)
	second := eventAbout(t, r.clients, namespace, pod.UID)
	assert.Equal(t, first.Name, second.Name)
	assert.Equal(t, first.EventTime, second.EventTime)
	assert.Equal(t, 2, occurrences(second))
	assert.Equal(t, "Ongoing", state(second))
	r.requireAccounted(t, 2)
}
