package suite

import (
	"testing"

	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

func TestStart(t *testing.T) {
	config, err := (&envtest.Environment{}).Start()
	if err != nil {
		t.Skip(err)
	}
	if _, err := newBroadcaster(kubernetes.NewForConfigOrDie(config)); err != nil {
		t.Fatal(err)
	}
}
