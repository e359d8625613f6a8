package controllerruntime

import (
	"context"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/eventseries/eventseries/compat"
	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// patience bounds every wait for something that takes a moment. It is long,
// because the tests share few cores with a server and the race detector.
const patience = time.Minute

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(apiserver.Main(m))
}

// world is a namespace of a real server.
type world struct {
	t         *testing.T
	namespace string
	clients   *kubernetes.Clientset // an administrator's, to look at what is there
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{t: t, namespace: apiserver.Namespace(t), clients: apiserver.Clientset(t)}
}

// sink returns a sink of events.k8s.io/v1 with clients of its own.
func (w *world) sink(config *rest.Config) events.EventSink {
	w.t.Helper()
	clients, err := kubernetes.NewForConfig(config)
	require.NoError(w.t, err)
	return &events.EventSinkImpl{Interface: clients.EventsV1()}
}

// broadcaster returns a broadcaster that is shut down at the end of the test, if it
// has not been before.
func (w *world) broadcaster(opts events.Options) *events.Broadcaster {
	w.t.Helper()
	opts.Namespaces = []string{w.namespace}
	broadcaster := events.NewBroadcasterWithOptions(w.sink(apiserver.Config(w.t)), opts)
	w.t.Cleanup(broadcaster.Shutdown)
	return broadcaster
}

// legacyBroadcaster is broadcaster for the options of a manager.
func (w *world) legacyBroadcaster() *compat.Broadcaster {
	w.t.Helper()
	return compat.NewBroadcasterFor(w.broadcaster(events.Options{}), compat.Options{})
}

// options fills in what a test does not care for. The manager sees this namespace
// alone, and opens no port.
func (w *world) options(opts ctrl.Options) ctrl.Options {
	skip := true
	opts.Controller = config.Controller{SkipNameValidation: &skip} // there are many tests in one process
	opts.Metrics = server.Options{BindAddress: "0"}
	opts.Cache = cache.Options{DefaultNamespaces: map[string]cache.Config{w.namespace: {}}}
	return opts
}

// electing adds leader election to the options. A leader that ends gives the lease
// back, so the tests wait for nothing to expire.
func (w *world) electing(opts ctrl.Options) ctrl.Options {
	retry := 100 * time.Millisecond
	opts.LeaderElection = true
	opts.LeaderElectionID = "leader"
	opts.LeaderElectionNamespace = w.namespace
	opts.LeaderElectionReleaseOnCancel = true
	opts.RetryPeriod = &retry
	lease, renew := patience, patience/2 // nobody loses it for a slow machine
	opts.LeaseDuration, opts.RenewDeadline = &lease, &renew
	return opts
}

// manager returns controller-runtime's own.
func (w *world) manager(opts ctrl.Options) manager.Manager {
	w.t.Helper()
	mgr, err := ctrl.NewManager(apiserver.Config(w.t), w.options(opts))
	require.NoError(w.t, err)
	return mgr
}

// run starts a manager. The function that it returns ends the manager's context and
// waits until the manager has returned; the end of the test calls it as well.
func (w *world) run(mgr manager.Manager) (stop func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(w.t, <-ended)
	})
	w.t.Cleanup(stop)
	return stop
}

// object creates an object to reconcile.
func (w *world) object(name string) *corev1.ConfigMap {
	w.t.Helper()
	object, err := w.clients.CoreV1().ConfigMaps(w.namespace).Create(w.t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name},
	}, metav1.CreateOptions{})
	require.NoError(w.t, err)
	return object
}

// written returns the Events of a controller in the namespace.
func (w *world) written(controller string) []eventsv1.Event {
	w.t.Helper()
	list, err := w.clients.EventsV1().Events(w.namespace).List(w.t.Context(), metav1.ListOptions{
		FieldSelector: "reportingController=" + controller,
	})
	require.NoError(w.t, err)
	return list.Items
}

// counts returns how many occurrences there are on the server of each note.
func (w *world) counts(controller string) map[string]int {
	w.t.Helper()
	counts := make(map[string]int)
	for _, event := range w.written(controller) {
		n := 1
		if event.Series != nil {
			n = int(event.Series.Count)
		}
		counts[event.Note] += n
	}
	return counts
}

// waitFor waits until a channel is closed.
func (w *world) waitFor(what string, closed <-chan struct{}) {
	w.t.Helper()
	select {
	case <-closed:
	case <-time.After(patience):
		require.Fail(w.t, what+" takes too long")
	}
}

// countRequests makes the clients of a configuration count the requests whose paths
// have the given part.
func countRequests(config *rest.Config, part string) *atomic.Int64 {
	n := new(atomic.Int64)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			if strings.Contains(req.URL.Path, part) {
				n.Add(1)
			}
			return next.RoundTrip(req)
		})
	})
	return n
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
