package tracker

import (
	"time"

	"github.com/eventseries/eventseries/heartbeat"
	"github.com/eventseries/eventseries/series"
)

// Page is a page of the Events of a controller, or a question about the size of the cluster.
type Page struct {
	Controller string // the reportingController to select
	Namespace  string // empty: all
	Most       int64  // if positive, the question; see Page.IsTooLarge
	Latest     uint64 // if positive, the latest resourceVersion of a cluster that is not too large
	Continue   string // of the previous page; empty: the first page
	Limit      int64  // of the number of Events
}

// Listed is what the response to a list says besides its outcome.
type Listed struct {
	Events   int64  // whosever they are, if that was the question; negative: the server does not say
	Version  uint64 // the resourceVersion of the list; zero: unknown
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

// The API server has no watch cache for Events. For a list it reads all of them from etcd
// and decodes them, whatever the list selects: 20 microseconds of CPU for each. To count
// them takes a hundredth of that, which is 50 to 90 milliseconds for 150,000. Neither is for
// all processes of a large cluster. So a process
//
//   - asks for one Event in a small part of them, those of Options.ClusterNamespace, at
//     least a minute after its own first write. That takes 1 to 3 milliseconds. The
//     resourceVersions of both responses tell how many objects the cluster writes. One with
//     400 nodes writes 40 per second to renew its Leases.
//   - then counts, unless the cluster writes more,
//   - and then lists, unless there are more than Options.ListLimit.
//
// It is no loss if it does not: readers take what is left for Unknown.
//
// In the scope [SameController] there is one process at a time for each controller, of which
// a large cluster has some hundreds. So it counts at once, and lists more.
const (
	sampleTime        = time.Minute
	mostWrites uint64 = 40 // per second

	listLimitOfInstances   = 2_000
	listLimitOfControllers = 50_000
)

// listSpread is until when the first question is asked. Nothing waits for a list, so
// processes that start together ask at different times.
const listSpread = 9 * time.Minute

// IsTooLarge reports whether the answer to the question says that a list would cost the
// server too much.
func (p *Page) IsTooLarge(l Listed) bool {
	return l.Events < 0 || l.Events > p.Most || p.Latest > 0 && l.Version > p.Latest
}

// deniedLists is how often a denied list is made again: 2, 6, 14, and 30 minutes later. A
// permission can come late, for example if a role is created after the Deployment. The
// list is worth it while earlier Events exist.
const deniedLists = 4

// relistAfter is the first delay after a denied list. Each following one is twice as long.
const relistAfter = 2 * time.Minute

// listing is a list of the Events of a controller, which an [Entry] represents in the
// schedule.
type listing struct {
	page    Page
	samples int    // how often it still needs to know a resourceVersion of the cluster
	first   sample // the first one
	denied  int    // how often the server has denied it
}

// sample is a resourceVersion of the cluster at a time. It counts all writes.
type sample struct {
	version uint64 // zero: not known
	at      time.Duration
	ours    uint64 // how many writes of this process it counts
}

// List adds a list of the Events of a controller. [Tracker.Next] returns the questions about
// the size of the cluster, and, if it is not too large, the pages of the list. The caller
// passes their Events to [Tracker.Restore]. The questions come in the next ten minutes, or
// in less if Events expire soon. If Options.ListLimit is no limit, the list comes at once.
func (t *Tracker) List(controller, namespace string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.offset(now)
	l := &listing{page: Page{Controller: controller, Namespace: namespace, Limit: pageSize}}
	e := &Entry{rare: &rare{listing: l}}
	if limit := t.opts.ListLimit; limit > 0 {
		l.page.Most, l.page.Limit = int64(limit), 1
		if t.opts.Scope == SameInstance && namespace == "" {
			l.samples, l.page.Namespace = 2, t.opts.ClusterNamespace
		}
		hash := nameHash(t.seed, &series.Key{ReportingController: controller, Regarding: series.Reference{Namespace: namespace}})
		spread := min(listSpread, t.opts.EventTTL/6)
		e.rare.hold.extend(at+time.Duration(fraction(hash)*float64(spread)), turn)
	}
	t.place(e, at)
}

// ask returns the page to list, or the question to ask, after so many writes of this
// process. A process that writes a lot when it starts does not make the cluster large.
func (l *listing) ask(at time.Duration, ours uint64) *Page {
	page := l.page
	if l.samples == 1 && l.first.version > 0 {
		page.Latest = l.first.version + ours - l.first.ours + mostWrites*uint64((at-l.first.at)/time.Second)
	}
	return &page
}

// startList is start for a list. If a write has told the first of two samples, the second
// one comes a minute later at the earliest.
func (t *table) startList(e *Entry, pass heartbeat.Pass, at time.Duration) (w *Write, ok bool) {
	l := e.rare.listing
	if t.hurried {
		t.sched.Done(e, pass, heartbeat.None, 0, at)
		t.forget(e) // a shutdown needs its time for writes
		return nil, false
	}
	if l.samples == 2 && t.written.version > 0 {
		l.first, l.samples = t.written, 1
		e.rare.hold.extend(t.written.at+sampleTime, turn)
	}
	if _, isHeld := e.hold().left(at); isHeld {
		t.sched.Done(e, pass, heartbeat.None, 0, at)
		t.place(e, at)
		return nil, false
	}
	return &Write{Kind: List, Page: l.ask(at, t.writes), entry: e, pass: pass, at: at}, true
}

// sized decides what follows from the answer to a question: another one, the list, or
// nothing if it is done.
func (t *table) sized(e *Entry, w *Write, r *Listed, at time.Duration) (done bool) {
	l := e.rare.listing
	switch {
	case w.Page.IsTooLarge(*r):
		return true
	case l.samples == 2:
		l.first = sample{r.Version, at, t.writes}
		e.rare.hold.extend(at+sampleTime, turn)
	case l.samples == 1:
		l.page.Namespace = ""
	default:
		l.page.Most, l.page.Limit = 0, pageSize
	}
	l.samples = max(l.samples-1, 0)
	return false
}

// listed decides what follows from the response to a list: the next page, another
// attempt, or nothing.
func (t *table) listed(e *Entry, w *Write, r *Result, at time.Duration) {
	x, done := e.rare, false
	l := x.listing
	switch {
	case r.Outcome == Written && l.page.Most > 0:
		x.hold = hold{}
		done = t.sized(e, w, &r.Listed, at)
	case r.Outcome == Written:
		x.hold = hold{}
		l.page.Continue, done = r.Listed.Continue, r.Listed.Continue == ""
		if r.Listed.Streamed {
			l.page.Limit = streamedPageSize
		}
	case r.Outcome == PushedBack:
		// The gate of the server makes it wait.
	case r.Outcome == Troubled, r.Listed.Expired && l.page.Continue != "":
		if r.Outcome != Troubled {
			// The list took too long. To restore an Event a second time does no harm.
			l.page.Continue = ""
		}
		l.page.Limit = min(l.page.Limit, pageSize) // the server may be too slow for more
		x.hold.failures++
		x.hold.extend(at+t.backoff(x.hold.failures), backoff)
	case r.Outcome == Denied && l.denied < deniedLists:
		l.page.Continue = ""
		l.denied++
		x.hold.extend(at+relistAfter<<(l.denied-1), backoff)
	default:
		done = true
	}
	if done {
		t.forget(e)
		return
	}
	t.place(e, at)
}
