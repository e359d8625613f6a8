package events

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"

	"github.com/eventseries/eventseries/internal/schedule"
	"github.com/eventseries/eventseries/internal/tracker"
	"github.com/eventseries/eventseries/series"
)

// The defaults of options that depend on nothing else.
const (
	defaultQPS             = 50
	defaultShutdownTimeout = 10 * time.Second
)

// retryJitter is the largest part by which a delay exceeds its back-off, so that many
// processes do not retry at the same time.
const retryJitter = 0.2

func jitter(d time.Duration) time.Duration { return wait.Jitter(d, retryJitter) }

// Options of a [Broadcaster]. The zero value stands for the defaults, and suits most controllers.
//
// docs/operations.md shows the first paragraph of each comment, and the default.
type Options struct {
	// ReportingInstance usually names this process in new Events. Set it to the name of the Pod if
	// several processes of one controller run on a host. If empty, the name of the reporting
	// controller and the host name, as in client-go.
	ReportingInstance string

	// Scope says whose series this process continues. If zero, [SameInstance].
	Scope Scope

	// Namespaces are the namespaces of the list. Set them if the controller may list in some
	// namespaces only. If empty, all.
	//
	// The list finds the series that earlier processes have left. A series that is not found this
	// way is found by its name when it occurs again.
	//
	// In the scope [SameInstance], the list comes within half of EventTTL after the first
	// event of a controller, or at once if List is true. In the scope [SameController], it comes when the broadcaster
	// starts, and for a recorder that is created later, when that is created.
	Namespaces []string

	// List says whether to list, whatever the number of Events on the server. If nil, the list is made
	// where Events are few.
	//
	// To find the Events of one process, the server reads all of them, whosever they are. So
	// the recorder asks for their number first, for each of the Namespaces, and lists up to 2,000, or up
	// to 65,536 in the scope [SameController], which few processes have. If List is true, it lists at
	// once. Without the list, series that no process continues stay Ongoing on the server until
	// they expire. Set List to false if you do not grant the verb.
	List *bool

	// EventTTL is for how long the API server keeps an Event: its --event-ttl, at least a
	// second. If zero, 1 hour.
	EventTTL time.Duration

	// HeartbeatInterval is the usual time between two writes of a fast loop. It must be shorter
	// than EventTTL. If zero, half of EventTTL.
	//
	// A heartbeat keeps the server from deleting the Event, so the interval should be half of
	// EventTTL. If many series are ongoing, some intervals are shorter, to spread the
	// heartbeats.
	HeartbeatInterval time.Duration

	// FirstHeartbeat is usually the first interval of a fast loop in this process, and the second. Then
	// intervals double, up to HeartbeatInterval. If zero, HeartbeatInterval.
	//
	// With one second, the count on the server is, after some seconds, never older than half of the
	// time that this process has emitted the series, even if it is killed, for about twelve additional
	// writes in the first half hour. Early heartbeats without news are skipped.
	FirstHeartbeat time.Duration

	// FinishAfter is the shortest quiet window, after which a fast loop is Finished. If zero, 6 minutes.
	//
	// The window follows the loop. It is 2.1 times the longest time between two occurrences in
	// the last 72 minutes, so that a loop that backs off stays Ongoing.
	FinishAfter time.Duration

	// MaxWindow is the longest quiet window. An event within this time of the previous one usually
	// makes the series Ongoing. If zero, 36 minutes, or FinishAfter if that is longer.
	//
	// A loop that backs off to 1,000 seconds needs 35 minutes. A later event counts in the same
	// Event, for as long as the server keeps that, and the series stays Finished. If MaxWindow
	// equals FinishAfter, the window is fixed.
	MaxWindow time.Duration

	// Filter reports whether to record an event with a key. If nil, all.
	//
	// It is called with each event, from the goroutine that emits it, so it must be fast and safe for
	// concurrent use. Its answers can change. The events that it excludes are counted in
	// [Stats].Filtered. A [Filter] has such a function for the text of a flag or a ConfigMap:
	// [Filter.Selects].
	Filter func(series.Key) bool

	// Capacity is the number of series that can be tracked at a time. As many again can wait for
	// their last write. If zero, 65536.
	//
	// A series that is over keeps its place until its Event expires if there is room. It is the
	// first to be evicted, and costs two more requests if it recurs then.
	Capacity int

	// ClusterNamespace is the namespace of Events about cluster-scoped objects: kube-system or
	// default, because the API server accepts no other. If empty, kube-system.
	ClusterNamespace string

	// QPS limits the requests per second before a shutdown, as in rest.Config. If negative, there is no limit. If
	// zero, 50.
	//
	// A limit of less than one request per year is one per year. The rate limiter of the client is
	// not used; see [EventSinkImpl]. The number of requests in flight is limited to QPS / 5 (rounded up),
	// at most 32. Those that take longer than 100 milliseconds do not count.
	//
	// Shutdown ignores QPS, because what it has no time for is lost. It has up to 32 requests at a time, without
	// slower ones.
	QPS float32

	// Burst is the number of requests after a quiet time that QPS does not delay, as in rest.Config.
	// If zero, twice QPS.
	Burst int

	// ShutdownTimeout limits [Broadcaster.Shutdown]. If zero, 10 seconds.
	//
	// A broadcaster shuts down this much after the end of the context of its start. Adapt
	// ShutdownTimeout to the Pod's terminationGracePeriodSeconds. [Broadcaster.ShutdownWithContext] has
	// a limit of its own.
	ShutdownTimeout time.Duration

	// OnDrop is called with losses, one after the other. If nil, none.
	//
	// It delays no event: losses wait for it, up to 131,072, or twice Capacity if that is more, and
	// others are counted only. It must not emit events through this broadcaster, because those can be
	// lost as well. A panic in it is caught and logged.
	OnDrop func(Drop)

	// For tests, and for other packages of this project.
	workers   int              // if zero, those that QPS needs
	clock     clock.WithTicker // if nil, the real one
	listLimit int              // the number of Events up to which they are listed; if zero, List says it
}

