package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/client-go/tools/events"
)

func TestCounter(t *testing.T) {
	next := events.NewFakeRecorder(3)
	var counts counter
	recorder := counts.recorder("kubelet", next)
	pod, other := newPod("a"), newPod("b")
	recorder.Eventf(pod, nil, corev1.EventTypeWarning, "BackOff", "Restarting", "back-off %d", 10)
	pod.ResourceVersion = "2"
	recorder.Eventf(pod, nil, corev1.EventTypeWarning, "BackOff", "Restarting", "back-off %d", 20)
	recorder.Eventf(pod, other, corev1.EventTypeWarning, "BackOff", "Restarting", "back-off %d", 30)

	a, b := object{"Pod", namespace, "a"}, object{"Pod", namespace, "b"}
	assert.Equal(t, map[subject]int{
		{controller: "kubelet", regarding: a, reason: "BackOff"}:             2,
		{controller: "kubelet", regarding: a, related: b, reason: "BackOff"}: 1,
	}, counts.emitted())
	assert.Equal(t, 3, sum(counts.emitted()))
	assert.Equal(t, "Warning BackOff back-off 10", <-next.Events)
}

func TestSubject(t *testing.T) {
	assert.Equal(t, "Node/worker-3 NodeNotReady",
		newSubject("c", &corev1.ObjectReference{Kind: "Node", Name: "worker-3"}, nil, "NodeNotReady").String())
	assert.Equal(t, "ReplicaSet/web SuccessfulCreate (Pod/web-1)",
		newSubject("c", &corev1.ObjectReference{Kind: "ReplicaSet", Name: "web"}, &corev1.ObjectReference{Kind: "Pod", Name: "web-1"}, "SuccessfulCreate").String())

	event := &eventsv1.Event{ReportingController: "c", Reason: "R", Note: "first", Regarding: corev1.ObjectReference{Kind: "Pod", Name: "p", ResourceVersion: "1"}}
	first := subjectOf(event)
	event.Note, event.Regarding.ResourceVersion = "second", "2"
	assert.Equal(t, first, subjectOf(event), "the note and the resourceVersion do not matter")
}
