package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
)

func TestCountingRecorder(t *testing.T) {
	to, emitted := events.NewFakeRecorder(2), newCounter()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	recorder := countingRecorder{to, emitted}
	recorder.Eventf(pod, nil, "Warning", "FailedScheduling", "Scheduling", "no node fits")
	recorder.WithLogger(klog.Background()).Eventf(pod, nil, "Warning", "FailedScheduling", "Scheduling", "no node fits")
	assert.Equal(t, map[string]int{"web": 2}, emitted.counts())
	assert.Len(t, to.Events, 2, "the recorder must pass them on")
}
