package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
)

func TestSubjectString(t *testing.T) {
	assert.Equal(t, "Node/worker-3 NodeNotReady",
		newSubject("c", &corev1.ObjectReference{Kind: "Node", Name: "worker-3"}, nil, "NodeNotReady").String())
	assert.Equal(t, "ReplicaSet/web SuccessfulCreate (Pod/web-1)",
		newSubject("c", &corev1.ObjectReference{Kind: "ReplicaSet", Name: "web"}, &corev1.ObjectReference{Kind: "Pod", Name: "web-1"}, "SuccessfulCreate").String())
}

func TestSubjectIgnoresWhatChangesWithEachOccurrence(t *testing.T) {
	event := &eventsv1.Event{ReportingController: "c", Reason: "R", Note: "first", Regarding: corev1.ObjectReference{Kind: "Pod", Name: "p", ResourceVersion: "1"}}
	first := subjectOf(event)
	event.Note, event.Regarding.ResourceVersion = "second", "2"
	assert.Equal(t, first, subjectOf(event))
}
