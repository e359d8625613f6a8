package events

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/lru"
	"k8s.io/utils/ptr"

	"github.com/eventseries/eventseries/internal/sanitize"
	"github.com/eventseries/eventseries/internal/schedule"
	"github.com/eventseries/eventseries/internal/tracker"
	"github.com/eventseries/eventseries/series"
)

// The API server has no watch cache for Events. For a list it reads all of them from etcd and
// decodes them, whatever the list selects: 20 microseconds of CPU for each. To count them takes a
// hundredth of that. So a process asks how many Events there are, and lists if they are few.
// It is no loss if it does not: readers take what is left for Unknown.
//
// defaultListLimit is the default in the scope SameInstance, and the length of four pages. In
// SameController, of which a large cluster has some hundreds of processes, it is the default of Capacity.
const defaultListLimit = 2_000

// lists find the series that earlier processes have left, to continue or to finish them. One
// goroutine makes one request at a time. Nothing waits for it: a series that occurs before it
// is listed finds its Event by its name.
type lists struct {
	b      *Broadcaster
	from   EventLister   // nil if nothing is listed
	wake   chan struct{} // has room for one; see run
	jitter func(time.Duration) time.Duration

	identities *lru.Cache // of the recorders, if the scope is SameInstance

	mu    sync.Mutex
	known *lru.Cache // controllers whose Events are listed, or will be
	due   []*list    // to make
}

// list is a list of the Events of a controller in a namespace, or in all.
type list struct {
	controller, namespace string

	at       time.Time // of the next request
	until    time.Time // it is not made again if it is denied: what it would find has expired
	counted  bool      // it may be made: there are not too many Events
	page     string    // the token of the next page
	listed   int       // Events in the pages so far
	failures int       // requests in a row that have failed
}

func newLists(b *Broadcaster, sink EventSink) *lists {
	l := &lists{
		b: b, wake: make(chan struct{}, 1), jitter: jitter,
		identities: lru.New(schedule.MaxRemembered), known: lru.New(schedule.MaxRemembered),
	}
	if lister, ok := sink.(EventLister); ok && b.opts.listLimit >= 0 {
		l.from = lister
	}
	return l
}

// knows adds the identity of a recorder, whose series a list restores. In the scope
// SameController, the list does not wait for an event: the usual reason for a restart is a
// fix, after which nothing occurs, and what the process before has left must be finished.
func (l *lists) knows(id sanitize.Identity) {
	if l.b.opts.Scope == SameController {
		l.add(id.Controller)
		return
	}
	l.identities.Add(id, nil)
}

// add has the Events of a controller listed, unless they are listed already. In the scope
// SameInstance, processes that start together list at different times.
func (l *lists) add(controller string) {
	if l.from == nil {
		return
	}
	now := l.b.clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.known.Get(controller); ok {
		return
	}
	l.known.Add(controller, nil)
	if l.b.opts.Scope == SameInstance && l.b.opts.listLimit < math.MaxInt {
		now = now.Add(rand.N(l.b.opts.EventTTL / 2))
	}
	namespaces := l.b.opts.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, namespace := range namespaces {
		l.due = append(l.due, &list{
			controller: controller, namespace: namespace, at: now, until: now.Add(l.b.opts.EventTTL), counted: l.b.opts.listLimit == math.MaxInt,
		})
	}
	signal(l.wake)
}

// next takes a list whose next request can be made. If there is no such list, next is nil, and
// at is when there is one; zero if there is none at all.
func (l *lists) next(now time.Time) (next *list, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.due) == 0 {
		return nil, time.Time{}
	}
	slices.SortStableFunc(l.due, func(a, b *list) int { return a.at.Compare(b.at) })
	if at = l.due[0].at; at.After(now) {
		return nil, at
	}
	next, l.due = l.due[0], l.due[1:]
	return next, at
}

// run makes lists until d is stopped or a shutdown begins, which needs its time for writes.
func (l *lists) run(d *dispatcher) {
	for d.ctx.Err() == nil && !d.hurry.Load() {
		next, at := l.next(l.b.clock.Now())
		if next == nil {
			_ = l.b.wait(d.ctx, at, l.wake)
			continue
		}
		if l.b.sleep(d.ctx, d.takeToken()) != nil || d.hurry.Load() {
			return
		}
		if l.make(d, next) {
			l.mu.Lock()
			l.due = append(l.due, next)
			l.mu.Unlock()
		}
		// Writes do not wait in line for a token: they get at least every other one.
		_ = l.b.sleep(d.ctx, time.Duration(2*float64(time.Second)/float64(d.limit)))
	}
}

