package knative

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	"knative.dev/pkg/controller"
)

// The context keeps the fake, so its type must stay.
func TestReconcile(t *testing.T) {
	ctx := controller.WithEventRecorder(context.Background(), record.NewFakeRecorder(1000))
	reconcile(ctx, &corev1.Pod{})
	recorder := controller.GetEventRecorder(ctx).(*record.FakeRecorder)
	if got := <-recorder.Events; got != "Normal Created a" {
		t.Error(got)
	}
}

func TestOwn(t *testing.T) {
	recorder := record.NewFakeRecorder(1)
	own(recorder, &corev1.Pod{})
	if got := <-recorder.Events; got != "Normal PodUpdated a" {
		t.Error(got)
	}
}
