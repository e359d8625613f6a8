package events

import (
	"github.com/eventseries/eventseries/internal/tracker"
	"k8s.io/client-go/util/workqueue"
)

// lanes is the storage of the work queue. It orders what waits by urgency, first
// come, first served within one urgency. The work queue guards it, and sees to
// it that an entry is in it once.
type lanes struct {
	lane  [tracker.Urgencies]workqueue.Queue[*tracker.Entry]
	where map[*tracker.Entry]tracker.Urgency
}

var _ workqueue.Queue[*tracker.Entry] = (*lanes)(nil)

func newLanes() *lanes {
	l := &lanes{where: make(map[*tracker.Entry]tracker.Urgency)}
	for i := range l.lane {
		l.lane[i] = workqueue.DefaultQueue[*tracker.Entry]()
	}
	return l
}

// Push adds an entry.
func (l *lanes) Push(e *tracker.Entry) {
	u := e.Urgency()
	l.where[e] = u
	l.lane[u].Push(e)
}

// Touch is called when an entry that waits is added again. If it has become more
// urgent it goes to a faster lane; what it leaves behind is passed over later.
func (l *lanes) Touch(e *tracker.Entry) {
	if was, ok := l.where[e]; ok && e.Urgency() < was {
		l.Push(e)
	}
}

// Len returns the number of entries.
func (l *lanes) Len() int { return len(l.where) }

// Pop returns the first entry of the most urgent lane that has one. There must
// be one.
func (l *lanes) Pop() *tracker.Entry {
	for u := range l.lane {
		for l.lane[u].Len() > 0 {
			e := l.lane[u].Pop()
			if at, ok := l.where[e]; ok && at == tracker.Urgency(u) {
				delete(l.where, e)
				return e
			}
		}
	}
	return nil
}
