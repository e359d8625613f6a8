package tracker

import "time"

// Page is a page of the Events of a controller.
type Page struct {
	Controller string // the reportingController to select
	Namespace  string // empty: all
	Continue   string // of the previous page; empty: the first page
	Limit      int64  // of the number of Events
}

// Listed is what the response to a list says besides its outcome.
type Listed struct {
	Continue string // of this page; empty: it is the last one
	Streamed bool   // the sink has read the Events one by one, so pages can be longer
	Expired  bool   // the server does not know Page.Continue any more
}

// Pages of a list. A sink can return all Events of a page in memory. If it does not, the
// server takes half of the time for long pages, because etcd counts all Events for each
// page. The size makes no difference to API Priority and Fairness: with a selector, any
// list among 1,000 Events takes the most seats.
const (
	pageSize         = 500
	streamedPageSize = 5000
)

// deniedLists is how often a denied list is made again: 2, 6, 14, and 30 minutes later. A
// permission can come late, for example if a role is created after the Deployment. The
// list is worth it while earlier Events exist.
const deniedLists = 4

// relistAfter is the first delay after a denied list. Each following one is twice as long.
const relistAfter = 2 * time.Minute

// listing is a list of the Events of a controller, which an [Entry] represents in the
// schedule.
type listing struct {
	page   Page
	denied int // how often the server has denied it
}

// List adds a list of the Events of a controller. [Tracker.Next] returns its pages, and
// the caller passes the Events to [Tracker.Restore].
func (t *Tracker) List(controller, namespace string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := &Entry{rare: &rare{listing: &listing{page: Page{Controller: controller, Namespace: namespace, Limit: pageSize}}}}
	t.place(e, t.offset(now))
}

// listed decides what follows from the response to a list: the next page, another
// attempt, or nothing.
func (t *table) listed(e *Entry, r *Result, at time.Duration) {
	l := e.rare.listing
	wait := func(delay time.Duration) {
		e.rare.hold.until, e.rare.hold.why = at+delay, backoff
		t.place(e, at)
	}
	switch {
	case r.Outcome == Written && r.Listed.Continue == "":
		t.forget(e)
	case r.Outcome == Written:
		e.rare.hold = hold{}
		l.page.Continue = r.Listed.Continue
		if r.Listed.Streamed {
			l.page.Limit = streamedPageSize
		}
		t.place(e, at)
	case r.Outcome == PushedBack:
		t.place(e, at) // the gate of the server makes it wait
	case r.Outcome == Troubled, r.Listed.Expired && l.page.Continue != "":
		if r.Outcome != Troubled {
			// The list took too long. To restore an Event a second time does no harm.
			l.page.Continue = ""
		}
		l.page.Limit = pageSize // the server may be too slow for more
		e.rare.hold.failures++
		wait(t.backoff(e.rare.hold.failures))
	case r.Outcome == Denied && l.denied < deniedLists:
		l.page.Continue = ""
		l.denied++
		wait(relistAfter << (l.denied - 1))
	default:
		t.forget(e)
	}
}
