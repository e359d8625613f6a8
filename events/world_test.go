package events

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"github.com/eventseries/eventseries/internal/sanitize"
	"github.com/eventseries/eventseries/internal/schedule"
	"github.com/eventseries/eventseries/internal/tracker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const controller = "example.com/tester"

// The defaults and delays that tests count on.
const (
	defaultCapacity = 65536
	finishAfter     = 6 * time.Minute
	pauseFirst      = 5 * time.Second
	retryFirst      = time.Second
	retryMax        = 80 * time.Second
	deniedLists     = 20 // if each is denied: within EventTTL, after 1s to 5m. With jitter, two less
)

// The reasons of losses, as [DropReason] documents them.
const (
	DropTableFull            = DropReason(tracker.DropTableFull)
	DropDenied               = DropReason(tracker.DropDenied)
	DropUnavailable          = DropReason(tracker.DropUnavailable)
	DropInvalidObject        = DropReason(tracker.DropInvalidObject)
	DropInvalidType          = DropReason(tracker.DropInvalidType)
	DropRejected             = DropReason(tracker.DropRejected)
	DropNamespaceNotFound    = DropReason(tracker.DropNamespaceNotFound)
	DropNamespaceTerminating = DropReason(tracker.DropNamespaceTerminating)
	DropNameTaken            = DropReason(tracker.DropNameTaken)
	DropShutdown             = DropReason(tracker.DropShutdown)
)

// world is a broadcaster with its server and a recorder.
type world struct {
	server      *server
	broadcaster *Broadcaster
	recorder    EventRecorderLogger
	logs        *logs

	// unaccounted says that the server gets what was dropped, or more than it permits.
	unaccounted bool

	mu    sync.Mutex
	drops []Drop
}

// newWorld returns a world whose broadcaster has not started yet. Its server deletes
// Events after Options.EventTTL, if set.
func newWorld(t *testing.T, opts Options) *world {
	t.Helper()
	s := newServer()
	s.api.TTL = opts.EventTTL
	return newWorldOn(t, s, s, opts)
}

// newWorldOn returns a world on a server that others may have written to. Its sink leads
// to that server.
func newWorldOn(t *testing.T, s *server, sink EventSink, opts Options) *world {
	t.Helper()
	w := &world{server: s, logs: &logs{}}
	onDrop := opts.OnDrop
	opts.OnDrop = func(d Drop) {
		w.mu.Lock()
		w.drops = append(w.drops, d)
		w.mu.Unlock()
		s.replay.dropped(d)
		if onDrop != nil {
			onDrop(d)
		}
	}
	if opts.ReportingInstance == "" {
		opts.ReportingInstance = "tester-1"
	}
	if opts.listLimit == 0 {
		opts.listLimit = math.MaxInt // so that the list does not come at a random time
	}
	var err error
	w.broadcaster, err = New(s.replay.sink(sink), opts)
	require.NoError(t, err)
	s.replay.fix(w.broadcaster)
	logger := w.logs.logger()
	w.broadcaster.log.Store(&logger) // for the logs before the start
	t.Cleanup(func() {
		s.replay.end()
		w.broadcaster.Shutdown()
	})
	w.recorder = w.broadcaster.NewRecorder(testScheme(), controller)
	return w
}

// distinct returns a recorder with [RecorderOptions].DistinctNotes.
func (w *world) distinct(notes int) EventRecorder {
	return w.broadcaster.NewRecorderWithOptions(testScheme(), controller, RecorderOptions{DistinctNotes: notes})
}

// inBubble runs test in virtual time with a started broadcaster. It then shuts the
// broadcaster down, and accounts for every occurrence.
func inBubble(t *testing.T, opts Options, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { newWorld(t, opts).run(t, test) })
}

// run runs test with a broadcaster that it starts; see inBubble.
func (w *world) run(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	w.start(t)
	test(t, w)
	w.broadcaster.Shutdown()
	if !w.unaccounted {
		w.assertAccounted(t)
	}
}

// replayInBubble is runInBubble for a history that follows from a seed.
func replayInBubble(t *testing.T, name string, seed uint64, opts Options, test func(t *testing.T, w *world)) {
	runBubble(t, name, func(t *testing.T) {
		s := newServer()
		s.replay = newReplay(t, seed)
		newWorldOn(t, s, s, opts).run(t, test)
	})
}

