package integration

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/eventseries/eventseries/compat"
	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/series"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// switching is a sink of one group, and then of the other.
type switching struct {
	groups [2]events.EventSink
	now    atomic.Int32
}

func (s *switching) group() events.EventSink { return s.groups[s.now.Load()] }

func (s *switching) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	return s.group().Create(ctx, event)
}

func (s *switching) Update(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	return s.group().Update(ctx, event)
}

func (s *switching) Patch(ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
	return s.group().Patch(ctx, event, data)
}

// A note is whole up to 4 KiB through core/v1. Through events.k8s.io/v1, it is whole up to the limit of the
// server, and the annotation has all of it. A group that is used later makes it whole.
func TestNotesOfAnyLength(t *testing.T) {
	t.Parallel()
	clients, namespace := apiserver.Clientset(t), apiserver.Namespace(t)
	newer, core := &events.EventSinkImpl{Interface: clients.EventsV1()}, compat.NewSink(clients)
	notes := map[string]string{}
	for _, text := range []string{"n", "é", "😀"} {
		for _, length := range []int{0, 1, 1000, 1023, 1024, 1025, 1500, 3000, 4095, 4096, 4097, 10_000} {
			notes[fmt.Sprintf("pod-%d", len(notes))] = strings.Repeat(text, length/len(text))
		}
	}
	check := func(t *testing.T, core bool, given, message string, annotations map[string]string) {
		t.Helper()
		limit := series.MaxNoteBytes
		if core {
			limit = 4096
		}
		require.True(t, utf8.ValidString(message))
		require.LessOrEqual(t, len(message), limit)
		if len(given) <= limit {
			require.Equal(t, given, message)
		} else {
			require.Greater(t, len(message), limit-utf8.UTFMax)
			require.True(t, strings.HasPrefix(given, strings.TrimSuffix(message, "…")))
		}
		if len(given) > limit && !core {
			last := annotations[series.AnnotationLastNote]
			require.Greater(t, len(last), 1024)
			require.True(t, strings.HasPrefix(given, strings.TrimSuffix(last, "…")))
			require.Equal(t, len(given) <= 4096, last == given)
		}
	}
	for name, groups := range map[string][2]events.EventSink{
		"core": {core, core}, "events.k8s.io": {newer, newer}, "core, then events.k8s.io": {core, newer}, "events.k8s.io, then core": {newer, core},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, distinct := range []int{0, 1000} {
				sink := &switching{groups: groups}
				b, err := events.New(sink, events.Options{QPS: 1000})
				require.NoError(t, err)
				require.NoError(t, b.StartRecordingToSinkWithContext(t.Context()))
				defer b.Shutdown()
				id := strings.NewReplacer(", ", "-", ".", "-", " ", "-").Replace(name)
				r := b.NewRecorderWithOptions(nil, id, events.RecorderOptions{DistinctNotes: distinct})
				emit := func() {
					for pod, note := range notes {
						r.Eventf(&corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pod}},
							nil, "Warning", "Denied", "Admit", "%s", note)
					}
					require.NoError(t, b.Flush(t.Context()))
				}
				for turn, group := range groups {
					sink.now.Store(int32(turn))
					emit()
					found := byPod(t, clients, namespace, id)
					require.Len(t, found, len(notes))
					for pod, event := range found {
						isCore := group == core || groups[0] == core
						check(t, isCore, notes[pod], event.Message, event.Annotations)
						if turn == 1 {
							require.EqualValues(t, 2, event.Series.Count)
						}
					}
				}
				assert.Empty(t, b.Stats().Dropped)
				require.NoError(t, clients.CoreV1().Events(namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "reportingComponent=" + id}))
			}
		})
	}
}

func byPod(t *testing.T, clients kubernetes.Interface, namespace, controller string) map[string]*corev1.Event {
	t.Helper()
	list, err := clients.CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "reportingComponent=" + controller})
	require.NoError(t, err)
	found := map[string]*corev1.Event{}
	for i := range list.Items {
		found[list.Items[i].InvolvedObject.Name] = &list.Items[i]
	}
	return found
}
