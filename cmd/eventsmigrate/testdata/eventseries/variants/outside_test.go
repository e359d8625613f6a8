package variants_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"

	"example.com/testdata/eventseries/variants"
	"example.com/testdata/eventseries/variants/helper"
)

func TestOutside(t *testing.T) {
	fake := &record.FakeRecorder{Events: make(chan string, 1)}
	helper.Emit(&variants.Emitter{Recorder: fake})
	fake.Event(&corev1.Pod{}, "Normal", "NotThere", "b")
}
