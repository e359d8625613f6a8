package events

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
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

func TestEventfAllocatesNothing(t *testing.T) {
	for name, object := range hotPods(0) {
		runBubble(t, name, func(t *testing.T) { // no time passes, so the note is not sampled
			w := newWorld(t, Options{})
			w.start(t)
			formatted := 0
			args := []any{counter{1, &formatted}}
			emit := func() { w.recorder.Eventf(object, object, "Warning", "BackOff", "Restarting", "note %v", args...) }
			emit()
			emit()
			synctest.Wait()
			formatted = 0
			assert.Zero(t, testing.AllocsPerRun(100, emit))
			assert.Zero(t, formatted)
		})
	}
}
