package main

import (
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
)

// subject is what an Event is about. The demo expects one Event for each.
type subject struct {
	controller string
	regarding  object
	related    object // zero: none
	reason     string
}

// object is one that an Event refers to.
type object struct{ kind, namespace, name string }

func (o object) String() string { return o.kind + "/" + o.name }

func newSubject(controller string, regarding, related *corev1.ObjectReference, reason string) subject {
	return subject{
		controller: controller,
		regarding:  newObject(regarding),
		related:    newObject(related),
		reason:     reason,
	}
}

// subjectOf returns what an Event on the server is about.
func subjectOf(event *eventsv1.Event) subject {
	return newSubject(event.ReportingController, &event.Regarding, event.Related, event.Reason)
}

func newObject(ref *corev1.ObjectReference) object {
	if ref == nil {
		return object{}
	}
	return object{kind: ref.Kind, namespace: ref.Namespace, name: ref.Name}
}

// String names the subject in a line for people.
func (s subject) String() string {
	text := s.regarding.String() + " " + s.reason
	if s.related != (object{}) {
		text += " (" + s.related.String() + ")"
	}
	return text
}
