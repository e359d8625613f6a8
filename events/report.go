package events

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"

	"github.com/eventseries/eventseries/internal/eventtext"
	"github.com/eventseries/eventseries/internal/safelog"
	"github.com/eventseries/eventseries/internal/tracker"
	"github.com/eventseries/eventseries/series"
)

// reporter logs what does not work, since when, and when it works again, and which events are
// lost: a few lines for each, not one for each request or event. It can be used concurrently.
// It calls no logger under its lock.
type reporter struct {
	b       *Broadcaster
	limit   logLimit
	repairs logLimit // of the lines about repaired names: a program can make up names for ever

	mu      sync.Mutex
	open    map[subject]*trouble
	handled int                            // requests that the server has handled
	losses  map[tracker.DropReason]*losses // that are not logged yet
}

// subject is what does not work: a kind of requests in a namespace.
type subject struct {
	namespace string // empty: everywhere
	kind      string // empty: all writes
}

// The other kinds of requests. For those with a verb that is denied, the kind is the verb.
const (
	listing       = "list"
	deniedListing = "denied list"
	ofClient      = "client" // writes that fail without a server
)

// everywhere is the subject of an outage of the server.
var everywhere = subject{}

// lasts reports whether a retry probably does not help.
func (s subject) lasts() bool { return s.kind != "" && s.kind != listing }

// details name the subject in a line of the log.
func (s subject) details() []any {
	switch s.kind {
	case "create", "patch":
		return []any{"namespace", s.namespace, "verb", s.kind}
	}
	if s == everywhere {
		return nil
	}
	return []any{"namespace", s.namespace}
}

// trouble is a time during which a subject does not work.
type trouble struct {
	since, last time.Time
	requests    int              // that have failed
	verbs       sets.Set[string] // that have failed, and have not worked since
	handled     int              // of the reporter when it began
	logged      bool
}

// unclearFor is how long several namespaces fail, and the server handles nothing, before it is
// the subject. Until then, the log contains the first namespace.
const unclearFor = 2 * time.Minute

// maxTroubles bounds how many subjects are remembered at a time, and troubleTTL for how long
// after a failure: what is not tried any more does not work again.
const (
	maxTroubles = 1000
	troubleTTL  = 2 * time.Hour
)

// wrote reports the response to a write.
func (r *reporter) wrote(w *tracker.Write, result tracker.Result, err error) {
	r.logRequest(w, result.Outcome, err)
	logger, now := r.b.logger(), r.b.clock.Now()
	namespace, verb := w.Series.Namespace, verbOf(w)
	writes, denied := subject{namespace, ""}, subject{namespace, verb}
	switch {
	case !result.Outcome.Handled():
		var event []any
		if result.Local {
			writes.kind, event = ofClient, []any{"event", klog.KRef(namespace, w.Series.Name)}
		}
		if details, ok := r.failed(writes, verb, now); ok {
			logger.Error(err, "Cannot write events, will try again", append(details, event...)...)
		}
		return // whether the recorder may write is unknown
	case result.Outcome == tracker.Denied:
		if details, ok := r.failed(denied, verb, now); ok {
			details = append(details, "resource", deniedResource(err))
			logger.Error(err, "May not write events, will try again", append(details, hint(&w.Series.Key)...)...)
		}
	case result.Outcome == tracker.Written:
		r.works(logger, writes, verb, now, "Events are written again", "failed")
	default:
		// What the server responds to this Event says nothing about others.
	}
	if result.Outcome != tracker.Denied {
		r.works(logger, denied, verb, now, "May write events again", "denied")
	}
	r.mu.Lock()
	r.handled++
	r.mu.Unlock()
	r.works(logger, everywhere, "", now, "Events are written again", "failed")
}

// deniedResource returns the resource that a role must permit: "events", or by default
// "events.events.k8s.io".
func deniedResource(err error) string {
	resource := eventsv1.Resource("events")
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		if details := status.Status().Details; details != nil && details.Kind != "" {
			resource.Group = details.Group
		}
	}
	return resource.String()
}

// hint returns what to do if Events about an object are denied.
func hint(key *series.Key) []any {
	if key.Regarding.Namespace != "" {
		return nil
	}
	return []any{"hint", "the object is cluster-scoped: permit this namespace, or emit the event about an ObjectReference with a namespace"}
}

