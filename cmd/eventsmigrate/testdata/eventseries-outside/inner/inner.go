// Package inner gets the types from a package of the patterns that does not change.
package inner

import (
	corev1 "k8s.io/api/core/v1"

	"example.com/testdata/eventseries/options/through"
)

func emit() { through.New().Recorder.Event(&corev1.Pod{}, "Normal", "Created", "a") }
