// Package farther gets the types from package indirect in its tests.
package farther

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"example.com/testdata/eventseries-outside/indirect"
)

func TestFarther(t *testing.T) {
	if r := indirect.Options.Recorder; r != nil {
		r.Eventf(&corev1.Pod{}, "Normal", "Created", "%d", 1)
	}
}
