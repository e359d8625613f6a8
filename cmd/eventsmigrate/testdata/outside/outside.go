// Package outside is not among the patterns.
package outside

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"

	"example.com/testdata/eventseries/seen"
)

func emit(recorder record.EventRecorder) { seen.Emit(recorder, &corev1.Pod{}) }
