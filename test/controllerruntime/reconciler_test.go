package controllerruntime

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/eventseries/eventseries/events"
)

// reconciler calls emit for each object until the manager is to end, and a few
// times more, as one that has its work to finish.
type reconciler struct {
	client.Client
	emit func(object *corev1.ConfigMap)

	emitted atomic.Int64
	looping chan struct{} // closed when it has emitted often
	once    sync.Once
}

// newReconciler adds a reconciler to a manager.
func newReconciler(t *testing.T, mgr manager.Manager, emit func(object *corev1.ConfigMap)) *reconciler {
	t.Helper()
	r := &reconciler{Client: mgr.GetClient(), emit: emit, looping: make(chan struct{})}
	require.NoError(t, ctrl.NewControllerManagedBy(mgr).Named("tester").For(&corev1.ConfigMap{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).Complete(r))
	return r
}

func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var object corev1.ConfigMap
	if err := r.Get(ctx, req.NamespacedName, &object); err != nil {
		if apierrors.IsNotFound(err) {
			err = nil
		}
		return ctrl.Result{}, err
	}
	for last := 0; last < 100; {
		if ctx.Err() != nil {
			last++
		}
		r.emit(&object)
		if r.emitted.Add(1) > 1000 {
			r.once.Do(func() { close(r.looping) })
		}
	}
	return ctrl.Result{}, nil
}

// A reconciler has a recorder of the broadcaster, and the manager starts the
// broadcaster.
func TestReconcilersWithARecorder(t *testing.T) {
	w := newWorld(t)
	broadcaster := w.broadcaster(events.Options{})
	mgr := w.manager(ctrl.Options{})
	require.NoError(t, mgr.Add(broadcaster))
	recorder := broadcaster.NewRecorderWithOptions(mgr.GetScheme(), "example.com/reconciler", events.RecorderOptions{})
	related := &corev1.Secret{}
	related.Namespace, related.Name = w.namespace, "secret"
	r := newReconciler(t, mgr, func(object *corev1.ConfigMap) {
		recorder.AnnotatedEventf(object, related, map[string]string{"example.com/a": "b"},
			corev1.EventTypeWarning, "Missing", "Reading", "%s is not there", related.Name)
	})
	object := w.object("one")
	stop := w.run(mgr)
	w.waitFor("the loop", r.looping)
	stop()
	broadcaster.Shutdown()

	list := w.written("example.com/reconciler")
	require.Len(t, list, 1)
	event := list[0]
	require.NotNil(t, event.Series)
	assert.EqualValues(t, r.emitted.Load(), event.Series.Count)
	assert.Equal(t, "ConfigMap", event.Regarding.Kind, "the manager's scheme knows it")
	assert.Equal(t, object.UID, event.Regarding.UID)
	require.NotNil(t, event.Related)
	assert.Equal(t, "Secret", event.Related.Kind)
	assert.Equal(t, "Reading", event.Action)
	assert.Equal(t, "secret is not there", event.Note)
	assert.Equal(t, "b", event.Annotations["example.com/a"])
	assert.Less(t, broadcaster.Stats().Requests(), uint64(10))
}

// The manager's context ends while reconcilers are emitting. They are emitting still
// when runnables have been told to end.
func TestNothingIsLostByTheEndOfAManager(t *testing.T) {
	for name, start := range map[string]func(*world, *events.Broadcaster) (mgr manager.Manager, emit func(*corev1.ConfigMap, string)){
		"a recorder of the broadcaster": func(w *world, to *events.Broadcaster) (manager.Manager, func(*corev1.ConfigMap, string)) {
			mgr := w.manager(ctrl.Options{})
			require.NoError(w.t, mgr.Add(to))
			recorder := to.NewRecorder(mgr.GetScheme(), "example.com/ending")
			return mgr, func(object *corev1.ConfigMap, reason string) {
				recorder.Eventf(object, nil, corev1.EventTypeNormal, reason, "Testing", "it is tested")
			}
		},
		"a legacy recorder of the manager": func(w *world, to *events.Broadcaster) (manager.Manager, func(*corev1.ConfigMap, string)) {
			mgr := w.manager(w.withLegacy(ctrl.Options{}, to))
			recorder := legacyRecorder(mgr, "example.com/ending")
			return mgr, func(object *corev1.ConfigMap, reason string) {
				recorder.Event(object, corev1.EventTypeNormal, reason, "it is tested")
			}
		},
		"under leader election": func(w *world, to *events.Broadcaster) (manager.Manager, func(*corev1.ConfigMap, string)) {
			mgr := w.manager(w.electing(w.withLegacy(ctrl.Options{}, to)))
			require.NoError(w.t, mgr.Add(to))
			recorder := to.NewRecorder(mgr.GetScheme(), "example.com/ending")
			return mgr, func(object *corev1.ConfigMap, reason string) {
				recorder.Eventf(object, nil, corev1.EventTypeNormal, reason, "Testing", "it is tested")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			broadcaster := w.broadcaster(events.Options{})
			mgr, emit := start(w, broadcaster)
			reasons := [...]string{"One", "Two", "Three"}
			var turn atomic.Int64
			r := newReconciler(t, mgr, func(object *corev1.ConfigMap) {
				emit(object, reasons[turn.Add(1)%int64(len(reasons))])
			})
			for _, name := range []string{"a", "b", "c"} {
				w.object(name)
			}
			func() {
				defer broadcaster.Shutdown()
				stop := w.run(mgr)
				w.waitFor("the loop", r.looping)
				stop()
			}()
			assert.EqualValues(t, r.emitted.Load(), w.counts("example.com/ending")["it is tested"])
			assert.Empty(t, broadcaster.Stats().Dropped)
		})
	}
}
