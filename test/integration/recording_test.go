package integration

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/series"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

const (
	// controller is the reporting controller of all recordings.
	controller = "example.com/integration-test"

	// eventsResource is how Requests calls what the recorder writes.
	eventsResource = "events.events.k8s.io"

	// patience bounds every wait for something that takes a moment. It is long,
	// because the tests share few cores with a server and the race detector.
	patience = time.Minute
)

// recording is a broadcaster that writes to a real server, and what that takes.
type recording struct {
	*events.Broadcaster
	// requests are those of the broadcaster and of nobody else.
	requests *Requests
	// clients are an administrator's, to look at what is on the server.
	clients  *kubernetes.Clientset
	instance string
}

// newRecording makes a broadcaster for the server of config, which its clients
// are made of as well. It is shut down at the end of the test.
func newRecording(t *testing.T, config *rest.Config, opts events.Options) *recording {
	t.Helper()
	return newRecordingTo(t, eventsSink, config, opts)
}

// eventsSink makes the sink that recordings have unless a test says otherwise.
func eventsSink(clients *kubernetes.Clientset) events.EventSink {
	return &events.EventSinkImpl{Interface: clients.EventsV1()}
}

// newRecordingTo is newRecording for a sink that is made by the given function.
func newRecordingTo(t *testing.T, newSink func(*kubernetes.Clientset) events.EventSink, config *rest.Config, opts events.Options) *recording {
	t.Helper()
	if len(opts.Namespaces) == 0 {
		opts.SkipList = true // the tests count requests
	}
	if opts.ReportingInstance == "" {
		opts.ReportingInstance = "test-" + rand.String(10)
	}
	admin := rest.CopyConfig(config)
	admin.Impersonate = rest.ImpersonationConfig{}
	config = rest.CopyConfig(config)
	requests := CountRequests(config)
	r := &recording{
		Broadcaster: events.NewBroadcasterWithOptions(newSink(apiserver.ClientsetFor(t, config)), opts),
		requests:    requests,
		clients:     apiserver.ClientsetFor(t, admin),
		instance:    opts.ReportingInstance,
	}
	t.Cleanup(r.Shutdown)
	return r
}

// startRecording is newRecording and start. Nothing is listed, since the tests
// count requests.
func startRecording(t *testing.T, config *rest.Config, opts events.Options) *recording {
	t.Helper()
	opts.SkipList = true
	r := newRecording(t, config, opts)
	r.start(t)
	return r
}

// start starts the writing. The broadcaster logs to the test's log.
func (r *recording) start(t *testing.T) {
	t.Helper()
	ctx := klog.NewContext(t.Context(), ktesting.NewLogger(t, ktesting.NewConfig()))
	require.NoError(t, r.StartRecordingToSinkWithContext(ctx))
}

// recorder returns a recorder for client-go's types.
func (r *recording) recorder() events.EventRecorderLogger {
	return r.NewRecorder(scheme.Scheme, controller)
}

// flush waits until all that was emitted is on the server.
func (r *recording) flush(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, r.Flush(ctx))
}

// waitForgotten waits until no series is tracked: what is on the server already
// may not have been answered yet.
func (r *recording) waitForgotten(t *testing.T) {
	t.Helper()
	apiserver.Eventually(t, patience, func(context.Context) error {
		if n := r.Stats().Tracked; n != 0 {
			return fmt.Errorf("%d series are tracked", n)
		}
		return nil
	})
}

// written returns the Events that this recording has on the server, in all
// namespaces.
func (r *recording) written(t *testing.T) []eventsv1.Event {
	t.Helper()
	list, err := r.clients.EventsV1().Events(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{
		FieldSelector: "reportingController=" + controller,
	})
	require.NoError(t, err)
	var own []eventsv1.Event
	for _, event := range list.Items {
		if event.ReportingInstance == r.instance {
			own = append(own, event)
		}
	}
	return own
}

// requireAccounted fails the test unless exactly the given number of occurrences
// was taken in, and each of them is on the server or counted as dropped. The
// broadcaster must have been flushed or shut down.
func (r *recording) requireAccounted(t *testing.T, emitted int) {
	t.Helper()
	written := r.written(t)
	requireAccounted(t, emitted, r.Stats(), written)
}

func requireAccounted(t *testing.T, emitted int, stats events.Stats, written []eventsv1.Event) {
	t.Helper()
	accounted := dropped(stats)
	for i := range written {
		accounted += uint64(occurrences(&written[i]))
	}
	require.EqualValues(t, emitted, stats.Occurrences, "occurrences taken in")
	require.EqualValues(t, emitted, accounted, "occurrences on the server in %d Events, and dropped: %v", len(written), stats.Dropped)
}

// dropped returns how many occurrences were lost, whatever the reason.
func dropped(stats events.Stats) uint64 {
	var n uint64
	for _, count := range stats.Dropped {
		n += count
	}
	return n
}

// occurrences returns how many occurrences an Event tells of.
func occurrences(event *eventsv1.Event) int {
	if event.Series == nil {
		return 1
	}
	return int(event.Series.Count)
}

// state returns the state annotation of an Event, empty if there is none.
func state(event *eventsv1.Event) string { return event.Annotations[series.AnnotationState] }

// requestsOf returns how many requests of a kind had an outcome.
func requestsOf(stats events.Stats, kind, outcome string) int {
	return int(stats.Writes[events.WriteKey{Kind: kind, Outcome: outcome}])
}

// podIn returns a Pod that need not exist.
func podIn(namespace, name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace,
		Name:      name,
		UID:       types.UID("uid-of-" + namespace + "-" + name),
	}}
}

// emit emits an event about an object n times.
func emit(recorder events.EventRecorder, regarding runtime.Object, n int) {
	for range n {
		recorder.Eventf(regarding, nil, corev1.EventTypeNormal, "Tested", "Testing", "it was tested")
	}
}

// repeat calls f in a goroutine, again and again, until the function that it
// returns is called or the test ends. Both wait for the goroutine.
func repeat(t *testing.T, every time.Duration, f func()) (stop func()) {
	t.Helper()
	stopped := make(chan struct{})
	var goroutine sync.WaitGroup
	goroutine.Go(func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			f()
			select {
			case <-ticker.C:
			case <-stopped:
				return
			}
		}
	})
	stop = sync.OnceFunc(func() {
		close(stopped)
		goroutine.Wait()
	})
	t.Cleanup(stop)
	return stop
}

// eventAbout waits until there is exactly one Event about an object, and returns
// it.
func eventAbout(t *testing.T, clients kubernetes.Interface, namespace string, uid types.UID) *eventsv1.Event {
	t.Helper()
	var event *eventsv1.Event
	apiserver.Eventually(t, patience, func(ctx context.Context) error {
		found, err := eventsAbout(ctx, clients, namespace, uid)
		if err == nil && len(found) != 1 {
			err = fmt.Errorf("%d Events about %s", len(found), uid)
		}
		if err != nil {
			return err
		}
		event = &found[0]
		return nil
	})
	return event
}

// eventsAbout returns the Events about an object.
func eventsAbout(ctx context.Context, clients kubernetes.Interface, namespace string, uid types.UID) ([]eventsv1.Event, error) {
	list, err := clients.EventsV1().Events(namespace).List(ctx, metav1.ListOptions{
		FieldSelector: "regarding.uid=" + string(uid),
	})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}
