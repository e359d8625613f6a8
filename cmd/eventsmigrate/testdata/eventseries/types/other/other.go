// Package other is used by another package.
package other

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
)

// Holder holds a recorder.
type Holder struct{ Recorder record.EventRecorder }

// Emit emits an event.
func Emit(r record.EventRecorder, object runtime.Object) {
	r.Eventf(object, "Normal", "Created", "a")
}
