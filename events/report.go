package events

import (
	"cmp"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/lru"

	"github.com/eventseries/eventseries/internal/eventtext"
	"github.com/eventseries/eventseries/internal/safelog"
	"github.com/eventseries/eventseries/internal/schedule"
	"github.com/eventseries/eventseries/internal/tracker"
	"github.com/eventseries/eventseries/series"
)

// logInterval is the time between two lines of the same kind.
const logInterval = time.Hour

// reporter logs which requests fail, when they work again, and which events are lost: a few lines
// for each, not one for each request or event. It can be used concurrently. It calls no logger
// under its lock.
type reporter struct {
	b          *Broadcaster
	panics     *logLimit
	incomplete *logLimit // events
	repairs    *logLimit // of names: a program can make up names for ever
	fails      *logLimit // requests

	mu     sync.Mutex
	open   *lru.Cache // the failures that last, by requests
	losses map[tracker.DropReason]*losses
}

func newReporter(b *Broadcaster) reporter {
	return reporter{
		b: b, panics: newLogLimit(), incomplete: newLogLimit(), repairs: newLogLimit(), fails: newLogLimit(),
		open: lru.New(schedule.MaxRemembered), losses: make(map[tracker.DropReason]*losses),
	}
}

// requests are those that probably fail together, because of a quota, a webhook, or a role.
type requests struct{ namespace, verb string }

// single is the verb of requests that fail because of the Event that they contain, whatever
// their verb is. They say nothing about their namespace. That they end is not logged, also if a retry
// passes: other Events of the namespace have passed all the time.
const single = ""

func (of requests) kind() string { return of.verb + " " + of.namespace }

// pick returns the message for writes, or that for lists.
func (of requests) pick(write, list string) string {
	if of.verb == "list" {
		return list
	}
	return write
}

// failure is a time during which requests fail.
type failure struct {
	since time.Time
	count int   // requests that have failed
	err   error // the first one in the log, nil if none is
}

// wrote reports the response to a write.
func (r *reporter) wrote(w *tracker.Write, result tracker.Response, err error) {
	if logger := r.b.logger().V(4); logger.Enabled() { // the values take a microsecond
		logger.Info("Sent an event", "write", w.Kind.String(), "outcome", result.Outcome.String(),
			"event", klog.KRef(w.Series.Namespace, w.Series.Name), "count", w.Series.Count, "waited", w.Waited, "err", err)
	}
	of := requests{w.Series.Namespace, verbOf(w)}
	switch {
	case result.Outcome == schedule.Written:
		r.works(of)
	case result.Outcome == schedule.Denied:
		r.failed(of, err, hint(&w.Series.Key)...)
	case result.Outcome == schedule.Refused && result.Never == "":
		r.failed(requests{of.namespace, single}, err, "event", klog.KRef(of.namespace, w.Series.Name))
	case !result.Outcome.Handled():
		details := []any{"event", klog.KRef(of.namespace, w.Series.Name)}
		if result.Pause > 0 {
			details = append(details, "pausedUntil", r.b.clock.Now().Add(result.Pause))
		}
		r.failed(of, err, details...)
	default:
		// What the server responds to this Event says nothing about others.
	}
}

// noteList reports the response to a list.
func (b *Broadcaster) noteList(controller, namespace string, outcome schedule.Outcome, err error) {
	of := requests{namespace, "list"}
	switch {
	case err == nil:
		b.report.works(of)
	case outcome == schedule.Denied:
		b.logger().V(2).Info("Missing permission to list events. Series of earlier processes are found by name",
			"reportingController", controller, "namespace", namespace, "err", err)
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		// The list begins again with the first page.
	default:
		b.report.failed(of, err, "reportingController", controller)
	}
}

// hint returns what to do if Events about an object are denied.
func hint(key *series.Key) []any {
	if key.Regarding.Namespace != "" {
		return nil
	}
	return []any{"hint", "the object is cluster-scoped: permit this namespace, or emit the event about an ObjectReference with a namespace"}
}

// failed records that a request has failed. It logs the first one, and then one each logInterval.
func (r *reporter) failed(of requests, err error, details ...any) {
	now := r.b.clock.Now()
	_, isLogged := r.fails.allow(of.kind(), now)
	r.mu.Lock()
	f := r.failureLocked(of)
	if f == nil {
		f = &failure{since: now}
		r.open.Add(of, f)
	}
	f.count++
	if isLogged && f.err == nil {
		f.err = err
	}
	line := *f
	r.mu.Unlock()
	if isLogged {
		message := of.pick("Cannot write events, will try again", "Cannot list events, will try again")
		r.b.logger().Error(err, message, append(r.details(of, &line, "since", line.since), details...)...)
	}
}

// failureLocked returns the failure of requests, nil if they work.
func (r *reporter) failureLocked(of requests) *failure {
	f, _ := r.open.Get(of)
	open, _ := f.(*failure)
	return open
}

