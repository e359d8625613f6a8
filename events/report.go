package events

import (
	"cmp"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
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
	incomplete *logLimit     // events
	repairs    *logLimit     // of names: a program can make up names for ever
	rejections *logLimit     // by namespace
	lines      *rate.Limiter // about failures

	mu       sync.Mutex
	failures *lru.Cache // those that last, by requests
	losses   map[tracker.DropReason]losses
}

func newReporter(b *Broadcaster) reporter {
	return reporter{
		b: b, panics: newLogLimit(), incomplete: newLogLimit(), repairs: newLogLimit(), rejections: newLogLimit(), lines: newLineLimiter(),
		failures: lru.New(schedule.MaxRemembered), losses: make(map[tracker.DropReason]losses),
	}
}

// requests are those that probably fail together, because of a quota, a webhook, or a role.
type requests struct{ namespace, verb string }

// failure is a time during which requests fail.
type failure struct {
	since time.Time
	count int       // requests that have failed
	err   error     // the first one in the log, nil if none is
	next  time.Time // of the next line; zero if there is none yet
}

// wrote reports the response to a write.
func (r *reporter) wrote(w *tracker.Write, result tracker.Response, err error) {
	event := klog.KRef(w.Series.Namespace, w.Series.Name)
	if logger := r.b.logger().V(4); logger.Enabled() { // the values take a microsecond
		logger.Info("Sent an event", "write", w.Kind.String(), "outcome", result.Outcome.String(),
			"event", event, "count", w.Series.Count, "waited", w.Waited, "err", err)
	}
	of := requests{w.Series.Namespace, verbOf(w)}
	var details []any
	switch {
	case result.Outcome.Passed(): // the server handles requests of this kind
		r.works(of, "Events are written again")
		return
	case result.Outcome == schedule.Denied:
		details = hint(&w.Series.Key)
	case result.Outcome == schedule.Refused && result.Never == "" && r.rejections.allow(of.namespace, r.b.clock.Now()):
		r.b.logger().Error(err, "Cannot write events, will try again", "namespace", of.namespace, "event", event)
		return
	case result.Outcome.Handled():
		return // what the server responds to this Event says nothing about others
	case result.Pause > 0:
		details = []any{"pausedUntil", r.b.clock.Now().Add(result.Pause)}
	}
	r.failed(of, err, "Cannot write events, will try again", append(details, "event", event)...)
}

// hint returns what to do if Events about an object are denied.
func hint(key *series.Key) []any {
	if key.Regarding.Namespace != "" {
		return nil
	}
	return []any{"hint", "the object is cluster-scoped: permit this namespace, or emit the event about an ObjectReference with a namespace"}
}

// failed records that a request has failed. It logs the first one, and then one each logInterval.
func (r *reporter) failed(of requests, err error, message string, details ...any) {
	now := r.b.clock.Now()
	r.mu.Lock()
	known, _ := r.failures.Get(of)
	f, _ := known.(failure)
	if f.count++; f.count == 1 {
		f.since = now
	}
	isLogged := !now.Before(f.next) && r.lines.AllowN(now, 1)
	if isLogged {
		f.next = now.Add(logInterval)
		if f.err == nil {
			f.err = err
		}
	}
	r.failures.Add(of, f)
	r.mu.Unlock()
	if isLogged {
		r.b.logger().Error(err, message, append(r.details(of, f, "since", f.since), details...)...)
	}
}

// works records that a request has passed. It logs that if the log has a line about its failure.
func (r *reporter) works(of requests, message string) {
	r.mu.Lock()
	known, _ := r.failures.Get(of)
	r.failures.Remove(of)
	r.mu.Unlock()
	if f, _ := known.(failure); f.err != nil {
		r.b.logger().Info(message, r.details(of, f, "failedFor", r.b.clock.Since(f.since), "firstErr", f.err)...)
	}
}

func (r *reporter) details(of requests, f failure, more ...any) []any {
	return append([]any{"namespace", of.namespace, "verb", of.verb, "failedRequests", f.count, "failing", r.failures.Len(),
		"waiting", r.b.tracker.Stats(r.b.clock.Now()).Waiting}, more...)
}

// losses are those of one reason that are not logged yet.
type losses struct {
	tracker.Drop           // the latest one, with the Count of all
	since        time.Time // the first one
	next         time.Time // of the next line
	err          error     // the response of the server, if that is why
}

// lost adds losses, and logs those that are due to the logger, or all. It returns when others are due;
// the time is zero if none wait. Under one lock, so a caller's losses go to the caller's logger.
func (r *reporter) lost(logger klog.Logger, err error, drops []tracker.Drop, all bool) (next time.Time) {
	now := r.b.clock.Now()
	r.mu.Lock()
	for _, drop := range drops {
		sum := r.losses[drop.Reason]
		if sum.Count == 0 {
			sum.since = now
		}
		drop.Count += sum.Count
		sum.Drop, sum.err = drop, err
		r.losses[drop.Reason] = sum
	}
	var due []losses
	for reason, sum := range r.losses {
		switch {
		case sum.Count == 0:
		case all || !now.Before(sum.next):
			due = append(due, sum)
			r.losses[reason] = losses{next: now.Add(logInterval)}
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
	key := &l.Key
	details := []any{"reason", l.Reason, "count", l.Count, "since", l.since,
		"regarding", klog.KRef(key.Regarding.Namespace, key.Regarding.Name), "kind", key.Regarding.Kind,
		"type", key.Type, "eventReason", key.Reason, "action", key.Action, "note", l.Note}
	if l.Reason == tracker.DropNamespaceTerminating {
		// It happens whenever a namespace is deleted, and nobody needs to do anything.
		logger.V(2).Info("Dropped events, because their namespace is being deleted", append(details, "err", l.err)...)
		return
	}
	if l.Reason == tracker.DropDenied {
		details = append(details, "namespace", cmp.Or(key.Regarding.Namespace, r.b.opts.ClusterNamespace, metav1.NamespaceSystem))
		details = append(details, hint(key)...)
	}
	logger.Error(l.err, "Dropped events", details...)
}

// logLimit lets a line of each kind through in each logInterval, and limits the lines of all kinds
// together. It can be used concurrently.
type logLimit struct {
	all *rate.Limiter

	mu   sync.Mutex
	next *lru.Cache // by kind: when the next line can be logged
}

func newLogLimit() *logLimit {
	return &logLimit{all: newLineLimiter(), next: lru.New(schedule.MaxRemembered)}
}

// newLineLimiter returns the limiter of lines about many things.
func newLineLimiter() *rate.Limiter {
	return rate.NewLimiter(rate.Every(logInterval/tracker.MaxShown), tracker.MaxShown)
}

// allow reports whether a line of this kind may be logged now.
func (l *logLimit) allow(kind string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if next, known := l.next.Get(kind); known && now.Before(next.(time.Time)) || !l.all.AllowN(now, 1) {
		return false
	}
	l.next.Add(kind, now.Add(logInterval))
	return true
}

// recoverAndLog recovers from a panic in code of the user, which must not stop the process or the
// recorder. Defer it. It limits the log lines, because the same panic can occur with every event.
func (b *Broadcaster) recoverAndLog(what string) {
	r := recover()
	if r == nil {
		return
	}
	if b.report.panics.allow(what, b.clock.Now()) {
		b.logger().Error(nil, "Caught a panic", "in", what, "panic", eventtext.Panic(r), "stack", safelog.Verbatim(debug.Stack()))
	}
}
