package events

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"

	"github.com/eventseries/eventseries/internal/tracker"
	"github.com/eventseries/eventseries/series"
)

// The defaults of options that depend on nothing else.
const (
	defaultQPS = 50
	// defaultWorkers bounds how many requests a server gets before the recorder knows
	// that it pushes back. It is enough for defaultQPS if a response takes 80 ms.
	defaultWorkers         = 4
	defaultShutdownTimeout = 10 * time.Second
)

// maxDuration limits the options that are durations, so that sums of them do not overflow.
const maxDuration = 365 * 24 * time.Hour

// retryJitter is the largest part by which a delay exceeds its back-off, so that many
// processes do not retry at the same time.
const retryJitter = 0.2

func jitter(d time.Duration) time.Duration { return wait.Jitter(d, retryJitter) }

// Options of a [Broadcaster]. The zero value stands for the defaults.
type Options struct {
	// ReportingInstance names this process in its Events. If empty, the name of the
	// reporting controller and the host name, as in client-go.
	ReportingInstance string

	// Scope says whose series this process continues. If zero, [SameInstance].
	Scope Scope

	// Namespaces are those whose Events are listed, to find the series that earlier
	// processes have left. If empty, all. A series that is not found this way is found by its
	// name when it occurs again. ListLimit applies to each of the Namespaces.
	//
	// In the scope [SameInstance], the list comes within half of EventTTL after the first
	// event of a controller. In the scope [SameController], it comes when the broadcaster
	// starts, and for a recorder that is created later, when that is created.
	Namespaces []string

	// ListLimit is the maximum number of Events on the server, whosever they are, with which
	// the list is made: to find those of one process, the server reads all of them. So the
	// recorder asks for their number first. If zero, 2,000, or 50,000 in the scope
	// [SameController], which has fewer processes. If negative, the list is made at once,
	// whatever it costs.
	ListLimit int

	// SkipList disables the list. Series that no process continues then stay Ongoing
	// on the server until they expire.
	SkipList bool

	// EventTTL is for how long the API server keeps an Event: its --event-ttl, at least a
	// second. If zero, one hour.
	EventTTL time.Duration

	// HeartbeatInterval is the time between two writes of an ongoing series. It must
	// be shorter than EventTTL, and should be half of it: a heartbeat keeps the server
	// from deleting the Event. If many series are ongoing, one interval of each is
	// shorter, to spread the heartbeats. If zero, half of EventTTL.
	HeartbeatInterval time.Duration

	// FirstHeartbeat is the first interval of a series in this process, and the second.
	// Each following one is twice the previous one, up to HeartbeatInterval. With one
	// second, the count on the server is never older than half of the time that this
	// process has emitted the series, even if it is killed, for about twelve additional
	// writes in the first half hour. Early heartbeats without news are skipped. If zero,
	// HeartbeatInterval.
	FirstHeartbeat time.Duration

	// FinishAfter is the shortest quiet window: a series that has been quiet for its
	// window is Finished. The window follows the loop. It is 2.1 times the longest time
	// between two occurrences in the last 72 minutes, so that a loop that backs off stays
	// Ongoing. If zero, 6 minutes.
	FinishAfter time.Duration

	// MaxWindow is the longest quiet window. An event within this time of the previous
	// one makes the series Ongoing. A later one counts in the same Event, for as long as the
	// server keeps that, and the series stays Finished. If MaxWindow equals FinishAfter, the window is fixed, as KEP-383 has it. If
	// zero, 36 minutes, or FinishAfter if that is longer: a loop that backs off to 1,000
	// seconds needs 35 minutes.
	MaxWindow time.Duration

	// Filter says which events are recorded, and can be changed at any time. The others
	// are counted in [Stats].Filtered. Several broadcasters can have the same filter. If
	// nil, all events are recorded.
	Filter *Filter

	// Reasons is the number of combinations of controller, type, and reason that are counted
	// by themselves, in [Stats].Reasons and in the metrics: the first ones. Others count as
	// "other". If zero, nothing is counted by reason. 200 suffice for most programs: a
	// controller has some dozens.
	Reasons int

	// DistinctNotes is how many series can differ in their notes alone. Further notes
	// share one series, whose note begins with "(combined from similar events): ". It is
	// for controllers whose notes distinguish their events, like those of the legacy
	// recorder. The recorder then formats each note. If zero, notes distinguish nothing.
	// [RecorderOptions] can override it.
	DistinctNotes int

	// Capacity is the number of series that are tracked at a time. A series that is over
	// keeps its place until its Event expires if there is room. It is the first to be evicted,
	// and costs two more requests if it recurs then. As many series again can wait for their
	// last write.
	// If zero, 65536.
	Capacity int

	// ClusterNamespace is the namespace of Events about cluster-scoped objects:
	// "kube-system" or "default", because the API server accepts no other. If empty,
	// "kube-system".
	ClusterNamespace string

	// QPS limits the requests per second. After a quiet time, twice as many can be made
	// at once. If zero, 50. If negative, there is no limit. A limit of less than one request
	// per day is one per day. Shutdown ignores it, because
	// what it has no time for is lost. The rate limiter of the client is not used; see
	// [EventSinkImpl].
	QPS float32

	// Workers is how many requests can be in flight at a time. Up to 100 that take longer
	// than 100 milliseconds do not count: in a namespace whose admission webhook hangs,
	// each takes until its timeout. While Shutdown writes what is left, each request that
	// the server handles permits one more at a time, up to 32, until the server pushes
	// back. If zero, 4.
	Workers int

	// ShutdownTimeout limits [Broadcaster.Shutdown], and the writing after the context
	// of [Broadcaster.StartRecordingToSinkWithContext] has ended. If zero, 10 seconds.
	ShutdownTimeout time.Duration

	// OnDrop, if set, is called with every loss. It can be called from any goroutine,
	// including one that emits an event, and must not block. It must not emit events
	// through this broadcaster: they can be dropped as well, and those are counted
	// only. A panic in it is caught and logged.
	OnDrop func(Drop)

	// Clock is the source of time. If nil, the real clock, which is also right in a
	// testing/synctest bubble. A clock whose times have no monotonic reading, unlike those
	// of time.Now, ends all series if it jumps ahead by an hour: the recorder cannot tell
	// the jump from a quiet hour.
	Clock clock.WithTicker
}

