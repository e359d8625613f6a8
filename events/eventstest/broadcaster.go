package eventstest

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/internal/wiring"
	"github.com/eventseries/eventseries/series"
)

// Broadcaster is a real [events.Broadcaster] that writes to a [Server] in memory, in
// virtual time. The time begins at 2000-01-01 00:00 UTC and stands still until
// [Broadcaster.Advance].
//
// Create one with [NewBroadcaster], pass a recorder from [Broadcaster.NewRecorder] to
// the program under test, advance the time, and look at [Broadcaster.Series],
// [Broadcaster.Events] or [Broadcaster.Requests].
//
// All methods are safe for concurrent use. In a test that runs in a testing/synctest
// bubble itself, only the recorders are. Do not call the methods from a callback of the
// broadcaster, such as [events.Options.OnDrop] or the function that was passed to
// [Broadcaster.Answer].
type Broadcaster struct {
	bubble      *bubble
	server      Server
	broadcaster *events.Broadcaster
}

// NewBroadcaster starts a broadcaster with default options, and shuts it down at the end
// of the test.
//
// Frameworks with their own kind of T, such as Ginkgo, have the *testing.T in the
// function that runs the suite.
func NewBroadcaster(t *testing.T) *Broadcaster {
	t.Helper()
	return NewBroadcasterWithOptions(t, events.Options{})
}

// NewBroadcasterWithOptions is like [NewBroadcaster], with options. It fails the test at
// once if they are invalid. One request is sent at a time, unless the server is slow, or the broadcaster shuts down. Nothing is listed, because the server
// starts empty.
func NewBroadcasterWithOptions(t *testing.T, opts events.Options) *Broadcaster {
	t.Helper()
	opts.List = ptr.To(false)
	b := &Broadcaster{}
	b.server.TTL = opts.EventTTL
	var err error
	b.bubble = newBubble(t, func(t *testing.T) {
		// One request at a time, so that a test is always the same.
		if b.broadcaster, err = events.New(&wiring.Sink{EventSink: &b.server, MaxInFlight: 1}, opts); err == nil {
			err = b.broadcaster.StartRecordingToSinkWithContext(klog.NewContext(context.Background(), testr.New(t)))
		}
	})
	t.Cleanup(func() {
		if b.broadcaster != nil {
			b.Shutdown()
		}
		b.bubble.end()
	})
	if err != nil {
		t.Fatalf("eventstest: %v", err)
	}
	return b
}

// NewRecorder returns a recorder of the broadcaster, see
// [events.Broadcaster.NewRecorder]. Each call of the recorder returns when the
// broadcaster has written everything that is due at that time. In a test that runs in a
// testing/synctest bubble itself, the call returns at once, as in production. After the
// test, calls do nothing.
func (b *Broadcaster) NewRecorder(scheme *runtime.Scheme, reportingController string) events.Recorder {
	return b.NewRecorderWithOptions(scheme, reportingController, events.RecorderOptions{})
}

// NewRecorderWithOptions is like [Broadcaster.NewRecorder], with options.
func (b *Broadcaster) NewRecorderWithOptions(scheme *runtime.Scheme, reportingController string, opts events.RecorderOptions) events.Recorder {
	r := &bubbleRecorder{bubble: b.bubble}
	b.bubble.do(func() { r.to = b.broadcaster.NewRecorderWithOptions(scheme, reportingController, opts) })
	return r
}

// Advance advances the time by d. It returns when the broadcaster has done everything
// that is due until then, such as sending heartbeats, finishing series and retrying
// writes. It takes no real time.
func (b *Broadcaster) Advance(d time.Duration) { b.bubble.sleep(d) }

// Now returns the virtual time.
func (b *Broadcaster) Now() (now time.Time) {
	b.bubble.do(func() { now = time.Now() })
	return now
}

// Events returns copies of the Events on the server, in the order of their creation.
func (b *Broadcaster) Events() (list []eventsv1.Event) {
	b.bubble.do(func() { list = b.server.Events() })
	return list
}

// Series returns the Events on the server as series, with their State, Count, First and
// Last, in the order of their creation.
func (b *Broadcaster) Series() []series.Series {
	list := b.Events()
	all := make([]series.Series, 0, len(list))
	for i := range list {
		// There is no error: recorders write nothing but series.
		if s, err := series.FromEvent(&list[i]); err == nil {
			all = append(all, *s)
		}
	}
	return all
}

// Requests returns all requests to the server so far, in the order of their arrival. It
// includes those that failed. Concurrent requests about different series come in any
// order.
func (b *Broadcaster) Requests() (list []Request) {
	b.bubble.do(func() { list = b.server.Requests() })
	return list
}

// Answer sets a function that is called with each request from now on, see
// [Server.Answer]. The function may sleep or wait for the end of its context, to delay
// requests in virtual time.
func (b *Broadcaster) Answer(answer func(context.Context, Request) error) {
	b.bubble.do(func() { b.server.Answer(answer) })
}

// Stats returns the statistics of the broadcaster.
func (b *Broadcaster) Stats() (stats events.Stats) {
	b.bubble.do(func() { stats = b.broadcaster.Stats() })
	return stats
}

// Shutdown shuts down the broadcaster, like a program before it exits. The broadcaster
// writes what is pending. The other methods still work afterwards.
func (b *Broadcaster) Shutdown() {
	b.bubble.do(func() { b.broadcaster.Shutdown() })
}

// bubbleRecorder is a recorder whose calls run in a bubble.
type bubbleRecorder struct {
	bubble *bubble
	to     events.Recorder
}

var _ events.Recorder = (*bubbleRecorder)(nil)

// Eventf implements [events.EventRecorder].
func (r *bubbleRecorder) Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
	r.bubble.emit(func() { r.to.Eventf(regarding, related, eventtype, reason, action, note, args...) })
}

// AnnotatedEventf implements [events.AnnotatedEventRecorder].
func (r *bubbleRecorder) AnnotatedEventf(regarding, related runtime.Object, annotations map[string]string, eventtype, reason, action, note string, args ...any) {
	r.bubble.emit(func() {
		r.to.AnnotatedEventf(regarding, related, annotations, eventtype, reason, action, note, args...)
	})
}

// WithLogger implements [events.EventRecorderLogger].
func (r *bubbleRecorder) WithLogger(logger klog.Logger) events.EventRecorderLogger {
	if r.to == nil {
		return r // created after the end of the test
	}
	// The recorders of package events return recorders of package events.
	return &bubbleRecorder{bubble: r.bubble, to: r.to.WithLogger(logger).(events.Recorder)}
}
