package events

import (
	"maps"
	"sync"
	"time"

	"github.com/eventseries/eventseries/internal/apigroup"
	"github.com/eventseries/eventseries/internal/tracker"
)

// maxDenied bounds how many missing permissions are remembered.
const maxDenied = 1000

// outages log what does not work, since when, how much waits for it, and when it
// works again: a line for each outage, not for each request. They can be used
// concurrently.
type outages struct {
	limit logLimit

	mu      sync.Mutex
	writing outage
	listing outage
	denied  map[permission]*outage
}

// outage is a time during which something does not work.
type outage struct {
	since    time.Time // zero: it works
	requests int       // that have failed
	logged   bool
}

// permission is something that the recorder may do or not.
type permission struct{ namespace, verb string }

func (p permission) String() string { return p.verb + " " + p.namespace }

// fail records a request that has failed.
func (o *outage) fail(now time.Time) {
	if o.since.IsZero() {
		o.since = now
	}
	o.requests++
}

// note records what became of a write.
func (o *outages) note(b *Broadcaster, w *tracker.Write, result tracker.Result, err error) {
	outcome, now := result.Outcome, b.clock.Now()
	if w.Kind == tracker.List {
		o.noteList(b, *w.Page, result, now, err)
		return
	}
	b.logRequest(w, outcome, err)
	asked := permission{w.Series.Namespace, "patch"}
	if w.Creates() {
		asked.verb = "create"
	}
	switch outcome {
	case tracker.PushedBack, tracker.Troubled:
		if details, ok := o.noteFailure(b, &o.writing, "write", outcome, now); ok {
			b.logger().Error(err, "Cannot write events, will try again", details...)
		}
		return // whether the recorder may write is unknown
	case tracker.Denied:
		o.noteDenied(b, asked, now, err)
		return
	case tracker.Written:
		if over, ok := o.end(&o.writing); ok {
			b.logger().Info("Events are written again", "failedFor", now.Sub(over.since),
				"failedRequests", over.requests, "waiting", b.waitingSeries())
		}
	default:
		// The server responds. What it says about this Event is not about others.
	}
	o.notePermitted(b, asked, now)
}

// noteList records what became of a list.
func (o *outages) noteList(b *Broadcaster, page tracker.Page, result tracker.Result, now time.Time, err error) {
	logger := b.logger().WithValues("reportingController", page.Controller, "namespace", page.Namespace)
	if result.Outcome == tracker.PushedBack || result.Outcome == tracker.Troubled {
		if details, ok := o.noteFailure(b, &o.listing, "list", result.Outcome, now); ok {
			logger.Error(err, "Cannot list events, will try again", details...)
		}
		return
	}
	if over, ok := o.end(&o.listing); ok {
		logger.Info("The list of events is answered again", "failedFor", now.Sub(over.since), "failedRequests", over.requests)
	}
	switch {
	case result.Outcome == tracker.Denied:
		if _, news := o.deny(permission{page.Namespace, "list"}, now); news {
			logger.V(2).Info("Missing permission to list events. Series of earlier processes are found by name", "err", err)
		}
	case result.Listed.Expired && page.Continue != "":
		// The tracker begins again with the first page.
	case err != nil:
		logger.Error(err, "Cannot list events. Series of earlier processes are found by name")
	}
}

// noteFailure records a request that has failed, and returns what to log about it.
// ok is false if no line is due.
func (o *outages) noteFailure(b *Broadcaster, of *outage, what string, outcome tracker.Outcome, now time.Time) (details []any, ok bool) {
	o.mu.Lock()
	of.fail(now)
	suppressed, ok := o.limit.allow(what+" "+outcome.String(), now)
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

// end says that something works, and returns the outage that ends. ok is false if that
// was not logged: if something fails now and then, there would be a line for each event.
func (o *outages) end(of *outage) (over outage, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	over, *of = *of, outage{}
	return over, over.logged
}

// noteDenied records a missing permission. It is logged once for each namespace and
// verb until it is there.
func (o *outages) noteDenied(b *Broadcaster, asked permission, now time.Time, err error) {
	if since, news := o.deny(asked, now); news {
		b.logger().Error(err, "May not write events, will try again", "namespace", asked.namespace, "verb", asked.verb,
			"resource", apigroup.DeniedResource(err), "since", since, "waiting", b.waitingSeries())
	}
}

// deny records a missing permission, and reports since when it is missing and
// whether that is to be logged.
func (o *outages) deny(asked permission, now time.Time) (since time.Time, news bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	of, known := o.denied[asked]
	if !known {
		if len(o.denied) >= maxDenied {
			maps.DeleteFunc(o.denied, func(p permission, of *outage) bool {
				if !of.since.IsZero() {
					return false
				}
				o.limit.forget(p.String())
				return true
			})
		}
		if len(o.denied) >= maxDenied {
			return now, false
		}
		if o.denied == nil {
			o.denied = make(map[permission]*outage)
		}
		of = &outage{}
		o.denied[asked] = of
	}
	of.fail(now)
	// An authorizer that changes its mind all the time does not get a line each time.
	if !of.logged {
		_, of.logged = o.limit.allow(asked.String(), now)
		return of.since, of.logged
	}
	return of.since, false
}

// notePermitted records that the recorder has a permission.
func (o *outages) notePermitted(b *Broadcaster, asked permission, now time.Time) {
	o.mu.Lock()
	of, known := o.denied[asked]
	o.mu.Unlock()
	if !known {
		return
	}
	if over, ok := o.end(of); ok {
		b.logger().Info("May write events again", "namespace", asked.namespace, "verb", asked.verb,
			"deniedFor", now.Sub(over.since), "deniedRequests", over.requests, "waiting", b.waitingSeries())
	}
}