// Scope says whose series a process continues.
type Scope uint8

const (
	// SameInstance continues the series with the ReportingInstance of the process. A
	// container that restarts in its Pod continues them; a new Pod begins new ones.
	SameInstance = Scope(tracker.SameInstance)
	// SameController continues the series of any process of the controller, so that a
	// new Pod of a Deployment, or a new leader, continues those of the previous one. It
	// is for controllers under leader election, whose broadcaster starts when the
	// leader is elected, so that one process emits at a time. If two processes write to
	// the same Event all the same, for example while a leader shuts down that has lost
	// its lease, their counts are added. That takes two additional requests each time.
	SameController = Scope(tracker.SameController)
)

var scopeNames = [...]string{"SameInstance", "SameController"}

// String returns the name of the scope.
func (s Scope) String() string {
	if int(s) < len(scopeNames) {
		return scopeNames[s]
	}
	return fmt.Sprintf("Scope(%d)", uint8(s))
}

// Validate returns an error that names every invalid option and its value. It
// returns nil for the zero value.
func (o Options) Validate() error {
	var errs []error
	fail := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("events: Options."+format, args...))
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"EventTTL", o.EventTTL},
		{"HeartbeatInterval", o.HeartbeatInterval},
		{"FirstHeartbeat", o.FirstHeartbeat},
		{"FinishAfter", o.FinishAfter},
		{"MaxWindow", o.MaxWindow},
		{"ShutdownTimeout", o.ShutdownTimeout},
	} {
		switch {
		case d.value < 0:
			fail("%s is negative: %v", d.name, d.value)
		case d.value > maxDuration:
			fail("%s is longer than %v: %v", d.name, maxDuration, d.value)
		}
	}
	for _, n := range []struct {
		name  string
		value int
	}{
		{"Reasons", o.Reasons},
		{"DistinctNotes", o.DistinctNotes},
		{"Capacity", o.Capacity},
		{"Workers", o.Workers},
	} {
		if n.value < 0 {
			fail("%s is negative: %d", n.name, n.value)
		}
	}
	if o.EventTTL > 0 && o.EventTTL < time.Second {
		fail("EventTTL is shorter than a second: %v", o.EventTTL)
	}
	t := o.tracker().WithDefaults()
	if t.FirstHeartbeat > t.HeartbeatInterval {
		fail("FirstHeartbeat is longer than HeartbeatInterval: %v > %v", t.FirstHeartbeat, t.HeartbeatInterval)
	}
	if t.EventTTL > 0 && t.HeartbeatInterval >= t.EventTTL {
		fail("HeartbeatInterval is not shorter than EventTTL: %v >= %v", t.HeartbeatInterval, t.EventTTL)
	}
	if o.MaxWindow > 0 && o.MaxWindow < t.FinishAfter {
		fail("MaxWindow is shorter than FinishAfter: %v < %v", o.MaxWindow, t.FinishAfter)
	}
	if o.Scope > SameController {
		fail("Scope is %v", o.Scope)
	}
	for _, namespace := range o.Namespaces {
		if wrong := apivalidation.ValidateNamespaceName(namespace, false); namespace != metav1.NamespaceAll && len(wrong) > 0 {
			fail("Namespaces contains %q: %s", namespace, strings.Join(wrong, ", "))
		}
	}
	if math.IsNaN(float64(o.QPS)) {
		fail("QPS is %v", o.QPS)
	}
	switch o.ClusterNamespace {
	case "", metav1.NamespaceSystem, metav1.NamespaceDefault:
	default:
		fail("ClusterNamespace is %q; the API server accepts %q and %q", o.ClusterNamespace, metav1.NamespaceSystem, metav1.NamespaceDefault)
	}
	return errors.Join(errs...)
}

func (o Options) tracker() tracker.Options {
	return tracker.Options{
		Accepts:           func(k series.Key) bool { return o.Filter.selects(&k) },
		Tallies:           o.Reasons,
		Scope:             tracker.Scope(o.Scope),
		FinishAfter:       o.FinishAfter,
		MaxWindow:         o.MaxWindow,
		HeartbeatInterval: o.HeartbeatInterval,
		FirstHeartbeat:    o.FirstHeartbeat,
		EventTTL:          o.EventTTL,
		Capacity:          o.Capacity,
		ClusterNamespace:  o.ClusterNamespace,
		Workers:           o.Workers,
		Jitter:            jitter,
	}
}

func (o Options) withDefaults() Options {
	o.QPS = cmp.Or(o.QPS, defaultQPS)
	o.Workers = cmp.Or(o.Workers, defaultWorkers)
	if o.ListLimit == 0 && o.Scope == SameController {
		o.ListLimit = listLimitOfControllers
	}
	o.ListLimit = cmp.Or(o.ListLimit, listLimitOfInstances)
	if o.Filter == nil {
		o.Filter = new(Filter)
	}
	o.EventTTL = cmp.Or(o.EventTTL, time.Hour)
	o.ShutdownTimeout = cmp.Or(o.ShutdownTimeout, defaultShutdownTimeout)
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return o
}
