// Package hostile contains what a move breaks easily.
package hostile

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
)

type controller struct{ record.EventRecorder }

func (c *controller) messages(pod *corev1.Pod, n int) {
	c.Event(pod, "Normal", "Created", "\x25 \u0025 %")
	c.Event(pod, "Normal", "Created", (fmt.Sprintf("a %d", n)))
	c.Event(pod, "Normal", "Created", fmt.Sprintf( // a, b
		"a %d",
		n, // c, d
	))
	c.Event(pod /* a */, "Normal", "Created" /* b */, "c" /* d */)
	c.AnnotatedEventf(pod, nil /* none */, "Normal", "Created", "a")
}

func (c *controller) annotated(pod *corev1.Pod) {
	c.AnnotatedEventf(pod, map[string]string{"a": "b"}, "Normal", "Created", "a")
}

func (c *controller) reasons(pod *corev1.Pod) {
	c.Event(pod, "Normal", "Create:a", "not the name of an action")
	c.Event(pod, "Normal", "a\nb", "two lines")
	c.Event(pod, "Normal", "éa", "not ASCII")
}

func shadowed(object record.EventRecorder) any { return object.Event }

func builtins(list []record.EventRecorder, recorder record.EventRecorder) []record.EventRecorder {
	fake := new(record.FakeRecorder)
	fake.Events = make(chan string, 1)
	byName := map[string]record.EventRecorder{}
	delete(byName, "a")
	copy(list[1:], list)
	return append(append(list, recorder, fake), list...)
}
