// Package callers is not among the patterns.
package callers

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Emitter is an interface of its own.
type Emitter interface {
	Event(object runtime.Object, eventtype, reason, message string)
}

// Emit can be called by other packages.
func Emit(e Emitter) { e.Event(&corev1.Pod{}, "Normal", "Created", "a") }
