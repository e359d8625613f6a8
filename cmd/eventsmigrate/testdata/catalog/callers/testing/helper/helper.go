// Package helper has the path of a package for tests, and the program calls it.
package helper

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
)

// Emit emits an event.
func Emit(r record.EventRecorder, object runtime.Object) {
	if !testing.Testing() {
		r.
			Event(object, "Normal", "WantHelper", "note")
	}
}

// Unused emits an event of tests.
func Unused(_ *testing.T, r record.EventRecorder, object runtime.Object) {
	r.
		Event(object, "Normal", "OfTests", "note")
}
