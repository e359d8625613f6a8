package events

import (
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	"github.com/eventseries/eventseries/internal/apigroup"
	"github.com/eventseries/eventseries/internal/tracker"
)

// maxOutages bounds how many outages are remembered at a time.
const maxOutages = 1000

// outages log what does not work, since when, how much waits for it, and when it works
// again: a line for each outage, not for each request. They can be used concurrently.
type outages struct {
	limit logLimit

	mu   sync.Mutex
	open map[subject]*outage
}

// outage is a time during which something does not work.
type outage struct {
	since    time.Time
	requests int // that have failed
	logged   bool
}

// subject is what an outage is about: a verb that the server denies in a namespace, or
// else all writes or all lists, which fail.
type subject struct {
	denied          bool
	namespace, verb string
}

var writing, listing = subject{verb: "write"}, subject{verb: "list"}

// note records the response to a write.
func (o *outages) note(b *Broadcaster, w *tracker.Write, result tracker.Result, err error) {
	now := b.clock.Now()
	b.logRequest(w, result.Outcome, err)
	asked := subject{true, w.Series.Namespace, "patch"}
	if w.Creates() {
		asked.verb = "create"
	}
	switch result.Outcome {
	case tracker.PushedBack, tracker.Troubled:
		if details, ok := o.fail(b, writing, result.Outcome, now); ok {
			b.logger().Error(err, "Cannot write events, will try again", details...)
		}
		return // whether the recorder may write is unknown
	case tracker.Denied:
		if details, ok := o.fail(b, asked, result.Outcome, now); ok {
			details = append(details, "namespace", asked.namespace, "verb", asked.verb, "resource", apigroup.DeniedResource(err))
			b.logger().Error(err, "May not write events, will try again", details...)
		}
		return
	case tracker.Written:
		if over, ok := o.end(writing); ok {
			b.logger().Info("Events are written again", "failedFor", now.Sub(over.since),
				"failedRequests", over.requests, "waiting", b.waitingSeries())
		}
	default:
		// The server responds. What it says about this Event is not about others.
	}
	if over, ok := o.end(asked); ok {
		b.logger().Info("May write events again", "namespace", asked.namespace, "verb", asked.verb,
			"deniedFor", now.Sub(over.since), "deniedRequests", over.requests, "waiting", b.waitingSeries())
	}
}

// noteList records the response to a list.
func (b *Broadcaster) noteList(controller, namespace string, outcome tracker.Outcome, err error) {
	o, now := &b.outages, b.clock.Now()
	logger := b.logger().WithValues("reportingController", controller, "namespace", namespace)
	if outcome == tracker.PushedBack || outcome == tracker.Troubled {
		if details, ok := o.fail(b, listing, outcome, now); ok {
			logger.Error(err, "Cannot list events, will try again", details...)
		}
		return
	}
	if over, ok := o.end(listing); ok {
		logger.Info("The list of events is answered again", "failedFor", now.Sub(over.since), "failedRequests", over.requests)
	}
	switch {
	case outcome == tracker.Denied:
		if _, ok := o.fail(b, subject{true, namespace, "list"}, outcome, now); ok {
			logger.V(2).Info("Missing permission to list events. Series of earlier processes are found by name", "err", err)
		}
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		// The list begins again with the first page.
	case err != nil:
		logger.Error(err, "Cannot list events. Series of earlier processes are found by name")
	}
}

// fail records a request that has failed, and returns what to log about it. ok is false if
// no line is due. A missing permission is logged once until the server grants it. If the
// server changes its mind all the time, not each time is logged.
func (o *outages) fail(b *Broadcaster, what subject, outcome tracker.Outcome, now time.Time) (details []any, ok bool) {
	o.mu.Lock()
	of := o.open[what]
	if of == nil {
		if len(o.open) >= maxOutages {
			o.mu.Unlock()
			return nil, false
		}
		if o.open == nil {
			o.open = make(map[subject]*outage)
		}
		of = &outage{since: now}
		o.open[what] = of
	}
	of.requests++
	var suppressed int
	if outcome != tracker.Denied || !of.logged {
		suppressed, ok = o.limit.allow(fmt.Sprint(what, outcome), now)
	}
	of.logged = of.logged || ok
	since, requests := of.since, of.requests
	o.mu.Unlock()
	if !ok {
		return nil, false
	}
	stats := b.tracker.Stats(now)
	details = []any{"since", since, "failedRequests", requests, "waiting", stats.Waiting, "suppressed", suppressed}
	if stats.Paused {
		details = append(details, "pausedUntil", stats.PausedUntil)
	}
	return details, true
}

// end records that something works, and returns the outage that ends. ok is false if that
// was not logged: if something fails now and then, there would be a line for each event.
func (o *outages) end(what subject) (over outage, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if of := o.open[what]; of != nil {
		over = *of
		delete(o.open, what)
	}
	return over, over.logged
}

// logRequest logs a request, for those who want to see each.
func (b *Broadcaster) logRequest(w *tracker.Write, outcome tracker.Outcome, err error) {
	logger := b.logger().V(4)
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
