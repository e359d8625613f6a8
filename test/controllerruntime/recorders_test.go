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
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/eventseries/eventseries/compat"
	"github.com/eventseries/eventseries/controllerruntime"
	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// The second replica of a controller writes nothing before it leads. Then it continues
// the series of the first one.
func TestNewLeaderContinuesSeries(t *testing.T) {
	const name, each = "example.com/replicated", 100
	w := newWorld(t)
	object := w.object("one")
	regarding := &corev1.ObjectReference{ // the recorders have no scheme
		APIVersion: "v1", Kind: "ConfigMap", Namespace: object.Namespace, Name: object.Name, UID: object.UID,
	}
	type replica struct {
		*events.Broadcaster
		elected        <-chan struct{}
		stop           func()
		writes, leases *atomic.Int64 // requests
	}
	newReplica := func(instance string, newManager func(*rest.Config, ctrl.Options, *events.Broadcaster) (manager.Manager, error)) *replica {
		config, writes := countRequests(t, "/events")
		broadcaster := w.broadcaster(config, events.Options{Scope: events.SameController, ReportingInstance: instance})
		config, leases := countRequests(t, "/leases/")
		mgr, err := newManager(config, w.electing(w.options(ctrl.Options{})), broadcaster)
		require.NoError(t, err)
		return &replica{Broadcaster: broadcaster, elected: mgr.Elected(), stop: w.run(mgr), writes: writes, leases: leases}
	}
	emit := func(r *replica) {
		recorder := r.NewRecorder(nil, name)
		for range each {
			recorder.Eventf(regarding, nil, corev1.EventTypeWarning, "Failed", "Trying", "it failed")
		}
	}

	// The first replica adds the broadcaster to a plain manager.
	first := newReplica("first", func(config *rest.Config, opts ctrl.Options, to *events.Broadcaster) (manager.Manager, error) {
		opts.EventBroadcaster = compat.NewBroadcasterFor(to, compat.Options{}) //nolint:staticcheck // tested here
		mgr, err := ctrl.NewManager(config, opts)
		if err != nil {
			return nil, err
		}
		return mgr, mgr.Add(to)
	})
	w.waitFor("the first election", first.elected)
	second := newReplica("second", controllerruntime.NewManager)
	emit(second)
	emit(first)
	w.flush(first.Broadcaster)
	require.Eventually(t, func() bool { return second.leases.Load() >= 5 }, patience, apiserver.PollInterval)
	assert.Zero(t, second.writes.Load(), "it does not lead")
	assert.Equal(t, map[string]int{"it failed": each}, w.counts(name))

	first.stop()
	first.Shutdown()
	w.waitFor("the second election", second.elected)
	emit(second)
	second.stop()
	second.Shutdown()
	list := w.written(name)
	require.Len(t, list, 1)
	require.NotNil(t, list[0].Series)
	assert.EqualValues(t, 3*each, list[0].Series.Count)
	assert.Equal(t, "first", list[0].ReportingInstance, "the instance that began the series")

	// Leader election uses the identity of the process as its component. As a
	// controller name, it would be a new controller for each process.
	var notes []string
	for _, event := range w.written(compat.LeaderElection) {
		_, note, _ := strings.Cut(event.Note, " ")
		notes = append(notes, event.Regarding.Kind+" "+event.Regarding.Name+": "+note)
	}
	const became, stopped = "Lease leader: became leader", "Lease leader: stopped leading"
	assert.ElementsMatch(t, []string{became, became, stopped, stopped}, notes)
}

// patience bounds every wait. It is long because the tests share few cores with a
// server and the race detector.
const patience = time.Minute

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(apiserver.Main(m))
}

// world is a namespace on a real server.
type world struct {
	t         *testing.T
	namespace string
	clients   *kubernetes.Clientset // of an administrator
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{t: t, namespace: apiserver.Namespace(t), clients: apiserver.Clientset(t)}
}

// broadcaster returns a broadcaster with its own clients. The end of the test shuts it
// down.
func (w *world) broadcaster(config *rest.Config, opts events.Options) *events.Broadcaster {
	w.t.Helper()
	opts.Namespaces, opts.List = []string{w.namespace}, ptr.To(false)
	broadcaster, err := events.New(&events.EventSinkImpl{Interface: apiserver.ClientsetFor(w.t, config).EventsV1()}, opts)
	require.NoError(w.t, err)
	w.t.Cleanup(broadcaster.Shutdown)
	return broadcaster
}

// options completes the options of a manager, which watches only this namespace and
// opens no port.
func (w *world) options(opts ctrl.Options) ctrl.Options {
	opts.Controller = config.Controller{SkipNameValidation: new(true)} // all tests use the same name
	opts.Cache = cache.Options{DefaultNamespaces: map[string]cache.Config{w.namespace: {}}}
	opts.Metrics = server.Options{BindAddress: "0"}
	return opts
}

// electing adds leader election to the options of a manager. A stopping leader
// releases the lease, so no test waits for it to expire.
func (w *world) electing(opts ctrl.Options) ctrl.Options {
	opts.LeaderElection = true
	opts.LeaderElectionID = "leader"
	opts.LeaderElectionNamespace = w.namespace
	opts.LeaderElectionReleaseOnCancel = true
	opts.RetryPeriod = new(100 * time.Millisecond)
	opts.LeaseDuration, opts.RenewDeadline = new(patience), new(patience/2) // for slow machines
	return opts
}

// run starts a manager. stop cancels its context and waits until it returns. The end of
// the test calls stop too.
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

func (w *world) object(name string) *corev1.ConfigMap {
	w.t.Helper()
	object, err := w.clients.CoreV1().ConfigMaps(w.namespace).Create(w.t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name},
	}, metav1.CreateOptions{})
	require.NoError(w.t, err)
	return object
}

func (w *world) written(controller string) []eventsv1.Event {
	w.t.Helper()
	list, err := w.clients.EventsV1().Events(w.namespace).List(w.t.Context(), metav1.ListOptions{
		FieldSelector: "reportingController=" + controller,
	})
	require.NoError(w.t, err)
	return list.Items
}

// counts returns the number of occurrences on the server by note.
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

func (w *world) waitFor(what string, closed <-chan struct{}) {
	w.t.Helper()
	select {
	case <-closed:
	case <-time.After(patience):
		require.Fail(w.t, "timeout: "+what)
	}
}

func (w *world) flush(broadcaster *events.Broadcaster) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	require.NoError(w.t, broadcaster.Flush(ctx))
}

// countRequests returns a client configuration and the number of its requests whose
// paths contain part.
func countRequests(t *testing.T, part string) (*rest.Config, *atomic.Int64) {
	t.Helper()
	config, n := apiserver.Config(t), new(atomic.Int64)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return promhttp.RoundTripperFunc(func(req *http.Request) (*http.Response, error) {
			if strings.Contains(req.URL.Path, part) {
				n.Add(1)
			}
			return next.RoundTrip(req)
		})
	})
	return config, n
}
