package knative

import (
	"context"
	"os"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	"knative.dev/pkg/client/injection/kube/informers/core/v1/pod"
	podreconciler "knative.dev/pkg/client/injection/kube/reconciler/core/v1/pod"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/injection"
	"knative.dev/pkg/injection/sharedmain"
	"knative.dev/pkg/reconciler"
	"knative.dev/pkg/signals"

	"github.com/eventseries/eventseries/compat/knative"
	"github.com/eventseries/eventseries/compat/record"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

func TestMain(m *testing.M) { os.Exit(apiserver.Main(m)) }

// program is the main function in docs/migration.md. Tests do not run it, because
// sharedmain listens on all addresses.
func program() {
	ctx := signals.NewContext()
	broadcaster := record.NewBroadcaster() // of compat/record
	defer broadcaster.Shutdown()
	recorders := knative.NewRecorders(broadcaster, kubeclient.Get, controller.WithEventRecorder)
	sharedmain.MainWithContext(ctx, "backup",
		knative.Constructor(recorders, "backup-controller", NewController), // was NewController
	)
}

var _ = program

// NewController returns a controller with a generated reconciler.
func NewController(ctx context.Context, _ configmap.Watcher) *controller.Impl {
	e := &emitter{done: make(chan struct{})}
	impl := podreconciler.NewImpl(ctx, e)
	e.enqueue = impl.Enqueue
	_, _ = pod.Get(ctx).Informer().AddEventHandler(controller.HandleAll(impl.Enqueue))
	return impl
}

const occurrences = 300

// emitter is the hand-written part of a controller. It returns the same event for each
// reconciliation, which the generated part emits, and asks for the next one.
type emitter struct {
	enqueue func(any)
	emitted atomic.Int64
	done    chan struct{} // closes when it has emitted enough
}

// ReconcileKind implements podreconciler.Interface.
func (e *emitter) ReconcileKind(_ context.Context, pod *corev1.Pod) reconciler.Event {
	switch n := e.emitted.Add(1); {
	case n > occurrences:
		return nil
	case n == occurrences:
		close(e.done)
	default:
		defer e.enqueue(pod)
	}
	return reconciler.NewEvent(corev1.EventTypeWarning, "NotReady", "the pod is not ready")
}

// The server knows every occurrence of a generated reconciler after a clean stop.
func TestGeneratedReconciler(t *testing.T) {
	clientset, namespace := apiserver.Clientset(t), apiserver.Namespace(t)
	created, err := clientset.CoreV1().Pods(namespace).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)

	t.Setenv("SYSTEM_NAMESPACE", namespace) // of the program
	broadcaster := record.NewBroadcaster()
	defer broadcaster.Shutdown()
	recorders := knative.NewRecorders(broadcaster, kubeclient.Get, controller.WithEventRecorder)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ctx, startInformers := injection.EnableInjectionOrDie(injection.WithNamespaceScope(ctx, namespace), apiserver.Config(t))
	e := &emitter{done: make(chan struct{})}
	construct := knative.Constructor(recorders, "backup-controller", func(ctx context.Context, _ configmap.Watcher) *controller.Impl {
		impl := podreconciler.NewImpl(ctx, e)
		e.enqueue = impl.Enqueue
		return impl
	})
	impl := construct(ctx, nil)
	startInformers()
	stopped := make(chan error, 1)
	go func() { stopped <- controller.StartAll(ctx, impl) }()
	impl.Enqueue(created)
	<-e.done
	cancel()
	require.NoError(t, <-stopped)
	broadcaster.Shutdown()

	list, err := clientset.CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=NotReady"})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	assert.EqualValues(t, occurrences, list.Items[0].Count)
	assert.Equal(t, "backup-controller", list.Items[0].Source.Component)
}
