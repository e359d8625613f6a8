package record

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"

	"github.com/eventseries/eventseries/compat"
	"github.com/eventseries/eventseries/internal/legacyrecorder"
)

// The API server restricts reportingComponent, but not source.
func TestSourceIsAsGiven(t *testing.T) {
	for _, source := range []corev1.EventSource{
		{Component: "tester"},
		{Component: "tester", Host: "node-1"},
		{Component: "tester", Host: "tester-0"},
		{Component: "two words", Host: strings.Repeat("h", 200)},
		{Component: "host_6ba7b810-9dad-11d1-80b4-00c04fd430c8"},
	} {
		synctest.Test(t, func(t *testing.T) {
			sink := &legacySink{}
			broadcaster := NewBroadcaster()
			broadcaster.StartRecordingToSink(sink)
			var watched []*corev1.Event
			broadcaster.StartEventWatcher(func(event *corev1.Event) { watched = append(watched, event) })
			recorder := broadcaster.NewRecorder(scheme.Scheme, source)
			for range 2 {
				recorder.WithLogger(klog.Background()).Event(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}, "Normal", "Tested", "note")
				synctest.Wait()
			}
			broadcaster.Shutdown()
			require.Len(t, sink.created, 1)
			require.Len(t, sink.patched, 1)
			require.Len(t, watched, 2)
			for _, event := range append(watched, sink.created[0], sink.patched[0]) {
				assert.Equal(t, source, event.Source)
			}
			assert.NotContains(t, sink.patches[0], `"source"`, "the Event can be that of another leader")
			assert.EqualValues(t, 2, sink.patched[0].Count)
		})
	}
}

// A structured recorder writes the source, the related object, and the action.
func TestStructuredRecorderHasTheSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &legacySink{}
		broadcaster := NewBroadcaster()
		broadcaster.StartRecordingToSink(sink)
		source := corev1.EventSource{Component: "two words", Host: "node-1"}
		recorder := compat.NewStructuredRecorder(broadcaster.NewRecorder(scheme.Scheme, source))
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}
		recorder.Eventf(pod, &corev1.ObjectReference{Kind: "Node", Name: "b"}, "Normal", "Tested", "Test", "note")
		synctest.Wait()
		broadcaster.Shutdown()
		require.Len(t, sink.created, 1)
		assert.Equal(t, source, sink.created[0].Source)
		assert.Equal(t, "Test", sink.created[0].Action)
		assert.Equal(t, "b", sink.created[0].Related.Name)
	})
}

// Sources that become the same reporting controller and instance have Events of their own.
func TestSourcesOfOneIdentity(t *testing.T) {
	host, err := os.Hostname()
	require.NoError(t, err)
	for name, sources := range map[string][]corev1.EventSource{
		"components":       {{Component: "two words"}, {Component: "two-words"}, {Component: "two.words"}, {Component: "two/words?"}, {Component: "two/words!"}},
		"candidates":       {{Component: "a_6ba7b810-9dad-11d1-80b4-00c04fd430c8"}, {Component: "a_6ba7b811-9dad-11d1-80b4-00c04fd430c8"}},
		"hosts":            {{Component: "tester", Host: "tester-" + host}, {Component: "tester"}, {Component: "tester", Host: "node-1"}},
		"hosts and a name": {{Component: "two words", Host: "node-1"}, {Component: "two-words", Host: "node-1"}},
		"long components":  {{Component: strings.Repeat("c", 63)}, {Component: strings.Repeat("c", 62) + "!"}, {Component: strings.Repeat("c", 62) + "?"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sink := &legacySink{}
				broadcaster := NewBroadcaster()
				broadcaster.StartRecordingToSink(sink)
				var watched []corev1.EventSource
				broadcaster.StartEventWatcher(func(event *corev1.Event) { watched = append(watched, event.Source) })
				recorders := make([]EventRecorder, 2*len(sources))
				for i := range recorders {
					recorders[i] = broadcaster.NewRecorder(scheme.Scheme, sources[i%len(sources)])
				}
				for range 2 {
					for _, recorder := range recorders {
						recorder.Event(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}, "Normal", "Tested", "note")
						synctest.Wait()
					}
				}
				broadcaster.Shutdown()
				var created []corev1.EventSource
				for _, event := range sink.created {
					created = append(created, event.Source)
				}
				assert.Equal(t, sources, created)
				assert.Equal(t, slices.Repeat(sources, 4), watched)
				counts := make(map[corev1.EventSource]int32)
				for _, event := range sink.patched {
					counts[event.Source] = event.Count
				}
				for _, source := range sources {
					assert.EqualValues(t, 4, counts[source])
				}
			})
		})
	}
}

// Programs make recorders for objects, or for each candidate of an election.
func TestSourcesAreBounded(t *testing.T) {
	broadcaster := NewBroadcaster().(*Broadcaster)
	sources := &broadcaster.sink.sources
	inUse := identityOf(broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "two words"}).(*legacyrecorder.Recorder))
	for i := range 2 * maxSources {
		broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "tester", Host: fmt.Sprint("node-", i)})
		source, ok := sources.of(inUse) // as each write does
		require.True(t, ok)
		require.Equal(t, "two words", source.Component)
	}
	assert.Equal(t, maxSources, sources.known.Len())
}
