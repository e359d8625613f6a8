package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
)

func TestTally(t *testing.T) {
	next := events.NewFakeRecorder(3)
	var counts tally
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
	assert.Equal(t, "Warning BackOff back-off 10", <-next.Events, "all is passed on")
}
