package callers

import (
	"testing"

	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"example.com/testdata/eventseries-outside/images"
	"example.com/testdata/eventseries-outside/plain"
	"example.com/testdata/eventseries/handwritten/fakes"
)

func TestOthers(t *testing.T) {
	images.New(fakes.NewRecorder())
	Emit(fakes.NewRecorder())
	plain.New(fakes.NewRecorder())
	_ = resourcelock.ResourceLockConfig{EventRecorder: fakes.NewRecorder()}
}
