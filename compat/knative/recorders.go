package knative

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
)

// Recorders provides the controllers of a program with recorders of one broadcaster.
// Create it with [NewRecorders]. It is safe for concurrent use.
type Recorders struct {
	broadcaster  record.EventBroadcaster
	client       func(context.Context) kubernetes.Interface
	withRecorder func(context.Context, record.EventRecorder) context.Context
	start        sync.Once
}

// NewRecorders returns Recorders that emit to a broadcaster, usually that of
// compat/record. The caller shuts the broadcaster down.
//
// The first [Constructor] that runs starts the recording, with the client that the
// function client, usually Get of knative.dev/pkg/client/injection/kube/client, finds in
// its context. The function withRecorder is WithEventRecorder of
// knative.dev/pkg/controller.
func NewRecorders(broadcaster record.EventBroadcaster, client func(context.Context) kubernetes.Interface,
	withRecorder func(context.Context, record.EventRecorder) context.Context,
) *Recorders {
	return &Recorders{broadcaster: broadcaster, client: client, withRecorder: withRecorder}
}

// Constructor returns a constructor for sharedmain that does what construct does, with a
// recorder for the controller called name in the context. W and I are the types of
// knative's injection.ControllerConstructor, which the compiler infers.
func Constructor[W, I any](r *Recorders, name string, construct func(context.Context, W) I) func(context.Context, W) I {
	return func(ctx context.Context, watcher W) I {
		r.start.Do(func() {
			r.broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: r.client(ctx).CoreV1().Events("")})
		})
		// Generated controllers add their types to this scheme.
		recorder := r.broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: name})
		return construct(r.withRecorder(ctx, recorder), watcher)
	}
}
