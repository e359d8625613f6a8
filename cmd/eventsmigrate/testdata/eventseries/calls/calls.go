// Package calls contains each form of a call.
package calls

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
)

// EventReason is a reason with a type of its own.
type EventReason string

const (
	ReasonStarted  EventReason = "Started"
	reasonFailed               = "FailedAttachVolume"
	messageStarted             = "the controller has started"
	messageFull                = "the disk is 100% full"
)

type controller struct {
	recorder record.EventRecorder
}

func (c *controller) literals(pod *corev1.Pod) {
	c.recorder.Event(pod, corev1.EventTypeNormal, "SuccessfulCreate", "created")
	c.recorder.Event(pod, "Warning", "VolumeRecycled", "100% of "+`50%`)
	c.recorder.Event(pod, "Normal", reasonFailed, messageStarted)
	c.recorder.Event(pod, "Normal", "Killing", messageFull)
	c.recorder.Event(pod, "Normal", string(ReasonStarted), "started")
}

func (c *controller) formats(pod *corev1.Pod, err error, message string, args ...any) {
	c.recorder.Event(pod, "Warning", "FailedMount", fmt.Sprintf("mount %s: %v", pod.Spec.NodeName, err))
	c.recorder.Event(pod, "Warning", "FailedMount", err.Error())
	c.recorder.Event(pod, "Warning", "FailedMount", fmt.Sprintf(message, args...))
	c.recorder.Event(pod, "Warning", "FailedMount", fmt.Sprintf("%s: %v", args...))
	c.recorder.Eventf(pod, "Warning", "FailedMount", message)
	c.recorder.Eventf(pod, "Warning", "FailedMount", message, args...)
	c.recorder.Eventf(pod, "Warning", "FailedMount", "no arguments")
	c.recorder.Eventf(pod, "Warning", "FailedMount", "a %s", "b")
	c.recorder.Eventf(pod, "Warning", "FailedMount", fmt.Sprintf("a %s", "b"))
	c.recorder.AnnotatedEventf(pod, map[string]string{"a": "b"}, "Normal", "Mounted", "%d", 1)
	c.recorder.AnnotatedEventf(pod, nil, "Normal", "Mounted", "%d", 1)
}

func (c *controller) comments(pod *corev1.Pod) {
	// before
	c.recorder.Event( // behind the parenthesis
		pod,                    // the object
		corev1.EventTypeNormal, /* the type */
		"Pulled",               // the reason
		// above the message
		fmt.Sprintf(
			"pulled %q", // the format
			"image",     // the argument
		),
	)
	c.recorder.Eventf(pod /* a */, "Normal" /* b */, "Pulled" /* c */, "d" /* d */)
}

func (c *controller) reasons(pod *corev1.Pod, reason string) {
	c.recorder.Event(pod, "Warning", "NodeNotReady", "not ready")
	c.recorder.Event(pod, "Warning", "NodeNotReady", "still not ready")
	c.recorder.Event(pod, "Warning", reason, "variable")
	c.recorder.Eventf(pod, "Warning", "Sync", "the reason is the verb")
}