// noteList reports the response to a list.
func (b *Broadcaster) noteList(controller, namespace string, outcome tracker.Outcome, err error) {
	r, now := &b.report, b.clock.Now()
	logger := b.logger().WithValues("reportingController", controller)
	if !outcome.Handled() {
		if details, ok := r.failed(subject{namespace, listing}, listing, now); ok {
			logger.Error(err, "Cannot list events, will try again", details...)
		}
		return
	}
	r.works(logger, subject{namespace, listing}, listing, now, "The list of events is answered again", "failed")
	logger = logger.WithValues("namespace", namespace)
	switch {
	case outcome == tracker.Denied:
		if _, ok := r.failed(subject{namespace, deniedListing}, listing, now); ok {
			logger.V(2).Info("Missing permission to list events. Series of earlier processes are found by name", "err", err)
		}
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		// The list begins again with the first page.
	case err != nil:
		logger.Error(err, "Cannot list events. Series of earlier processes are found by name")
	}
}

// failed records a request that has failed, and returns what to log about it. ok is false if no
// line is due. What lasts is logged once.
func (r *reporter) failed(what subject, verb string, now time.Time) (details []any, ok bool) {
	r.mu.Lock()
	t := r.troubleLocked(what, now)
	if t == nil {
		r.mu.Unlock()
		return nil, false
	}
	t.note(verb, now)
	since, others := r.othersLocked(what, t)
	switch {
	case !others:
	case now.Sub(since) < unclearFor:
		r.mu.Unlock()
		return nil, false
	default:
		if of := r.troubleLocked(everywhere, now); of != nil {
			what, t = everywhere, of
			t.since = since
			t.note(verb, now)
		}
	}
	var suppressed int
	if !t.logged || !what.lasts() {
		suppressed, ok = r.limit.allow(fmt.Sprint("trouble ", what), now)
	}
	t.logged = t.logged || ok
	requests := t.requests
	since = t.since
	r.mu.Unlock()
	if !ok {
		return nil, false
	}
	stats := r.b.tracker.Stats(now)
	details = append(what.details(), "since", since, "failedRequests", requests, "waiting", stats.Waiting, "suppressed", suppressed)
	if stats.Paused {
		details = append(details, "pausedUntil", stats.PausedUntil)
	}
	return details, true
}

func (t *trouble) note(verb string, now time.Time) {
	t.requests++
	t.last = now
	t.verbs.Insert(verb)
}

// troubleLocked returns the trouble of a subject, which begins now if there is none, or nil if
// there is no room.
func (r *reporter) troubleLocked(what subject, now time.Time) *trouble {
	t := r.open[what]
	if t != nil && now.Sub(t.last) < troubleTTL {
		return t
	}
	if t == nil && len(r.open) >= maxTroubles {
		maps.DeleteFunc(r.open, func(_ subject, t *trouble) bool { return now.Sub(t.last) >= troubleTTL })
		if len(r.open) >= maxTroubles {
			return nil
		}
	}
	t = &trouble{since: now, verbs: sets.New[string](), handled: r.handled}
	r.open[what] = t
	return t
}

// othersLocked reports whether other namespaces fail, too, and the server has handled nothing
// since, so that it is probably the reason. since is when the first one began to fail.
func (r *reporter) othersLocked(what subject, t *trouble) (since time.Time, others bool) {
	since = t.since
	if what.kind != "" || t.handled != r.handled {
		return since, false
	}
	for of, other := range r.open {
		if of.kind == "" && of != everywhere && of != what && other.handled == r.handled {
			others = true
			if other.since.Before(since) {
				since = other.since
			}
		}
	}
	return since, others
}

// works records that a verb works. If no other verb has failed and not worked since, the trouble
// is over. works logs that if the trouble was logged: if something fails now and then, there
// would be a line for each event.
func (r *reporter) works(logger klog.Logger, what subject, verb string, now time.Time, message, past string) {
	r.mu.Lock()
	t := r.open[what]
	over := t != nil && (what == everywhere || t.verbs.Delete(verb).Len() == 0)
	if over {
		delete(r.open, what)
	}
	r.mu.Unlock()
	if over && t.logged {
		logger.Info(message, append(what.details(), past+"For", now.Sub(t.since), past+"Requests", t.requests, "waiting", r.b.tracker.Stats(now).Waiting)...)
	}
}

