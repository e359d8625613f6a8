// Package images is not among the patterns.
package images

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
)

// Puller pulls images.
type Puller struct{ recorder record.EventRecorder }

// New returns a Puller.
func New(recorder record.EventRecorder) *Puller { return &Puller{recorder} }

// Pull emits an event.
func (p *Puller) Pull(pod *corev1.Pod) {
	p.recorder.Event(pod, "Normal", "Pulled", "100%")
	p.recorder.AnnotatedEventf(pod, map[string]string{"a": "b"}, "Normal", "Pulled", "%d%%", 100)
}
