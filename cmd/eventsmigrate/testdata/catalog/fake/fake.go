// Package fake exists for tests, so its events do not count.
package fake

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
)

// Emit emits an event.
func Emit(object runtime.Object) {
	var r record.EventRecorder = record.NewFakeRecorder(1)
	r.Event(object, "Normal", "OfAFakePackage", "note")
}
