package events

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
)

// hotPods returns Pod i in each form that callers have.
func hotPods(i int) map[string]runtime.Object {
	meta := metav1.ObjectMeta{
		Namespace: "some-namespace",
		Name:      fmt.Sprintf("some-deployment-5d4f8c7b9d-%05d", i),
		UID:       types.UID(fmt.Sprintf("3c5f1fd4-0f7a-4f39-9c4a-%012d", i)),
	}
	typeMeta := metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("v1")
	object.SetKind("Pod")
	object.SetNamespace(meta.Namespace)
	object.SetName(meta.Name)
	object.SetUID(meta.UID)
	return map[string]runtime.Object{
		"Typed":           &corev1.Pod{ObjectMeta: meta},
		"TypedWithKind":   &corev1.Pod{TypeMeta: typeMeta, ObjectMeta: meta},
		"Unstructured":    object,
		"PartialMetadata": &metav1.PartialObjectMetadata{TypeMeta: typeMeta, ObjectMeta: meta},
		"ObjectReference": &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: meta.Namespace, Name: meta.Name, UID: meta.UID},
	}
}

// hotLoop emits one occurrence of a running series about object.
func hotLoop(recorder EventRecorder, object, related runtime.Object) {
	recorder.Eventf(object, related, corev1.EventTypeWarning, "BackOff", "Restarting", "back-off restarting failed container")
}

func newHotRecorder(tb testing.TB) EventRecorder {
	broadcaster := NewBroadcasterWithOptions(newServer(), Options{})
	if err := broadcaster.StartRecordingToSinkWithContext(klog.NewContext(context.Background(), klog.Logger{})); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(broadcaster.Shutdown)
	return broadcaster.NewRecorder(scheme.Scheme, "example.com/some-controller")
}

func TestEventfAllocatesNothing(t *testing.T) {
	for name, object := range hotPods(0) {
		runBubble(t, name, func(t *testing.T) { // no time passes, so the note is not sampled
			recorder := newHotRecorder(t)
			formatted := 0
			args := []any{counter{1, &formatted}}
			emit := func() { recorder.Eventf(object, object, "Warning", "BackOff", "Restarting", "note %v", args...) }
			emit()
			emit()
			synctest.Wait()
			formatted = 0
			assert.Zero(t, testing.AllocsPerRun(100, emit))
			assert.Zero(t, formatted)
		})
	}
}

func BenchmarkEventf(b *testing.B) {
	for name, object := range hotPods(0) {
		b.Run(name, func(b *testing.B) {
			recorder := newHotRecorder(b)
			hotLoop(recorder, object, nil)
			b.ReportAllocs()
			for b.Loop() {
				hotLoop(recorder, object, nil)
			}
		})
	}
}

func BenchmarkEventfParallel(b *testing.B) {
	for _, name := range []string{"Same", "Different"} {
		b.Run(name, func(b *testing.B) {
			recorder := newHotRecorder(b)
			var next atomic.Int64
			b.RunParallel(func(pb *testing.PB) {
				i := 0
				if name == "Different" {
					i = int(next.Add(1))
				}
				object := hotPods(i)["Typed"]
				for pb.Next() {
					hotLoop(recorder, object, nil)
				}
			})
		})
	}
}