// make makes the next request of a list: the question, or one for a page. It reports whether
// the list goes on.
func (l *lists) make(d *dispatcher, of *list) (more bool) {
	report, asked := &l.b.report, requests{of.namespace, "list"}
	answer, result, err := l.request(d, of)
	now := l.b.clock.Now()
	switch {
	case d.ctx.Err() != nil: // the stop probably cut off the request
		return false
	case err == nil:
		report.works(asked, "Events are listed again")
		of.at, of.failures = now, 0
		if of.counted {
			return l.readPage(of, answer)
		}
		return l.count(of, answer)
	case result.Outcome == schedule.Denied:
		l.b.logger().V(2).Info("Missing permission to list events. Series of earlier processes are found by name",
			"reportingController", of.controller, "namespace", of.namespace, "err", err)
	case result.Outcome.Handled() && !result.MayBeStored: // such as a page whose token has expired
		l.b.logger().Error(err, "Cannot list events", "reportingController", of.controller, "namespace", of.namespace)
		return false
	default:
		report.failed(asked, err, "Cannot list events, will try again", "reportingController", of.controller)
	}
	of.failures++
	delay := result.Outcome.Delay(uint8(min(of.failures, math.MaxUint8)))
	of.at = now.Add(max(l.jitter(delay), result.Pause))
	// The permission can come late, if a role is created after the Deployment.
	return result.Outcome != schedule.Denied || of.at.Before(of.until)
}

// request asks how many Events there are, whosever they are, or for a page.
func (l *lists) request(d *dispatcher, of *list) (answer *eventsv1.EventList, result tracker.Response, err error) {
	opts := metav1.ListOptions{Limit: 1} // with a selector, the server does not return how many Events remain
	if of.counted {
		opts = metav1.ListOptions{
			FieldSelector: fields.OneTermEqualSelector("reportingController", of.controller).String(),
			LabelSelector: series.LabelState + " notin (Finished,Unknown)", // singletons have no state
			Limit:         defaultListLimit / 4,
			Continue:      of.page,
		}
	}
	ctx, cancel := context.WithTimeout(d.ctx, requestTimeout)
	defer cancel()
	began := l.b.clock.Now()
	result, err = d.callSink(true, func() (err error) {
		answer, err = l.from.List(ctx, of.namespace, opts)
		if err == nil && answer == nil {
			err = errors.New("events: sink lists nothing")
		}
		return err
	})
	l.b.counters.requested("list", "list", result.Outcome, l.b.clock.Since(began))
	return answer, result, err
}

// count reports whether there are so few Events that they are listed.
func (l *lists) count(of *list, answer *eventsv1.EventList) bool {
	n := int64(len(answer.Items)) + ptr.Deref(answer.RemainingItemCount, 0)
	isKnown := answer.RemainingItemCount != nil || answer.Continue == "" // a fake clientset has no pages
	if of.counted = isKnown && n <= int64(l.b.opts.listLimit); !of.counted {
		l.b.logger().V(2).Info("Not listing events of earlier processes, because the cluster is large", "reportingController", of.controller,
			"namespace", of.namespace, "events", n, "limit", l.b.opts.listLimit)
	}
	return of.counted
}

// readPage restores the series of a page, and reports whether another page follows.
func (l *lists) readPage(of *list, page *eventsv1.EventList) (more bool) {
	for i := range page.Items {
		l.restore(&page.Items[i], of.controller)
	}
	l.b.poke()
	before := of.page
	of.page = page.Continue
	if of.listed += len(page.Items); len(page.Items) == 0 || of.page == before || of.listed > l.b.opts.listLimit {
		of.page = "" // a proxy can answer each page with the token of the next one, for ever
	}
	l.b.logger().V(2).Info("Listed events of earlier processes", "reportingController", of.controller, "namespace", of.namespace,
		"events", len(page.Items), "more", page.Continue != "")
	return of.page != ""
}

// restore adds a listed Event to the tracker if it belongs to a recorder of the controller.
func (l *lists) restore(event *eventsv1.Event, controller string) {
	b := l.b
	if event.ReportingController != controller {
		return // a fake clientset does not select
	}
	if b.opts.Scope == SameInstance {
		if _, own := l.identities.Get(sanitize.Identity{Controller: controller, Instance: event.ReportingInstance}); !own {
			return
		}
	}
	found, err := series.FromEvent(event)
	if err != nil {
		return // this project writes no Event like that
	}
	restored, drops := b.tracker.Restore(found, b.clock.Now())
	if restored {
		b.counters.restored.Add(1)
	}
	b.drop(b.logger(), nil, drops)
}
