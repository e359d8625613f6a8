// Package indirect gets the types from package between alone.
package indirect

import (
	corev1 "k8s.io/api/core/v1"

	"example.com/testdata/eventseries-outside/between"
)

// Emit emits an event.
func Emit() { between.New().Recorder.Event(&corev1.Pod{}, "Normal", "Created", "a") }

// Options pass on the type.
var Options = between.New()
