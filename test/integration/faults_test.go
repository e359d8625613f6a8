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

// The tests in this file put a front with faults before the real server. What
// goes wrong is counted, not timed, and the real client, the real delays and
// real connections are used: a second and more passes before anything is tried
// again. The same over hours of virtual time is in package events.

// longPatience is for what waits for delays that double.
const longPatience = 3 * patience

// impatient is for servers that do not answer.
var impatient = events.Options{RequestTimeout: time.Second}

// alone is for faults that end all that is under way on a connection. It has each
// request fail once, and not again for each other one.
var alone = events.Options{Workers: 1}

// faultRow is one way in which a server can fail.
type faultRow struct {
	name   string
	answer fault
	http1  bool
	opts   events.Options
	// pause is set if the answer pushes back: the least time for which the server
	// is to be left alone then.
	pause time.Duration
}

func faultRows() []faultRow {
	const json = "application/json"
	return []faultRow{
		// What priority and fairness answers is text, and what an admission plugin
		// answers is a Status.
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
		// Nobody there that knows Events.
		{name: "404, page", answer: page(404, "")},

		{name: "reset", answer: reset, opts: alone},
		{name: "reset, HTTP/1.1", answer: reset, http1: true},
		{name: "stream ended", answer: abort},
		{name: "EOF", answer: abort, http1: true},
		{name: "no answer", answer: silence, opts: impatient},
		{name: "no answer, HTTP/1.1", answer: silence, opts: impatient, http1: true},

		{name: "HTML", answer: body("text/html", "<html><body>Welcome to the hotel. Please log in.</body></html>")},
		{name: "nothing", answer: body(json, "")},
		{name: "truncated JSON", answer: body(json, `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"na`)},
		{name: "another kind", answer: body(json, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"x"}}`)},
		{name: "another Event", answer: body(json, anotherEvent)},
		{name: "success", answer: body(json, `{"apiVersion":"v1","kind":"Status","status":"Success","code":200}`)},
		{name: "failure with 200", answer: body(json, `{"apiVersion":"v1","kind":"Status","status":"Failure","code":200}`)},

		// The server has done it, and nobody learns of that.
		{name: "done and 500", answer: done(status(500, ""))},
		{name: "done and 504", answer: done(page(504, ""))},
		{name: "done and reset", answer: done(reset), opts: alone},
		{name: "done and reset, HTTP/1.1", answer: done(reset), http1: true},
		{name: "done and no answer", answer: done(silence), opts: impatient},
		{name: "done and HTML", answer: done(body("text/html", "<html></html>"))},
		{name: "done and another Event", answer: done(body(json, anotherEvent))},
		{name: "half an answer and stream ended", answer: half(abort)},
		{name: "half an answer and EOF", answer: half(abort), http1: true},
		{name: "half an answer and reset", answer: half(reset), http1: true},
		{name: "half an answer and no more", answer: half(silence), opts: impatient},
	}
}

const anotherEvent = `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"x","namespace":"x"}}`

// atOnce runs all rows side by side, whatever -parallel says: they spend their
// time with waiting for delays to pass.
func atOnce[R any](t *testing.T, rows []R, name func(R) string, f func(*testing.T, R)) {
	var group sync.WaitGroup
	defer group.Wait()
	for _, row := range rows {
		group.Go(func() { t.Run(name(row), func(t *testing.T) { f(t, row) }) })
	}
}

// TestFaults has the first try of every single create, look and patch go wrong.
func TestFaults(t *testing.T) {
	t.Parallel()
	atOnce(t, faultRows(), func(row faultRow) string { return row.name }, func(t *testing.T, row faultRow) {
		f := newFront(t, row.http1)
		if row.pause > 0 {
			row.opts.Workers = 1 // or else there are requests under way when the pause begins
			f.follow(first(1, row.answer))
		} else {
			row.opts.Workers = cmp.Or(row.opts.Workers, distinct)
			f.follow(firstOfEach(row.answer))
		}
		w := newFaultyWorld(t, f, row.opts)
		w.emit(distinct, 1)
		w.emit(inLoops, 9)
		flushThrough(t, w.r)
		w.requireDelivered(t)

		if row.pause > 0 {
			f.follow(first(1, row.answer))
		}
		w.emit(distinct, 10) // the singletons have become series, and the others have more to tell
		flushThrough(t, w.r)
		w.requireDelivered(t)

		calls, faults := f.log()
		outcome, least := "troubled", 2*distinct
		if row.pause > 0 {
			outcome, least = "pushedBack", 2
			requireLeftAlone(t, calls, row.pause)
		}
		assert.GreaterOrEqual(t, faults, least)
		assert.GreaterOrEqual(t, outcomes(w.r.Stats(), outcome), least, w.r.Stats().Writes)
		w.r.Shutdown()
		w.requireDelivered(t)
	})
}

// TestFaultsOfConnections has connections go wrong before there is a request.
func TestFaultsOfConnections(t *testing.T) {
	t.Parallel()
	type row struct {
		name  string
		set   func(*connectionFaults)
		http1 bool
	}
	rows := []row{
		{name: "refused", set: func(c *connectionFaults) { c.refused.Store(10) }},
		{name: "refused, HTTP/1.1", set: func(c *connectionFaults) { c.refused.Store(10) }, http1: true},
		{name: "reset", set: func(c *connectionFaults) { c.reset.Store(10) }},
		{name: "reset, HTTP/1.1", set: func(c *connectionFaults) { c.reset.Store(10) }, http1: true},
		{name: "wrong certificate", set: func(c *connectionFaults) { c.distrusted.Store(10) }},
		{name: "wrong certificate, HTTP/1.1", set: func(c *connectionFaults) { c.distrusted.Store(10) }, http1: true},
	}
	atOnce(t, rows, func(row row) string { return row.name }, func(t *testing.T, row row) {
		f := newFront(t, row.http1)
		row.set(&f.connections)
		w := newFaultyWorld(t, f, events.Options{Workers: 8})
		w.emit(distinct, 1)
		w.emit(inLoops, 9)
		flushThrough(t, w.r)
		w.requireDelivered(t)

		// And once more, when there are series. The connections that there are
		// have to go first.
		f.server.CloseClientConnections()
		row.set(&f.connections)
		w.emit(distinct, 10)
		flushThrough(t, w.r)
		w.requireDelivered(t)

		assert.EqualValues(t, 20, f.connections.seen.Load())
		assert.NotZero(t, outcomes(w.r.Stats(), "troubled"))
		w.r.Shutdown()
		w.requireDelivered(t)
	})
}

// TestFaultsDuringALoop has every other request of a loop go wrong, from the
// create over heartbeats to the end, and the count has to be right.
func TestFaultsDuringALoop(t *testing.T) {
	t.Parallel()
	rows := []faultRow{
		{name: "500", answer: status(500, "")},
		{name: "429", answer: status(429, ""), pause: 5 * time.Second},
		{name: "reset", answer: reset},
		{name: "no answer", answer: silence, opts: impatient},
		{name: "done and 500", answer: done(status(500, ""))},
		{name: "done and reset", answer: done(reset)},
		{name: "half an answer", answer: half(abort), http1: true},
		{name: "another Event", answer: body("application/json", anotherEvent)},
	}
	atOnce(t, rows, func(row faultRow) string { return row.name }, func(t *testing.T, row faultRow) {
		f := newFront(t, row.http1)
		f.follow(everyOther(row.answer))
		row.opts.HeartbeatInterval = time.Second
		row.opts.FinishAfter = 5 * time.Second
		namespace := apiserver.Namespace(t)
		r := recordThrough(t, f, row.opts)
		history := watchEvents(t, r.clients, namespace)
		recorder, pod := r.recorder(), podIn(namespace, "crashing")

		emitted := 0
		apiserver.Eventually(t, longPatience, func(context.Context) error {
			emit(recorder, pod, 1)
			emitted++
			if beats := requestsOf(r.Stats(), "heartbeat", "written"); beats < 1 {
				return fmt.Errorf("%d heartbeats", beats)
			}
			return nil
		})
		apiserver.Eventually(t, longPatience, func(context.Context) error {
			if n := r.Stats().Tracked; n > 0 {
				return fmt.Errorf("%d series", n)
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
		requireSeen(t, history, event.Name, emitted)
		requireCountsGrow(t, history)
	})
}

// What happens while a series cannot be closed is another one, and takes nothing
// from it.
func TestOccurrencesWhileASeriesCannotBeClosed(t *testing.T) {
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
	apiserver.Eventually(t, patience, func(context.Context) error {
		if calls, _ := f.log(); faultyCalls(calls, "finish") < 2 {
			return fmt.Errorf("the series has not been closed twice: %v", calls)
		}
		return nil
	})
	emit(recorder, pod, 5)
	apiserver.Eventually(t, patience, func(ctx context.Context) error {
		found, err := eventsAbout(ctx, r.clients, namespace, pod.UID)
		if err == nil && len(found) < 2 {
			err = fmt.Errorf("%d Events", len(found))
		}
		return err
	})
	f.follow(nil)
	flushThrough(t, r)
	found, err := eventsAbout(t.Context(), r.clients, namespace, pod.UID)
	require.NoError(t, err)
	require.Len(t, found, 2) // in the order of their names
	assert.Equal(t, 10, occurrences(&found[0]))
	assert.Equal(t, "Finished", state(&found[0]))
	assert.Equal(t, 5, occurrences(&found[1]))
	requireSeen(t, history, found[1].Name, 5)
	requireCountsGrow(t, history)
	r.requireAccounted(t, 15)
}

// TestManyEventsDuringAFault has the server fail for so long that each of many
// events has failed before one of them can be written.
func TestManyEventsDuringAFault(t *testing.T) {
	t.Parallel()
	const n = 200
	type row struct {
		name   string
		answer fault
		faults int
		opts   events.Options
	}
	rows := []row{
		// A push-back is one for all of them.
		{name: "429", answer: status(429, ""), faults: 2},
		{name: "500", answer: status(500, ""), faults: n},
		{name: "503", answer: page(503, ""), faults: n},
		{name: "reset", answer: reset, faults: n},
		{name: "no answer", answer: silence, faults: n, opts: events.Options{RequestTimeout: time.Second, Workers: n}},
		{name: "done and reset", answer: done(reset), faults: n},
		{name: "done and 500", answer: done(status(500, "")), faults: n},
	}
	atOnce(t, rows, func(row row) string { return row.name }, func(t *testing.T, row row) {
		f := newFront(t, false)
		f.follow(first(row.faults, row.answer))
		row.opts.QPS = -1
		namespace := apiserver.Namespace(t)
		r := recordThrough(t, f, row.opts)
		recorder := r.recorder()
		for i := range n {
			emit(recorder, podIn(namespace, fmt.Sprintf("pod-%d", i)), 1)
		}
		flushThrough(t, r)
		_, faults := f.log()
		assert.Equal(t, row.faults, faults)
		assert.Zero(t, dropped(r.Stats()))
		assert.Len(t, r.written(t), n)
		r.requireAccounted(t, n)
	})
}

// faultyWorld is a recording through a front, and what was emitted.
type faultyWorld struct {
	r         *recording
	namespace string
	history   *history
	recorder  events.EventRecorder
	emitted   [distinct]int // by the number of the Pod
}

const (
	// distinct is how many Pods of a faultyWorld there are events about.
	distinct = 6
	// inLoops is how many of them are in a loop.
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

// recordThrough is startRecording with the front as the server.
func recordThrough(t *testing.T, f *front, opts events.Options) *recording {
	t.Helper()
	r := startRecording(t, f.config(), opts)
	r.clients = apiserver.Clientset(t) // past the front
	return r
}

// flushThrough waits until all that was emitted is on the server, for longer than
// flush.
func flushThrough(t *testing.T, r *recording) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), longPatience)
	defer cancel()
	require.NoError(t, r.Flush(ctx))
}

// emit emits n events about each of the first pods.
func (w *faultyWorld) emit(pods, n int) {
	for i := range pods {
		emit(w.recorder, podIn(w.namespace, podName(i)), n)
		w.emitted[i] += n
	}
}

func podName(i int) string { return fmt.Sprintf("pod-%02d", i) }

// requireDelivered fails the test unless all that was emitted is on the server,
// in one Event for each Pod, and came there without a step back. It must have
// been flushed.
func (w *faultyWorld) requireDelivered(t *testing.T) {
	t.Helper()
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
		requireSeen(t, w.history, written[i].Name, occurrences(&written[i]))
	}
	requireCountsGrow(t, w.history)
}

// requireSeen waits until a history has come to a count of an Event.
func requireSeen(t *testing.T, h *history, name string, count int) {
	t.Helper()
	apiserver.Eventually(t, patience, func(context.Context) error {
		latest := 0
		for _, c := range h.all() {
			if c.event.Name == name {
				latest = occurrences(c.event)
			}
		}
		if latest != count {
			return fmt.Errorf("%s was last seen with %d occurrences, not %d", name, latest, count)
		}
		return nil
	})
}

// requireLeftAlone fails the test unless there was no call for that long after
// each one that was pushed back.
func requireLeftAlone(t *testing.T, calls []call, pause time.Duration) {
	t.Helper()
	for i, c := range calls {
		if c.faulty && i+1 < len(calls) {
			require.GreaterOrEqual(t, calls[i+1].at.Sub(c.at), pause, "%v after %v", calls[i+1], c)
		}
	}
}

// faultyCalls returns how many calls with a verb went wrong.
func faultyCalls(calls []call, verb string) int {
	n := 0
	for _, c := range calls {
		if c.faulty && c.verb == verb {
			n++
		}
	}
	return n
}

// outcomes returns how many requests had an outcome, whatever they were for.
func outcomes(stats events.Stats, outcome string) int {
	n := 0
	for key, count := range stats.Writes {
		if key.Outcome == outcome {
			n += int(count)
		}
	}
	return n
}
