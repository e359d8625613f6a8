package imports

import (
	"strings"
	"time"

	// The comment describes the import below it.
	corev1 "k8s.io/api/core/v1"
	legacy "k8s.io/client-go/tools/record"
)

// A method expression stays.
func stays(r legacy.EventRecorder, pod *corev1.Pod) {
	emit := legacy.EventRecorder.Event
	emit(r, pod, "Normal", "Created", "a")
}

// One that is called receives an adapter: its first parameter is the receiver.
func staysToo(r legacy.EventRecorder, pod *corev1.Pod, d time.Duration) {
	legacy.EventRecorder.Event(r, pod, "Normal", "Created", "a")
	(*sink).keep(&sink{}, r)
	_ = time.Duration.Seconds(d)
	_ = (*strings.Builder).Cap(new(strings.Builder))
	_, _ = (*strings.Builder).WriteString(new(strings.Builder), "a")
}

type sink struct{ recorder legacy.EventRecorder }

func (s *sink) keep(r legacy.EventRecorder) { s.recorder = r }

// An import of compat/record has an effect here.
func broadcasts() legacy.EventBroadcaster { return legacy.NewBroadcaster() }
