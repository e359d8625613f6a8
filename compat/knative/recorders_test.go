package knative

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	legacy "k8s.io/client-go/tools/record"

	"github.com/eventseries/eventseries/compat/record"
)

type key struct{}

func withRecorder(ctx context.Context, r legacy.EventRecorder) context.Context {
	return context.WithValue(ctx, key{}, r)
}

// Each controller has a recorder with its name, and all emit to one broadcaster, which
// writes with the client of the context.
func TestConstructor(t *testing.T) {
	clientset := fake.NewClientset()
	clients := 0
	broadcaster := record.NewBroadcaster()
	recorders := NewRecorders(broadcaster, func(context.Context) kubernetes.Interface { clients++; return clientset }, withRecorder)
	pod := &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "web"}
	for _, name := range []string{"one", "two"} {
		construct := Constructor(recorders, name, func(ctx context.Context, watcher string) int {
			ctx.Value(key{}).(legacy.EventRecorder).Event(pod, "Normal", "Tested", "from "+name+" with "+watcher)
			return len(watcher)
		})
		assert.Equal(t, 7, construct(t.Context(), "watcher"))
	}
	broadcaster.Shutdown()
	assert.Equal(t, 1, clients)
	list, err := clientset.CoreV1().Events("shop").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	got := map[string]string{}
	for _, e := range list.Items {
		got[e.Source.Component] = e.Message
	}
	assert.Equal(t, map[string]string{"one": "from one with watcher", "two": "from two with watcher"}, got)
}