// Scope says whose series a process continues.
type Scope string

const (
	// SameInstance continues the series with the ReportingInstance of the process. A
	// container that restarts in its Pod continues them; a new Pod begins new ones.
	SameInstance Scope = "SameInstance"
	// SameController continues the series of any process of the controller, so that a
	// new Pod of a Deployment, or a new leader, continues those of the previous one. It
	// is for controllers under leader election, whose broadcaster starts when the
	// leader is elected, so that one process emits at a time. If two processes write to
	// the same Event all the same, for example while a leader shuts down that has lost
	// its lease, their counts are added. That takes two additional requests each time.
	SameController Scope = "SameController"
)

// validate returns an error that names every invalid option and its value.
func (o Options) validate() error {
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
		case d.value > series.MaxDuration:
			fail("%s is longer than %v: %v", d.name, series.MaxDuration, d.value)
		}
	}
	if o.Capacity < 0 {
		fail("Capacity is negative: %d", o.Capacity)
	}
	if o.Burst < 0 {
		fail("Burst is negative: %d", o.Burst)
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
	if o.Scope != "" && o.Scope != SameInstance && o.Scope != SameController {
		fail("Scope is %q", o.Scope)
	}
	for _, namespace := range o.Namespaces {
		if wrong := apivalidation.ValidateNamespaceName(namespace, false); namespace != metav1.NamespaceAll && len(wrong) > 0 {
			fail("Namespaces contains %q: %s", namespace, strings.Join(wrong, ", "))
		}
	}
	if math.IsNaN(float64(o.QPS)) {
		fail("QPS is %v", o.QPS)
	}
	if !slices.Contains([]string{"", metav1.NamespaceSystem, metav1.NamespaceDefault}, o.ClusterNamespace) {
		fail("ClusterNamespace is %q; the API server accepts %q and %q", o.ClusterNamespace, metav1.NamespaceSystem, metav1.NamespaceDefault)
	}
	return errors.Join(errs...)
}

func (o Options) tracker() tracker.Options {
	return tracker.Options{
		Shared:            o.Scope == SameController,
		FinishAfter:       o.FinishAfter,
		MaxWindow:         o.MaxWindow,
		HeartbeatInterval: o.HeartbeatInterval,
		FirstHeartbeat:    o.FirstHeartbeat,
		EventTTL:          o.EventTTL,
		Capacity:          o.Capacity,
		ClusterNamespace:  o.ClusterNamespace,
		Workers:           o.workers,
		Jitter:            jitter,
	}
}

func (o Options) withDefaults() Options {
	o.QPS = cmp.Or(o.QPS, defaultQPS)
	o.Burst = cmp.Or(o.Burst, max(1, int(min(2*o.QPS, math.MaxInt32/2))))
	o.Scope = cmp.Or(o.Scope, SameInstance)
	o.Capacity = cmp.Or(o.Capacity, tracker.Options{}.WithDefaults().Capacity)
	if o.workers == 0 { // as many as twice QPS take with slow responses, so that QPS is the limit
		o.workers = schedule.MaxPlaces
		if o.QPS >= 0 {
			o.workers = int(min(math.Ceil(2*float64(o.QPS)*schedule.SlowAfter.Seconds()), schedule.MaxPlaces))
		}
	}
	switch {
	case o.listLimit != 0:
	case o.List != nil && *o.List:
		o.listLimit = math.MaxInt
	case o.List != nil:
		o.listLimit = -1
	case o.Scope == SameController:
		o.listLimit = tracker.Options{}.WithDefaults().Capacity // whatever this one's is
	default:
		o.listLimit = defaultListLimit
	}
	o.EventTTL = cmp.Or(o.EventTTL, time.Hour)
	o.ShutdownTimeout = cmp.Or(o.ShutdownTimeout, defaultShutdownTimeout)
	if o.clock == nil {
		o.clock = clock.RealClock{}
	}
	return o
}
