package fakeapi

import (
	"fmt"
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
	mu       sync.Mutex
	counts   map[birth]int32    // the latest count of each series
	foreign  map[types.UID]bool // Events of somebody else
	problems []string
}

// birth identifies a series. Its Event may expire and be created again, and a later
// series may get the name.
type birth struct {
	name  types.NamespacedName
	first int64 // eventTime in microseconds
}

// NewAudit watches s from now on. It sets [Server.OnChange].
func NewAudit(s *Server) *Audit {
	a := &Audit{counts: make(map[birth]int32), foreign: make(map[types.UID]bool)}
	s.OnChange = a.changed
	return a
}

// Problems returns what the recorder should not have done so far.
func (a *Audit) Problems() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.problems)
}

// Delivered returns how many occurrences the server has ever heard of, including those
// in Events that have expired.
func (a *Audit) Delivered() (n uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, count := range a.counts {
		n += uint64(count)
	}
	return n
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
	if after == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
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
	born, count := birth{name, after.EventTime.UnixMicro()}, int32(1)
	if after.Series != nil {
		count = after.Series.Count
	}
	a.check(!request || count >= a.counts[born], "the count of %v goes back from %d to %d", name, a.counts[born], count)
	a.counts[born] = count
}

// lastTime returns the time of the last occurrence.
func lastTime(event *eventsv1.Event) time.Time {
	if event.Series == nil {
		return event.EventTime.Time
	}
	return event.Series.LastObservedTime.Time
}
