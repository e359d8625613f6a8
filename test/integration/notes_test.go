package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/series"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

func TestLastNote(t *testing.T) {
	t.Parallel()
	namespace := apiserver.Namespace(t)
	r := startRecording(t, apiserver.Config(t), events.Options{NoteInterval: time.Nanosecond})
	recorder, pod := r.recorder(), podIn(namespace, "noted")
	notes := []struct {
		emitted string
		want    string // empty: no annotation
	}{
		{"first", ""},
		{"second", "second"},
		{strings.Repeat("n", 5000), strings.Repeat("n", 1021) + "…"},
		{"not \xff UTF-8", "not \uFFFD UTF-8"},
		{"first", ""}, // as the Event says itself
		{"third", "third"},
	}
	for i, note := range notes {
		recorder.Eventf(pod, nil, corev1.EventTypeNormal, "Tested", "Testing", note.emitted)
		r.flush(t)
		event := eventAbout(t, r.clients, namespace, pod.UID)
		assert.Equal(t, "first", event.Note)
		assert.Equal(t, i+1, occurrences(event))
		got, ok := event.Annotations[series.AnnotationLastNote]
		assert.Equal(t, note.want != "", ok)
		assert.Equal(t, note.want, got)
	}
	assert.Empty(t, r.Stats().Dropped)
	r.requireAccounted(t, len(notes))
}

func TestLatestAnnotationsAreMerged(t *testing.T) {
	t.Parallel()
	namespace := apiserver.Namespace(t)
	r := startRecording(t, apiserver.Config(t), events.Options{})
	pod := podIn(namespace, "annotated")
	for i, step := range []struct{ emitted, want map[string]string }{
		{map[string]string{"a": "1"}, map[string]string{"a": "1"}},
		{map[string]string{"b": "2"}, map[string]string{"a": "1", "b": "2"}},
		{map[string]string{"a": "3"}, map[string]string{"a": "3", "b": "2"}},
		{nil, map[string]string{"a": "3", "b": "2"}},
	} {
		annotate(r, pod, step.emitted)
		r.flush(t)
		event := eventAbout(t, r.clients, namespace, pod.UID)
		assert.Equal(t, i+1, occurrences(event))
		assert.Equal(t, step.want, callersAnnotations(event))
	}
	r.requireAccounted(t, 4)
}

// Each of these is fine, but not all together: the server takes 256 KiB.
func TestAnnotationsThatPileUp(t *testing.T) {
	t.Parallel()
	const n = 20
	namespace := apiserver.Namespace(t)
	r := startRecording(t, apiserver.Config(t), events.Options{})
	pod := podIn(namespace, "annotated")
	value := strings.Repeat("a", 30<<10)
	for i := range n {
		annotate(r, pod, map[string]string{fmt.Sprintf("key-%d", i): value})
		r.flush(t)
	}
	event := eventAbout(t, r.clients, namespace, pod.UID)
	require.NotNil(t, event.Series)
	assert.EqualValues(t, n, event.Series.Count)
	assert.Equal(t, map[string]string{"key-0": value, "key-1": value}, callersAnnotations(event))
	assert.Empty(t, r.Stats().Dropped)
	r.requireAccounted(t, n)
}

func annotate(r *recording, pod *corev1.Pod, annotations map[string]string) {
	r.recorder().(events.AnnotatedEventRecorder).AnnotatedEventf(
		pod, nil, annotations, corev1.EventTypeNormal, "Tested", "Testing", "it was tested")
}

// callersAnnotations returns the annotations of an Event that are not this
// project's.
func callersAnnotations(event *eventsv1.Event) map[string]string {
	callers := map[string]string{}
	for key, value := range event.Annotations {
		if !strings.HasPrefix(key, series.AnnotationPrefix) {
			callers[key] = value
		}
	}
	return callers
}
