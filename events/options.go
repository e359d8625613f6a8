package events

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/eventseries/eventseries/heartbeat"
	"github.com/eventseries/eventseries/internal/tracker"
)

// Defaults of Options.
const (
	DefaultQPS   = 50
	DefaultBurst = 100
	// DefaultWorkers bounds how many requests a server that pushes back gets
	// before the recorder knows. It is enough for DefaultQPS where an answer takes
	// 80 ms.
	DefaultWorkers         = 4
	DefaultRequestTimeout  = 30 * time.Second
	DefaultShutdownTimeout = 10 * time.Second
	DefaultWatcherQueue    = 1000
)

// Options of a Broadcaster. The zero value is the default.
type Options struct {
	// ReportingInstance names this process in its Events. If empty, the name of
	// the reporting controller and the host name, as in client-go.
	ReportingInstance string

	// Scope says whose series are gone on with after a restart. If zero,
	// SameInstance.
	Scope Scope

	// Namespaces are those whose Events are listed at the start, to find the
	// series that earlier processes left. If empty, all. Series that are not found
	// this way are found by their names when they go on.
	Namespaces []string

	// SkipList says that nothing is listed. Series that nobody goes on with then
	// stay Ongoing on the server until they expire.
	SkipList bool

	// HeartbeatInterval is the time between two writes of a series that goes on.
	// It should be well below EventTTL: a heartbeat keeps the server from
	// collecting the Event. Where thousands of series begin together, their
	// heartbeats are spread: the first ones come sooner. If zero, 30 minutes.
	HeartbeatInterval time.Duration

	// FirstHeartbeat makes the first heartbeat of a series come earlier, and
	// doubles the interval with each until it is HeartbeatInterval, so that users
	// see the count of a young series for a few more writes. If zero, the first
	// heartbeat comes after HeartbeatInterval like any other.
	FirstHeartbeat time.Duration

	// FinishAfter is how long a series has to be quiet to be Finished, and within
	// which an event is followed by the next one of its series. If zero, 6 minutes.
	FinishAfter time.Duration

	// NoteInterval is how often the note of a running series is formatted, to be
	// shown as its last note. If zero, 10 seconds.
	NoteInterval time.Duration

	// DistinctNotes is how many series that differ in nothing but their notes are
	// told apart. As long as fewer than that are tracked of the same regarding and
	// related objects, type, reason and action, another note begins a series of its
	// own; from then on the rest share one, whose note begins with
	// "(combined from similar events): ". It is for controllers that say in the note
	// what their events differ by, as those of the legacy recorder do. Each note is
	// formatted then. If zero, the note tells nothing apart. A recorder can have a
	// number of its own: see RecorderOptions.
	DistinctNotes int

	// Capacity is the number of series that are followed at a time. As many again
	// may wait for their last write after they have ended. If zero, 65536.
	Capacity int

	// EventTTL is for how long the API server keeps an Event: its --event-ttl. If
	// zero, one hour.
	EventTTL time.Duration

	// ClusterNamespace is where Events about cluster-scoped objects go:
	// "kube-system" or "default", as the API server takes no other. If empty,
	// "kube-system".
	ClusterNamespace string

	// QPS limits the requests a second. If zero, 50. If negative, there is no
	// limit. Shutdown is not held to it, since what it has no time for is lost;
	// Workers limits it. The rate limiter of the client is not asked: see
	// EventSinkImpl.
	QPS float32

	// Burst is how many requests may be made at once after a quiet time. If
	// zero, 100.
	Burst int

	// Workers is how many requests can be under way at a time. Calls of a sink
	// that do not return although their contexts have ended are not counted, but
	// there can only be as many again of them. If zero, 4.
	Workers int

	// RequestTimeout ends a request that is not answered. If zero, 30 seconds.
	RequestTimeout time.Duration

	// ShutdownTimeout bounds Shutdown, and the writing of what was emitted
	// before the context of StartRecordingToSinkWithContext ended. If zero, 10
	// seconds.
	ShutdownTimeout time.Duration

	// WatcherQueue is how many events may wait for one in-process watcher. If
	// zero, 1000.
	WatcherQueue int

	// OnDrop, if set, is called with everything that is lost. It may be called
	// from any goroutine, the one that emits included, and must not block. A
	// panic in it is caught and logged. What is lost of the events that it emits
	// itself is counted, but it is not called with it.
	OnDrop func(Drop)

	// Clock is where the time comes from. If nil, the real clock. In a
	// testing/synctest bubble the real clock is what is wanted. Where its times
	// have no monotonic reading, as those of time.Now have, an hour by which it is
	// set ahead is taken for an hour that has passed.
	Clock clock.WithTicker
}

