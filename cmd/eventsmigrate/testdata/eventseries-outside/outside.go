// Package outside is not among the patterns. It changes only with the others.
package outside

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"

	"example.com/testdata/eventseries/seen"
)

func emit(recorder record.EventRecorder) { seen.Emit(recorder, &corev1.Pod{}) }

func unrelated(recorder record.EventRecorder) {
	recorder.Event(&corev1.Pod{}, "Normal", "Created", "a")
}

// Exported can be called by packages that import only this one.
func Exported(recorder record.EventRecorder) { seen.Kept(recorder, &corev1.Pod{}) }