// logRequest logs a request, for those who want to see each.
func (r *reporter) logRequest(w *tracker.Write, outcome tracker.Outcome, err error) {
	logger := r.b.logger().V(4)
	if !logger.Enabled() {
		return
	}
	details := []any{"kind", w.Kind.String(), "outcome", outcome.String(), "event", klog.KRef(w.Series.Namespace, w.Series.Name),
		"count", w.Series.Count}
	if err != nil {
		details = append(details, "err", err)
	}
	logger.Info("Sent an event", details...)
}

// losses are those of one reason that are not logged yet.
type losses struct {
	loggedKind
	since       time.Time // the first loss
	occurrences int
	example     tracker.Drop // the latest loss
	err         error        // the response of the server, if that is why
}

// lost adds losses, and logs those that are due to the logger. It reports whether others wait
// for [reporter.flush].
func (r *reporter) lost(logger klog.Logger, err error, drops []tracker.Drop) (waits bool) {
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
	r.mu.Unlock()
	return !r.flush(logger, now, false).IsZero()
}

// flush logs the losses that are due, or all, and returns when others are. The time is zero if
// none wait.
func (r *reporter) flush(logger klog.Logger, now time.Time, all bool) (next time.Time) {
	var due []losses
	r.mu.Lock()
	for _, sum := range r.losses {
		switch {
		case sum.occurrences == 0:
		case sum.allow(now) || all:
			due = append(due, *sum)
			sum.occurrences = 0
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
	switch DropReason(l.example.Reason) {
	case DropNamespaceTerminating:
		// It happens whenever a namespace is deleted, and nobody needs to do anything.
		logger.V(2).Info("Dropped events, because their namespace is being deleted", append(details, "err", l.err)...)
		return
	case DropDenied:
		details = append(details, "namespace", cmp.Or(key.Regarding.Namespace, r.b.opts.ClusterNamespace, metav1.NamespaceSystem))
		details = append(details, hint(key)...)
	}
	logger.Error(l.err, "Dropped events", details...)
}

// A kind of line is logged at once, again after logAgain, and then each logAgainMax, if there
// is a reason. After a quiet logAgainMax, it begins anew.
const (
	logAgain    = 10 * time.Minute
	logAgainMax = time.Hour
)

// maxLogKinds is the maximum number of kinds of lines that a logLimit remembers. While it
// remembers that many, it lets no other line through.
const maxLogKinds = 1000

// maxRepairs is the maximum number of repaired names that are logged within logAgain.
const maxRepairs = 20

// logLimit lets few log lines of a kind through, and counts the others. It can be used
// concurrently.
type logLimit struct {
	many int // as maxLogKinds, which it is if zero

	mu     sync.Mutex
	kinds  map[string]*loggedKind
	others int // lines of kinds for which there was no room
}

type loggedKind struct {
	next       time.Time // see allow
	suppressed int       // lines since the latest one
}

// allow reports whether a line of this kind may be logged now, and how many were suppressed
// since the last one.
func (l *logLimit) allow(kind string, now time.Time) (suppressed int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.kinds[kind]
	if k == nil {
		many := cmp.Or(l.many, maxLogKinds)
		if len(l.kinds) >= many {
			maps.DeleteFunc(l.kinds, func(_ string, k *loggedKind) bool { return !now.Before(k.next) })
		}
		if len(l.kinds) >= many {
			l.others++
			return 0, false
		}
		if l.kinds == nil {
			l.kinds = make(map[string]*loggedKind)
		}
		k = &loggedKind{}
		l.kinds[kind] = k
	}
	if !k.allow(now) {
		k.suppressed++
		return 0, false
	}
	suppressed = k.suppressed + l.others
	k.suppressed, l.others = 0, 0
	return suppressed, true
}

// allow reports whether a line may be logged now, and plans the one after it.
func (k *loggedKind) allow(now time.Time) bool {
	if now.Before(k.next) {
		return false
	}
	again := logAgainMax
	if now.Sub(k.next) >= logAgainMax {
		again = logAgain
	}
	k.next = now.Add(again)
	return true
}

// recoverAndLog recovers from a panic in code of the user, which must not stop the process or
// the recorder. Defer it. It limits the log lines, because the same panic can occur with every
// event.
func (b *Broadcaster) recoverAndLog(logger klog.Logger, what string) {
	r := recover()
	if r == nil {
		return
	}
	if suppressed, ok := b.report.limit.allow("panic in "+what, b.clock.Now()); ok {
		logger.Error(nil, "Caught a panic", "in", what, "panic", eventtext.Panic(r), "suppressed", suppressed,
			"stack", safelog.Verbatim(debug.Stack()))
	}
}
