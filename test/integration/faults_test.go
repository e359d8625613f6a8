package integration

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// The tests in this file put a front with faults before the real server. They
// count faults, and use the real client, connections and delays: the recorder
// waits a second or longer before a retry. Package events tests the same over
// hours of virtual time.

// longPatience bounds waits for delays that double.
const longPatience = 3 * patience

// faultRow is a way in which a server or the connection to it fails.
type faultRow struct {
	name  string
	http1 bool
	// answer is the fault of a request, or connection sets faults of connections.
	answer     fault
	connection func(*connectionFaults)
	// workers is 1 for faults that hit all requests in flight on a connection, so
	// that each request fails once.
	workers int
	// pause is set if the answer pushes back: how long the recorder must then
	// send nothing.
	pause time.Duration
}

func faultRows() []faultRow {
	const json = "application/json"
	refused := func(c *connectionFaults) { c.refused.Store(10) }
	reset10 := func(c *connectionFaults) { c.reset.Store(10) }
	distrusted := func(c *connectionFaults) { c.distrusted.Store(10) }
	return []faultRow{
		// Priority and fairness responds with text, an admission plugin with a
		// Status.
		{name: "429", answer: status(429, ""), pause: 5 * time.Second},
		{name: "429 for 7 s", answer: status(429, "7"), pause: 7 * time.Second},
		{name: "429 for 7 s, page", answer: page(429, "7"), pause: 7 * time.Second},
		// A date has no fractions of a second.
		{name: "429 until a date", answer: retryAt(9*time.Second, func(at string) fault { return page(429, at) }), pause: 8 * time.Second},
		{name: "503 for 7 s", answer: status(503, "7"), pause: 7 * time.Second},

		{name: "408", answer: page(408, "")},
		{name: "500", answer: status(500, "")},
		{name: "502", answer: page(502, "")},
		{name: "503", answer: status(503, "")},
		{name: "503, page", answer: page(503, "")},
		{name: "504", answer: status(504, "")},
		{name: "504, page", answer: page(504, "")},
		// Not from an API server that serves Events.
		{name: "404, page", answer: page(404, "")},

		{name: "reset", answer: reset, workers: 1},
		{name: "reset, HTTP/1.1", answer: reset, http1: true},
		{name: "stream closed", answer: abort},
		{name: "EOF", answer: abort, http1: true},
		{name: "no response", answer: silence},
		{name: "no response, HTTP/1.1", answer: silence, http1: true},

		{name: "HTML", answer: body("text/html", "<html><body>Welcome to the hotel. Please log in.</body></html>")},
		{name: "empty body", answer: body(json, "")},
		{name: "truncated JSON", answer: body(json, `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"na`)},
		{name: "another kind", answer: body(json, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"x"}}`)},
		{name: "another Event", answer: body(json, anotherEvent)},
		{name: "success", answer: body(json, `{"apiVersion":"v1","kind":"Status","status":"Success","code":200}`)},
		{name: "failure with 200", answer: body(json, `{"apiVersion":"v1","kind":"Status","status":"Failure","code":200}`)},

		// The server carries the request out, and the response is lost.
		{name: "done and 500", answer: done(status(500, ""))},
		{name: "done and 504", answer: done(page(504, ""))},
		{name: "done and reset", answer: done(reset), workers: 1},
		{name: "done and reset, HTTP/1.1", answer: done(reset), http1: true},
		{name: "done and no response", answer: done(silence)},
		{name: "done and HTML", answer: done(body("text/html", "<html></html>"))},
		{name: "done and another Event", answer: done(body(json, anotherEvent))},
		{name: "half a response and stream closed", answer: half(abort)},
		{name: "half a response and EOF", answer: half(abort), http1: true},
		{name: "half a response and reset", answer: half(reset), http1: true},
		{name: "half a response and no more", answer: half(silence)},

		{name: "connection refused", connection: refused, workers: 8},
		{name: "connection refused, HTTP/1.1", connection: refused, workers: 8, http1: true},
		{name: "connection reset", connection: reset10, workers: 8},
		{name: "connection reset, HTTP/1.1", connection: reset10, workers: 8, http1: true},
		{name: "untrusted certificate", connection: distrusted, workers: 8},
		{name: "untrusted certificate, HTTP/1.1", connection: distrusted, workers: 8, http1: true},
	}
}

const anotherEvent = `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"x","namespace":"x"}}`

// runAtOnce runs all rows concurrently, whatever -parallel says: they spend their
// time waiting for delays.
func runAtOnce(t *testing.T, rows []faultRow, run func(*testing.T, faultRow)) {
	var group sync.WaitGroup
	defer group.Wait()
	for _, row := range rows {
		group.Go(func() { t.Run(row.name, func(t *testing.T) { run(t, row) }) })
	}
}

// inject sets the fault of the row, for requests or connections from now on.
func (row *faultRow) inject(f *front) {
	switch {
	case row.connection != nil:
		f.server.CloseClientConnections() // to make the client connect again
		row.connection(&f.connections)
	case row.pause > 0:
		f.follow(first(1, row.answer))
	default:
		f.follow(firstOfEach(row.answer))
	}
}

// TestFaults fails the first try of every create, look-up and patch. Every
// occurrence must reach the server.
func TestFaults(t *testing.T) {
	t.Parallel()
	runAtOnce(t, faultRows(), func(t *testing.T, row faultRow) {
		f := newFront(t, row.http1)
		workers := cmp.Or(row.workers, distinct)
		if row.pause > 0 {
			workers = 1 // or else requests are in flight when the pause begins
		}
		row.inject(f)
		w := newFaultyWorld(t, f, events.Options{Workers: workers})
		w.emit(distinct, 1)
		w.emit(inLoops, 9)
		w.requireDelivered(t)

		if row.connection != nil || row.pause > 0 {
			row.inject(f)
		}
		w.emit(distinct, 10) // singletons become series, and series continue
		w.requireDelivered(t)

		calls, faults := f.log()
		outcome, least := "troubled", 2*distinct
		switch {
		case row.connection != nil:
			assert.EqualValues(t, 20, f.connections.seen.Load())
			faults, least = 20, 1
		case row.pause > 0:
			outcome, least = "pushedBack", 2
			requirePause(t, calls, row.pause)
		}
		assert.GreaterOrEqual(t, faults, least)
		assert.GreaterOrEqual(t, outcomes(w.r.Stats(), outcome), least, w.r.Stats().Writes)
		w.r.Shutdown()
		w.requireDelivered(t)
	})
}

// TestFaultsDuringALoop fails every other request of a loop: the create, the
// heartbeats and the finish. The count must be exact.
func TestFaultsDuringALoop(t *testing.T) {
	t.Parallel()
	runAtOnce(t, []faultRow{
		{name: "500", answer: status(500, "")},
		{name: "429", answer: status(429, "")},
		{name: "reset", answer: reset},
		{name: "no response", answer: silence},
		{name: "done and 500", answer: done(status(500, ""))},
		{name: "done and reset", answer: done(reset)},
		{name: "half a response", answer: half(abort), http1: true},
		{name: "another Event", answer: body("application/json", anotherEvent)},
	}, func(t *testing.T, row faultRow) {
		f := newFront(t, row.http1)
		f.follow(everyOther(row.answer))
		namespace := apiserver.Namespace(t)
		r := recordThrough(t, f, events.Options{HeartbeatInterval: time.Second, FinishAfter: 5 * time.Second})
		history := watchEvents(t, r.clients, namespace)
		recorder, pod := r.recorder(), podIn(namespace, "crashing")

		emitted := 0
		apiserver.Eventually(t, longPatience, func(context.Context) error {
			emit(recorder, pod, 1)
			emitted++
			return r.hasWrites("heartbeat", "written", 1)
		})
		apiserver.Eventually(t, longPatience, func(context.Context) error {
			if n := r.Stats().Tracked; n > 0 {
				return fmt.Errorf("%d series are tracked", n)
			}
			return nil
		})

		event := eventAbout(t, r.clients, namespace, pod.UID)
		assert.Equal(t, "Finished", state(event))
		assert.Equal(t, emitted, occurrences(event))
		calls, _ := f.log()
		assert.GreaterOrEqual(t, faultyCalls(calls, "finish"), 1)
		assert.GreaterOrEqual(t, faultyCalls(calls, "patch"), 2)
		assert.Zero(t, dropped(r.Stats()))
		history.requireSeen(t, event.Name, emitted)
		history.requireCountsGrow(t)
	})
}

// TestOccurrencesWhileAFinishFails emits events while the recorder cannot finish
// their series. They belong to another series.
func TestOccurrencesWhileAFinishFails(t *testing.T) {
	t.Parallel()
	f := newFront(t, false)
	f.follow(func(c call) fault {
		if c.verb != "finish" {
			return nil
		}
		return done(status(500, ""))
	})
	namespace := apiserver.Namespace(t)
	r := recordThrough(t, f, events.Options{FinishAfter: 3 * time.Second})
	history := watchEvents(t, r.clients, namespace)
	recorder, pod := r.recorder(), podIn(namespace, "crashing")
	emit(recorder, pod, 10)
	eventually(t, func(context.Context) error {
		if calls, _ := f.log(); faultyCalls(calls, "finish") < 2 {
			return fmt.Errorf("the finish has not failed twice: %v", calls)
		}
		return nil
	})
	emit(recorder, pod, 5)
	eventually(t, func(ctx context.Context) error {
		found, err := eventsAbout(ctx, r.clients, namespace, pod.UID)
		if err == nil && len(found) < 2 {
			err = fmt.Errorf("%d Events", len(found))
		}
		return err
	})
	f.follow(nil)
	r.flushWithin(t, longPatience)
	found, err := eventsAbout(t.Context(), r.clients, namespace, pod.UID)
	require.NoError(t, err)
	require.Len(t, found, 2)
	assert.Equal(t, 10, occurrences(&found[0]))
	assert.Equal(t, "Finished", state(&found[0]))
	assert.Equal(t, 5, occurrences(&found[1]))
	history.requireSeen(t, found[1].Name, 5)
	history.requireCountsGrow(t)
	r.requireAccounted(t, 15)
}

// faultyWorld is a recording through a front, and what it has to deliver.
type faultyWorld struct {
	r         *recording
	namespace string
	history   *history
	recorder  events.EventRecorder
	emitted   [distinct]int // by the number of the Pod
}

const (
	// distinct is the number of Pods that a faultyWorld emits events about.
	distinct = 6
	// inLoops is the number of Pods that begin in a loop.
	inLoops = 2
)

func newFaultyWorld(t *testing.T, f *front, opts events.Options) *faultyWorld {
	t.Helper()
	w := &faultyWorld{namespace: apiserver.Namespace(t)}
	w.r = recordThrough(t, f, opts)
	w.history = watchEvents(t, w.r.clients, w.namespace)
	w.recorder = w.r.recorder()
	return w
}

// recordThrough is startRecording through a front.
func recordThrough(t *testing.T, f *front, opts events.Options) *recording {
	t.Helper()
	r := startRecording(t, f.config(), opts)
	r.clients = apiserver.Clientset(t) // not through the front
	return r
}

// emit emits n events about each of the first pods.
func (w *faultyWorld) emit(pods, n int) {
	for i := range pods {
		emit(w.recorder, podIn(w.namespace, podName(i)), n)
		w.emitted[i] += n
	}
}

func podName(i int) string { return fmt.Sprintf("pod-%02d", i) }

// requireDelivered flushes. It fails the test unless the server then has every
// occurrence, in one Event for each Pod, and no Event ever went back.
func (w *faultyWorld) requireDelivered(t *testing.T) {
	t.Helper()
	w.r.flushWithin(t, longPatience)
	want, got := map[string]int{}, map[string]int{}
	total := 0
	for i, n := range w.emitted {
		want[podName(i)] = n
		total += n
	}
	written := w.r.written(t)
	for i := range written {
		got[written[i].Regarding.Name] += occurrences(&written[i])
	}
	require.Equal(t, want, got)
	require.Len(t, written, distinct, "Events")
	require.Empty(t, w.r.Stats().Dropped)
	requireAccounted(t, total, w.r.Stats(), written)
	for i := range written {
		w.history.requireSeen(t, written[i].Name, occurrences(&written[i]))
	}
	w.history.requireCountsGrow(t)
}

// requirePause fails the test if a call came within the pause after a faulty one.
func requirePause(t *testing.T, calls []call, pause time.Duration) {
	t.Helper()
	for i, c := range calls {
		if c.faulty && i+1 < len(calls) {
			require.GreaterOrEqual(t, calls[i+1].at.Sub(c.at), pause, "%v after %v", calls[i+1], c)
		}
	}
}

// faultyCalls returns how many calls with a verb failed.
func faultyCalls(calls []call, verb string) int {
	n := 0
	for _, c := range calls {
		if c.faulty && c.verb == verb {
			n++
		}
	}
	return n
}

// outcomes returns how many requests of any kind had an outcome.
func outcomes(stats events.Stats, outcome string) int {
	n := 0
	for key, count := range stats.Writes {
		if key.Outcome == outcome {
			n += int(count)
		}
	}
	return n
}
