// Package helper is compiled once more for the tests of package variants, which it imports.
package helper

import (
	corev1 "k8s.io/api/core/v1"

	"example.com/testdata/eventseries/variants"
)

// Emit makes an emitter emit an event.
func Emit(e *variants.Emitter) { e.Emit(&corev1.Pod{}) }
