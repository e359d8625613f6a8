// Package options has types that packages outside of the patterns pass on: package between
// imports this one, and others get its types from there.
package options

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
)

// Options have a recorder.
type Options struct{ Recorder record.EventRecorder }

// Run emits an event.
func (o *Options) Run() { o.Recorder.Event(&corev1.Pod{}, "Normal", "Created", "a") }