// Scope says whose series a process goes on with.
type Scope uint8

const (
	// SameInstance: those that bear its own ReportingInstance. A container that
	// is started again in its Pod goes on; a new Pod begins anew.
	SameInstance Scope = iota
	// SameController: those of any process of the controller. A new Pod of a
	// Deployment, or a new leader, goes on with the series of the one before it.
	// It is for controllers under leader election, whose broadcaster is started when
	// the leader is elected, so that one process emits at a time. When two write to
	// the same Event all the same, such as a leader that shuts down after it has lost
	// its lease, their counts are added up. That costs two requests each time.
	SameController
)

// String returns the name of the scope.
func (s Scope) String() string {
	switch s {
	case SameInstance:
		return "SameInstance"
	case SameController:
		return "SameController"
	default:
		return fmt.Sprintf("Scope(%d)", uint8(s))
	}
}

// Validate returns an error that names every option that cannot be used, and
// its value.
func (o Options) Validate() error {
	var errs []error
	fail := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("events: Options."+format, args...))
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"HeartbeatInterval", o.HeartbeatInterval},
		{"FirstHeartbeat", o.FirstHeartbeat},
		{"FinishAfter", o.FinishAfter},
		{"NoteInterval", o.NoteInterval},
		{"EventTTL", o.EventTTL},
		{"RequestTimeout", o.RequestTimeout},
		{"ShutdownTimeout", o.ShutdownTimeout},
	} {
		if d.value < 0 {
			fail("%s is negative: %v", d.name, d.value)
		}
	}
	for _, n := range []struct {
		name  string
		value int
	}{
		{"DistinctNotes", o.DistinctNotes},
		{"Capacity", o.Capacity},
		{"Burst", o.Burst},
		{"Workers", o.Workers},
		{"WatcherQueue", o.WatcherQueue},
	} {
		if n.value < 0 {
			fail("%s is negative: %d", n.name, n.value)
		}
	}
	if beat := o.intervals().WithDefaults().Heartbeat; o.FirstHeartbeat > beat {
		fail("FirstHeartbeat is longer than HeartbeatInterval: %v > %v", o.FirstHeartbeat, beat)
	}
	if math.IsNaN(float64(o.QPS)) {
		fail("QPS is %v", o.QPS)
	}
	switch o.ClusterNamespace {
	case "", metav1.NamespaceSystem, metav1.NamespaceDefault:
	default:
		fail("ClusterNamespace is %q; the API server takes %q and %q", o.ClusterNamespace, metav1.NamespaceSystem, metav1.NamespaceDefault)
	}
	return errors.Join(errs...)
}

func (o Options) intervals() heartbeat.Intervals {
	return heartbeat.Intervals{Heartbeat: o.HeartbeatInterval, First: o.FirstHeartbeat, Finish: o.FinishAfter}
}

func (o Options) table() tracker.Options {
	return tracker.Options{
		Window:           o.FinishAfter,
		Capacity:         o.Capacity,
		NoteInterval:     o.NoteInterval,
		EventTTL:         o.EventTTL,
		Heartbeat:        o.HeartbeatInterval,
		ShareInstances:   o.Scope == SameController,
		ClusterNamespace: o.ClusterNamespace,
	}
}

func (o Options) withDefaults() Options {
	o.QPS = cmp.Or(o.QPS, DefaultQPS)
	o.Burst = cmp.Or(o.Burst, DefaultBurst)
	o.Workers = cmp.Or(o.Workers, DefaultWorkers)
	o.RequestTimeout = cmp.Or(o.RequestTimeout, DefaultRequestTimeout)
	o.ShutdownTimeout = cmp.Or(o.ShutdownTimeout, DefaultShutdownTimeout)
	o.WatcherQueue = cmp.Or(o.WatcherQueue, DefaultWatcherQueue)
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return o
}
