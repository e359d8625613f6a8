package eventstest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/series"
)

// Broadcaster is an events.Broadcaster, the real one, that writes to a Server in
// memory, in a time of its own: that stands still until Advance lets it pass.
// It begins at midnight UTC 2000-01-01.
//
// All methods may be called concurrently, but in a testing/synctest bubble; there
// only the recorders may. They must not be called by what the broadcaster itself
// calls, such as Options.OnDrop, or the function that was given to Answer.
type Broadcaster struct {
	bubble      *bubble
	server      Server
	broadcaster *events.Broadcaster
}

// NewBroadcaster returns a broadcaster with default options that has been started.
// It is shut down at the end of the test.
//
// It needs a *testing.T, which frameworks with a T of their own, such as Ginkgo,
// give to the function that runs the suite.
func NewBroadcaster(t *testing.T) *Broadcaster {
	t.Helper()
	return NewBroadcasterWithOptions(t, events.Options{})
}

// NewBroadcasterWithOptions is NewBroadcaster with options. Their Clock must be nil.
// If Workers is zero there is one, so that there is one request at a time. SkipList
// is set: nobody has left anything on the server. Options that
// cannot be used fail the test at once.
func NewBroadcasterWithOptions(t *testing.T, opts events.Options) *Broadcaster {
	t.Helper()
	opts, err := prepare(opts)
	if err != nil {
		t.Fatal(err)
	}
	b := &Broadcaster{}
	b.server.TTL = opts.EventTTL
	var startErr error
	b.bubble = newBubble(t, func(t *testing.T) {
		b.broadcaster = events.NewBroadcasterWithOptions(&b.server, opts)
		startErr = b.broadcaster.StartRecordingToSinkWithContext(klog.NewContext(context.Background(), testr.New(t)))
	})
	t.Cleanup(func() {
		b.Shutdown()
		b.bubble.end()
	})
	if startErr != nil {
		t.Fatalf("eventstest: %v", startErr)
	}
	return b
}

// prepare makes opts those of a Broadcaster.
func prepare(opts events.Options) (events.Options, error) {
	if opts.Clock != nil {
		return opts, errors.New("eventstest: Options.Clock is set, but a Broadcaster has a time of its own")
	}
	if err := opts.Validate(); err != nil {
		return opts, fmt.Errorf("eventstest: %w", err)
	}
	if opts.Workers == 0 {
		opts.Workers = 1
	}
	opts.SkipList = true
	return opts, nil
}

// NewRecorder returns a recorder of the broadcaster, as events.Broadcaster does.
// Each of its calls returns when what follows from it at this time has been
// written; in a testing/synctest bubble, as soon as the real one does. When the
// test has ended, calls do nothing.
func (b *Broadcaster) NewRecorder(scheme *runtime.Scheme, reportingController string) events.Recorder {
	return b.NewRecorderWithOptions(scheme, reportingController, events.RecorderOptions{})
}

// NewRecorderWithOptions is NewRecorder with options.
func (b *Broadcaster) NewRecorderWithOptions(scheme *runtime.Scheme, reportingController string, opts events.RecorderOptions) events.Recorder {
	r := &advanced{bubble: b.bubble}
	b.bubble.do(func() { r.to = b.broadcaster.NewRecorderWithOptions(scheme, reportingController, opts) })
	return r
}

// Advance lets time pass, and returns when all that was due until then has been
// done: heartbeats sent, series finished, failed writes tried again. It takes no
// real time.
func (b *Broadcaster) Advance(d time.Duration) { b.bubble.sleep(d) }

// Now returns the time.
func (b *Broadcaster) Now() (now time.Time) {
	b.bubble.do(func() { now = time.Now() })
	return now
}

// Events returns what is on the server, in the order in which it was created.
func (b *Broadcaster) Events() (list []eventsv1.Event) {
	b.bubble.do(func() { list = b.server.Events() })
	return list
}

// Series returns what the Events on the server say of their series: State, Count,
// First and Last among others. They are in the order in which they were created.
func (b *Broadcaster) Series() []series.Series {
	list := b.Events()
	all := make([]series.Series, 0, len(list))
	for i := range list {
		// Only the recorder writes to this server, and it writes nothing else.
		if s, err := series.FromEvent(&list[i]); err == nil {
			all = append(all, *s)
		}
	}
	return all
}

// Requests returns all requests to the server so far, those included that were
// refused. Those about different series at the same time may be in any order.
func (b *Broadcaster) Requests() (list []Request) {
	b.bubble.do(func() { list = b.server.Requests() })
	return list
}

// Answer has answer called with each request from now on, as Server.Answer does. To
// have requests take long, it can wait for the end of its context or sleep: that
// takes no real time either.
func (b *Broadcaster) Answer(answer func(context.Context, Request) error) {
	b.bubble.do(func() { b.server.Answer(answer) })
}

// Stats returns the counters of the broadcaster.
func (b *Broadcaster) Stats() (stats events.Stats) {
	b.bubble.do(func() { stats = b.broadcaster.Stats() })
	return stats
}

// Shutdown shuts the broadcaster down as a program does at its end: what is left is
// written. The server can be asked after that as before.
func (b *Broadcaster) Shutdown() {
	b.bubble.do(func() { b.broadcaster.Shutdown() })
}

// advanced is a recorder whose calls are made in a bubble.
type advanced struct {
	bubble *bubble
	to     events.Recorder
}

var _ events.Recorder = (*advanced)(nil)

// Eventf implements events.EventRecorder.
func (r *advanced) Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
	r.bubble.emit(func() { r.to.Eventf(regarding, related, eventtype, reason, action, note, args...) })
}

// AnnotatedEventf implements events.AnnotatedEventRecorder.
func (r *advanced) AnnotatedEventf(regarding, related runtime.Object, annotations map[string]string, eventtype, reason, action, note string, args ...any) {
	r.bubble.emit(func() {
		r.to.AnnotatedEventf(regarding, related, annotations, eventtype, reason, action, note, args...)
	})
}

// WithLogger implements events.EventRecorderLogger.
func (r *advanced) WithLogger(logger klog.Logger) events.EventRecorderLogger {
	if r.to == nil {
		return r // it was made after the end of the test
	}
	// What a recorder of package events returns is one.
	return &advanced{bubble: r.bubble, to: r.to.WithLogger(logger).(events.Recorder)}
}
