package fakeapi

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
)

// Audit watches a [Server] for what a recorder must never do, although kube-apiserver
// accepts it: decrease the count or the time of a series, or change anything of an Event
// but labels, annotations and series. It also adds up what the server knows.
//
// Events that [Server.Put] created belong to somebody else. They do not count.
//
// All methods are safe for concurrent use.
type Audit struct {
	mu        sync.Mutex
	now       func() time.Time
	delivered int64
	repeated  int64
	gone      map[types.NamespacedName]*departed // Events that have expired or were deleted
	missed    map[types.NamespacedName]*departed // those of gone that the recorder knows about
	foreign   map[types.UID]bool                 // Events of somebody else
	sharing   bool                               // see Share
	shared    map[types.UID]bool                 // Events that were written meanwhile
	doubtful  int64                              // see Doubtful
	problems  []string
}

// departed is what an Event said when it expired or was deleted. The recorder may create
// it again. If a later series gets the name, first differs.
type departed struct {
	first     int64 // eventTime in microseconds
	count     int32
	at        time.Time
	regarding types.NamespacedName
	repeated  bool // the recorder has dropped what it said
	shared    bool // no process needs to know all that others have counted
}

// NewAudit watches s from now on. It sets [Server.OnChange].
func NewAudit(s *Server) *Audit {
	a := &Audit{
		now:     s.now,
		gone:    make(map[types.NamespacedName]*departed),
		missed:  make(map[types.NamespacedName]*departed),
		foreign: make(map[types.UID]bool),
		shared:  make(map[types.UID]bool),
	}
	s.OnChange = a.changed
	return a
}

// Share says whether several processes write to the same Events from now on. If such an
// Event is gone, the one that creates it again, or drops it, may not know what others have
// counted. See [Audit.Doubtful].
func (a *Audit) Share(sharing bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sharing = sharing
}

// Problems returns what the recorder should not have done so far.
func (a *Audit) Problems() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.problems)
}

// Delivered returns how many occurrences the server has ever heard of, including those
// in Events that have expired. It counts twice what is written again after
// [Server.Restore].
func (a *Audit) Delivered() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return uint64(a.delivered)
}

// Repeated returns how many occurrences are both delivered and dropped: a recorder that
// learns that an Event is gone counts what it said as dropped, unless it creates the
// Event again. See [Audit.Missing] and [Audit.Dropped].
func (a *Audit) Repeated() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return uint64(a.repeated)
}

// Missing says that the recorder learns that its Event does not exist.
func (a *Audit) Missing(namespace, name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	event := types.NamespacedName{Namespace: namespace, Name: name}
	if d := a.gone[event]; d != nil {
		a.missed[event] = d
	}
}

// Creating says that the recorder tries to create an Event. If a new series of the object
// begins, no drop is about an Event of an earlier one from now on. If it is one that is gone,
// the recorder knows what that contained.
func (a *Audit) Creating(event *eventsv1.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if d := a.gone[nameOf(event)]; d != nil && d.first == event.EventTime.UnixMicro() {
		a.missed[nameOf(event)] = d
	}
	maps.DeleteFunc(a.missed, func(_ types.NamespacedName, d *departed) bool {
		return d.regarding == regardingOf(event) && d.first != event.EventTime.UnixMicro()
	})
}

// Dropped says that the recorder drops the occurrences of a series about an object.
func (a *Audit) Dropped(namespace, name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, d := range a.missed {
		if d.regarding == (types.NamespacedName{Namespace: namespace, Name: name}) && !d.repeated {
			d.repeated = true
			a.repeated += int64(d.count)
			if d.shared { // the process may not know what another one has counted last, and does not drop that
				a.doubtful += int64(d.count)
			}
		}
	}
}

// Doubtful returns how many occurrences Events that were shared have said before they
// were created again or dropped. At most so many are delivered, and do not count as
// delivered: the new Event, or the drop, contains less of the old Event than the audit
// assumes.
func (a *Audit) Doubtful() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return uint64(a.doubtful)
}

// Forget forgets the Events that have been gone for longer than age. If the recorder
// creates one of them again, what it says counts twice.
func (a *Audit) Forget(age time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.now().Add(-age)
	old := func(_ types.NamespacedName, d *departed) bool { return d.at.Before(before) }
	maps.DeleteFunc(a.gone, old)
	maps.DeleteFunc(a.missed, old)
}

// Gone returns how many Events that have expired or were deleted a remembers.
func (a *Audit) Gone() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.gone) + len(a.missed)
}

// Check records a problem unless ok. Tests call it for rules of their own.
func (a *Audit) Check(ok bool, format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.check(ok, format, args...)
}

// check is Check. It requires a.mu.
func (a *Audit) check(ok bool, format string, args ...any) {
	if !ok {
		a.problems = append(a.problems, fmt.Sprintf(format, args...))
	}
}

// changed is the OnChange of the server.
func (a *Audit) changed(verb string, before, after *eventsv1.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if verb == "restore" {
		return
	}
	if after == nil {
		a.left(before)
		return
	}
	request := verb != "put"
	if before == nil && !request {
		a.foreign[after.UID] = true
	}
	name := nameOf(after)
	if before != nil && request {
		same := before.DeepCopy()
		same.ResourceVersion, same.Labels, same.Annotations, same.Series = after.ResourceVersion, after.Labels, after.Annotations, after.Series
		a.check(equality.Semantic.DeepEqual(same, after), "%s turns %v into %v", verb, before, after)
		a.check(!lastTime(after).Before(lastTime(before)), "the time of %v goes back from %v to %v", name, lastTime(before), lastTime(after))
	}
	if a.foreign[after.UID] {
		return
	}
	if a.sharing {
		a.shared[after.UID] = true
	}
	var known int32
	count := countOf(after)
	if before != nil {
		known = countOf(before)
	} else {
		known = a.returned(after)
	}
	a.check(!request || count >= known, "the count of %v goes back from %d to %d", name, known, count)
	a.delivered += int64(count - known)
}

// left says that an Event has expired or was deleted. It requires a.mu.
func (a *Audit) left(event *eventsv1.Event) {
	if a.foreign[event.UID] {
		delete(a.foreign, event.UID)
		return
	}
	shared := a.shared[event.UID]
	delete(a.shared, event.UID)
	a.gone[nameOf(event)] = &departed{
		shared:    shared,
		first:     event.EventTime.UnixMicro(),
		count:     countOf(event),
		at:        a.now(),
		regarding: regardingOf(event),
	}
}

// returned says that an Event is created, and returns what it said before. It requires
// a.mu.
func (a *Audit) returned(event *eventsv1.Event) (known int32) {
	name := nameOf(event)
	if d := a.gone[name]; d != nil && d.first == event.EventTime.UnixMicro() {
		known = d.count
		if d.shared {
			known = min(known, countOf(event))
			if !d.repeated { // otherwise Dropped has added it
				a.doubtful += int64(d.count)
			}
			a.shared[event.UID] = true
		}
		if d.repeated {
			a.repeated -= int64(d.count)
		}
	}
	delete(a.gone, name)
	delete(a.missed, name)
	return known
}

func regardingOf(event *eventsv1.Event) types.NamespacedName {
	return types.NamespacedName{Namespace: event.Regarding.Namespace, Name: event.Regarding.Name}
}

func countOf(event *eventsv1.Event) int32 {
	if event.Series == nil {
		return 1
	}
	return event.Series.Count
}

// lastTime returns the time of the last occurrence.
func lastTime(event *eventsv1.Event) time.Time {
	if event.Series == nil {
		return event.EventTime.Time
	}
	return event.Series.LastObservedTime.Time
}