// runBubble runs a subtest in virtual time.
func runBubble(t *testing.T, name string, test func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

// runInBubble is inBubble in a subtest.
func runInBubble(t *testing.T, name string, opts Options, test func(t *testing.T, w *world)) {
	t.Run(name, func(t *testing.T) { inBubble(t, opts, test) })
}

// startOn returns a world that is started, on a server that others may have written to.
func startOn(t *testing.T, s *server, sink EventSink, opts Options) *world {
	t.Helper()
	w := newWorldOn(t, s, sink, opts)
	w.start(t)
	return w
}

// start starts the broadcaster. It logs to w.logs.
func (w *world) start(t *testing.T) {
	t.Helper()
	w.startUntilCancelled(t)
}

// startUntilCancelled starts the broadcaster until the test calls cancel.
func (w *world) startUntilCancelled(t *testing.T) (cancel func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	require.NoError(t, w.broadcaster.StartRecordingToSinkWithContext(klog.NewContext(ctx, w.logs.logger())))
	return cancel
}

// list lists as if the recorder had emitted its first event.
func (w *world) list() {
	w.broadcaster.lists.add(controller)
	w.broadcaster.poke()
	synctest.Wait()
}

func identityOf(r EventRecorder) sanitize.Identity { return r.(*recorder).identity }

// emit emits a Normal event about the pod with this number.
func (w *world) emit(pod int) { w.emitAs(corev1.EventTypeNormal, pod) }

// emitAs emits an event about the pod with this number.
func (w *world) emitAs(eventtype string, pod int) {
	w.emitIn("ns", eventtype, pod)
	w.server.replay.settle()
}

// emitIn emits an event about the pod with this number in a namespace.
func (w *world) emitIn(namespace, eventtype string, pod int) {
	object := testPod(pod)
	object.Namespace = namespace
	w.recorder.Eventf(object, nil, eventtype, "Tested", "Testing", "note")
}

// flush writes everything.
func (w *world) flush(t *testing.T) {
	t.Helper()
	require.NoError(t, w.broadcaster.Flush(t.Context()))
}

// dropped returns the drops that OnDrop reported.
func (w *world) dropped() []Drop {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.drops)
}

// assertAccounted fails the test unless each occurrence was delivered or dropped, and
// the statistics, OnDrop and the server agree. Flush or shut down the broadcaster first.
func (w *world) assertAccounted(t *testing.T) {
	t.Helper()
	w.server.assertNoProblems(t)
	_ = w.broadcaster.drops.wait(context.Background())
	stats := w.broadcaster.Stats()
	var dropped uint64
	for _, n := range stats.Dropped {
		dropped += n
	}
	assert.Equal(t, stats.Occurrences, w.server.delivered()+dropped,
		"occurrences = %d delivered + %d dropped", w.server.delivered(), dropped)
	told := make(map[DropReason]uint64)
	for _, d := range w.dropped() {
		told[d.Reason] += uint64(d.Count)
	}
	assert.Equal(t, stats.Dropped, told, "OnDrop reports all drops")
	// The stop can cut off requests that are counted before the server gets them.
	arrived := len(w.server.log())
	assertBetween(t, arrived, arrived+schedule.MaxPlaces, int(requested(stats, "", "")))
}

// testScheme returns a scheme with core/v1.
func testScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		panic(err)
	}
	return scheme
}

func testPod(i int) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprintf("pod-%d", i)}}
}

// logs records log lines.
type logs struct {
	mu    sync.Mutex
	lines []string
}

func (l *logs) logger() klog.Logger {
	return funcr.New(func(_, args string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.lines = append(l.lines, args)
	}, funcr.Options{Verbosity: 2})
}

// with returns the lines that contain all of these words.
func (l *logs) with(words ...string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(l.lines), func(line string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(line, word) })
	})
}

// listLimit returns a value of Options.listLimit: the list is made at once, or not at all.
func listLimit(list bool) int {
	if list {
		return math.MaxInt
	}
	return -1
}

// expired returns a context that has ended.
func expired() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
