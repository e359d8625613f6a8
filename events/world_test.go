package events

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"github.com/eventseries/eventseries/series"
)

const controller = "example.com/tester"

// world is a broadcaster, what it writes to, and a recorder of it.
type world struct {
	server      *server
	broadcaster *Broadcaster
	recorder    EventRecorderLogger
	logs        *logs

	mu    sync.Mutex
	drops []Drop
}

// newWorld makes a world whose broadcaster has not been started. In a synctest
// bubble its time is virtual.
func newWorld(t *testing.T, opts Options) *world {
	t.Helper()
	s := newServer()
	return newWorldOn(t, s, s, opts)
}

// newWorldOn makes a world that writes to a server which others have written to,
// by a sink that leads to it.
func newWorldOn(t *testing.T, s *server, sink EventSink, opts Options) *world {
	t.Helper()
	w := &world{server: s, logs: &logs{}}
	onDrop := opts.OnDrop
	opts.OnDrop = func(d Drop) {
		w.mu.Lock()
		w.drops = append(w.drops, d)
		w.mu.Unlock()
		if onDrop != nil {
			onDrop(d)
		}
	}
	if opts.ReportingInstance == "" {
		opts.ReportingInstance = "tester-1"
	}
	w.broadcaster = NewBroadcasterWithOptions(sink, opts)
	logger := w.logs.logger()
	w.broadcaster.log.Store(&logger)  // for what is logged before it is started
	t.Cleanup(w.broadcaster.Shutdown) // also where a test ends early
	w.recorder = w.broadcaster.NewRecorder(testScheme(), controller)
	return w
}

// inBubble runs test in virtual time with a broadcaster that has been started.
// Then it is shut down, and every occurrence must be accounted for.
func inBubble(t *testing.T, opts Options, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, opts)
		w.start(t)
		test(t, w)
		w.broadcaster.Shutdown()
		w.assertAccounted(t)
	})
}

// start starts the broadcaster. It logs to w.logs.
func (w *world) start(t *testing.T) {
	t.Helper()
	w.startUntil(context.Background(), t)
}

// startUntil starts the broadcaster with a context that may end.
func (w *world) startUntil(ctx context.Context, t *testing.T) {
	t.Helper()
	require.NoError(t, w.broadcaster.StartRecordingToSinkWithContext(klog.NewContext(ctx, w.logs.logger())))
}

// emit emits an event about the pod of this number.
func (w *world) emit(pod int) { w.emitAs(corev1.EventTypeNormal, pod) }

// emitAs emits an event of the given type about the pod of this number.
func (w *world) emitAs(eventtype string, pod int) {
	w.recorder.Eventf(testPod(pod), nil, eventtype, "Tested", "Testing", "note")
}

// flush waits until the server knows everything.
func (w *world) flush(t *testing.T) {
	t.Helper()
	require.NoError(t, w.broadcaster.Flush(t.Context()))
}

// dropped returns the losses that OnDrop was told of.
func (w *world) dropped() []Drop {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]Drop(nil), w.drops...)
}

// assertAccounted fails the test unless every occurrence is on the server or was
// dropped, by all that is known. The broadcaster must have been flushed or shut
// down.
func (w *world) assertAccounted(t *testing.T) {
	t.Helper()
	w.server.assertNoProblems(t)
	stats := w.broadcaster.Stats()
	var dropped uint64
	for _, n := range stats.Dropped {
		dropped += n
	}
	assert.Equal(t, stats.Occurrences, w.server.delivered()+dropped, "occurrences = %d delivered + %d dropped", w.server.delivered(), dropped)
	told := make(map[DropReason]uint64)
	for _, d := range w.dropped() {
		told[d.Reason] += uint64(d.Count)
	}
	assert.Equal(t, stats.Dropped, told, "OnDrop is told of everything that is counted")
	assert.Equal(t, uint64(len(w.server.log())), stats.Requests(), "requests")
}

// testScheme returns a scheme that knows core/v1 and nothing else.
func testScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		panic(err)
	}
	return scheme
}

// keyOf returns the key of what emit emits.
func keyOf(pod int) *series.Key {
	return &series.Key{
		Regarding:           series.Reference{APIVersion: "v1", Kind: "Pod", Namespace: "ns", Name: testPod(pod).Name},
		Type:                corev1.EventTypeNormal,
		Reason:              "Tested",
		Action:              "Testing",
		ReportingController: controller,
		ReportingInstance:   "tester-1",
	}
}

func testPod(i int) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprintf("pod-%d", i)}}
}

// logs keeps what is logged.
type logs struct {
	mu    sync.Mutex
	lines []string
}

func (l *logs) logger() klog.Logger {
	return funcr.New(func(_, args string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.lines = append(l.lines, args)
	}, funcr.Options{Verbosity: 10})
}

// with returns the lines that contain all of these words.
func (l *logs) with(words ...string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []string
line:
	for _, line := range l.lines {
		for _, word := range words {
			if !strings.Contains(line, word) {
				continue line
			}
		}
		found = append(found, line)
	}
	return found
}
