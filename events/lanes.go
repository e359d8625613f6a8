package events

import (
	"k8s.io/client-go/util/workqueue"

	"github.com/eventseries/eventseries/series"
)

// lanes is the storage of the work queue. It orders what waits by urgency, first
// come, first served within one urgency. The work queue guards it, and sees to
// it that an entry is in it once.
type lanes struct {
	lane  [series.Urgencies]workqueue.Queue[*series.Entry]
	where map[*series.Entry]series.Urgency
}

var _ workqueue.Queue[*series.Entry] = (*lanes)(nil)

func newLanes() *lanes {
	l := &lanes{where: make(map[*series.Entry]series.Urgency)}
	for i := range l.lane {
		l.lane[i] = workqueue.DefaultQueue[*series.Entry]()
	}
	return l
}

// Push adds an entry.
func (l *lanes) Push(e *series.Entry) {
	u := e.Urgency()
	l.where[e] = u
	l.lane[u].Push(e)
}

// Touch is called when an entry that waits is added again. If it has become more
// urgent it goes to a faster lane; what it leaves behind is passed over later.
func (l *lanes) Touch(e *series.Entry) {
	if was, ok := l.where[e]; ok && e.Urgency() < was {
		l.Push(e)
	}
}

// Len returns the number of entries.
func (l *lanes) Len() int { return len(l.where) }

// Pop returns the first entry of the most urgent lane that has one. There must
// be one.
func (l *lanes) Pop() *series.Entry {
	for u := range l.lane {
		for l.lane[u].Len() > 0 {
			e := l.lane[u].Pop()
			if at, ok := l.where[e]; ok && at == series.Urgency(u) {
				delete(l.where, e)
				return e
			}
		}
	}
	return nil
}
