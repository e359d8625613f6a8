// Package fakes has a hand-written recorder. It imports no package of recorders.
package fakes

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
)

// Recorder records messages.
type Recorder struct{ Messages []string }

// NewRecorder returns a Recorder.
func NewRecorder() *Recorder { return &Recorder{} }

// Event records a message.
func (r *Recorder) Event(object runtime.Object, eventtype, reason, message string) {
	r.Messages = append(r.Messages, reason+" "+message)
}

// Eventf records a message.
func (r *Recorder) Eventf(object runtime.Object, eventtype, reason, messageFmt string, args ...any) {
	r.Event(object, eventtype, reason, fmt.Sprintf(messageFmt, args...))
}

// AnnotatedEventf records a message.
func (r *Recorder) AnnotatedEventf(object runtime.Object, annotations map[string]string, eventtype, reason, messageFmt string, args ...any) {
	r.Eventf(object, eventtype, reason, messageFmt, args...)
}