// works records that a request has passed. It logs that if the log has a line about its failure.
func (r *reporter) works(of requests) {
	r.mu.Lock()
	f := r.failureLocked(of)
	r.open.Remove(of)
	r.mu.Unlock()
	if f != nil && f.err != nil {
		r.fails.forget(of.kind()) // the next failure is another one
		message := of.pick("Events are written again", "Events are listed again")
		r.b.logger().Info(message, r.details(of, f, "failedFor", r.b.clock.Since(f.since), "firstErr", f.err)...)
	}
}

func (r *reporter) details(of requests, f *failure, more ...any) []any {
	details := []any{"namespace", of.namespace}
	if of.verb != single {
		details = append(details, "verb", of.verb)
	}
	return append(append(details, "failedRequests", f.count, "failing", r.open.Len(), "waiting", r.b.tracker.Stats(r.b.clock.Now()).Waiting), more...)
}

// losses are those of one reason that are not logged yet.
type losses struct {
	next        time.Time // of the next line
	since       time.Time // the first loss
	occurrences int
	example     tracker.Drop // the latest loss
	err         error        // the response of the server, if that is why
}

// lost adds losses, and logs those that are due to the logger, or all. It returns when others are due;
// the time is zero if none wait. Under one lock, so a caller's losses go to the caller's logger.
func (r *reporter) lost(logger klog.Logger, err error, drops []tracker.Drop, all bool) (next time.Time) {
	now := r.b.clock.Now()
	r.mu.Lock()
	for _, drop := range drops {
		sum := r.losses[drop.Reason]
		if sum == nil {
			sum = &losses{}
			r.losses[drop.Reason] = sum
		}
		if sum.occurrences == 0 {
			sum.since = now
		}
		sum.occurrences += drop.Count
		sum.example, sum.err = drop, err
	}
	var due []losses
	for _, sum := range r.losses {
		switch {
		case sum.occurrences == 0:
		case all || !now.Before(sum.next):
			due = append(due, *sum)
			sum.occurrences, sum.next = 0, now.Add(logInterval)
		default:
			next = earlier(next, sum.next)
		}
	}
	r.mu.Unlock()
	slices.SortFunc(due, func(a, b losses) int { return a.since.Compare(b.since) })
	for i := range due {
		r.logLosses(logger, &due[i])
	}
	return next
}

func (r *reporter) logLosses(logger klog.Logger, l *losses) {
	key := &l.example.Key
	details := []any{"reason", l.example.Reason, "count", l.occurrences, "since", l.since,
		"regarding", klog.KRef(key.Regarding.Namespace, key.Regarding.Name), "kind", key.Regarding.Kind,
		"type", key.Type, "eventReason", key.Reason, "action", key.Action, "note", l.example.Note}
	if l.example.Reason == tracker.DropNamespaceTerminating {
		// It happens whenever a namespace is deleted, and nobody needs to do anything.
		logger.V(2).Info("Dropped events, because their namespace is being deleted", append(details, "err", l.err)...)
		return
	}
	if l.example.Reason == tracker.DropDenied {
		details = append(details, "namespace", cmp.Or(key.Regarding.Namespace, r.b.opts.ClusterNamespace, metav1.NamespaceSystem))
		details = append(details, hint(key)...)
	}
	logger.Error(l.err, "Dropped events", details...)
}

// logLimit lets a line of each kind through in each logInterval, and limits the lines of all kinds
// together. It can be used concurrently.
type logLimit struct {
	all *rate.Limiter

	mu         sync.Mutex
	next       *lru.Cache // by kind: when the next line can be logged
	suppressed int        // lines since the latest one
}

func newLogLimit() *logLimit {
	return &logLimit{all: rate.NewLimiter(rate.Every(logInterval/tracker.MaxShown), tracker.MaxShown), next: lru.New(schedule.MaxRemembered)}
}

// allow reports whether a line of this kind may be logged now, and how many lines of all kinds
// were suppressed since the latest one.
func (l *logLimit) allow(kind string, now time.Time) (suppressed int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if next, known := l.next.Get(kind); known && now.Before(next.(time.Time)) || !l.all.AllowN(now, 1) {
		l.suppressed++
		return 0, false
	}
	l.next.Add(kind, now.Add(logInterval))
	suppressed, l.suppressed = l.suppressed, 0
	return suppressed, true
}

// forget lets the next line of a kind through.
func (l *logLimit) forget(kind string) { l.next.Remove(kind) }

// recoverAndLog recovers from a panic in code of the user, which must not stop the process or the
// recorder. Defer it. It limits the log lines, because the same panic can occur with every event.
func (b *Broadcaster) recoverAndLog(logger klog.Logger, what string) {
	r := recover()
	if r == nil {
		return
	}
	if suppressed, ok := b.report.panics.allow(what, b.clock.Now()); ok {
		logger.Error(nil, "Caught a panic", "in", what, "panic", eventtext.Panic(r), "suppressed", suppressed,
			"stack", safelog.Verbatim(debug.Stack()))
	}
}
