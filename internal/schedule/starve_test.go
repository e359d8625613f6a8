package schedule

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// The defaults of a recorder.
const (
	simBeat  = 30 * time.Minute // from a write to the next heartbeat
	simDue   = 45 * time.Minute // by when it is due
	simSlack = 5 * time.Minute  // of a Normal
	simFail  = 40 * time.Minute
)

// simRequest is the time between two requests. Results depend on the product with the
// capacity only.
const simRequest = 2 * time.Second

// load is a recorder with too much to do.
type load struct {
	capacity int
	ongoing  int     // series that need heartbeats for ever
	failing  int     // how many of these are in namespaces, one each, that fail from simFail on
	arrivals float64 // new events per request; every other one is a Warning

	s       *Schedule[*simSeries]
	now     time.Duration
	tracked int          // series that are in the table, up to capacity
	unsent  int          // those that are not ongoing
	normals []*simSeries // that a Warning can displace

	lateBeat, lateWarning, lateNormal time.Duration
}

type simSeries struct {
	slot             Slot[*simSeries]
	namespace        string // without one, no request fails
	warning, ongoing bool
	began, written   time.Duration // written is zero if it is new
}

func (e *simSeries) Slot() *Slot[*simSeries] { return &e.slot }
func (e *simSeries) Namespace() string       { return e.namespace }

func (l *load) ready(e *simSeries) {
	switch {
	case e.written > 0:
		l.s.Ready(e, e.written+simDue, l.now)
	case e.warning:
		l.s.Ready(e, l.now, l.now)
	default:
		l.s.Ready(e, l.now+simSlack, l.now)
	}
}

// arrive adds a new series, unless the table is full. A Warning displaces a Normal.
func (l *load) arrive(warning bool) {
	for l.tracked == l.capacity {
		if !warning || len(l.normals) == 0 {
			return
		}
		last := len(l.normals) - 1
		if e := l.normals[last]; e.slot.in != nil && e.written == 0 {
			l.s.Remove(e)
			l.tracked--
			l.unsent--
		}
		l.normals = l.normals[:last]
	}
	e := &simSeries{warning: warning, began: l.now, ongoing: l.ongoing > 0}
	switch {
	case !e.ongoing:
		l.unsent++
		if !warning {
			l.normals = append(l.normals, e)
		}
	case l.failing > 0:
		e.namespace = fmt.Sprint(l.failing)
		l.failing--
		fallthrough
	default:
		l.ongoing--
	}
	l.tracked++
	l.ready(e)
}

// request makes one request, if any series is ready.
func (l *load) request() {
	for e, ok := l.s.Due(l.now); ok; e, ok = l.s.Due(l.now) {
		l.ready(e)
	}
	e, ok := l.s.Next(l.now)
	if !ok {
		return
	}
	if e.namespace != "" && l.now > simFail {
		l.s.Done(e, Answer{Outcome: Troubled}, l.now)
		l.ready(e)
		return
	}
	l.s.Done(e, Answer{Outcome: Written}, l.now)
	switch late := l.now - e.began; {
	case e.written > 0:
		l.lateBeat = max(l.lateBeat, l.now-e.written)
	case e.warning:
		l.lateWarning = max(l.lateWarning, late)
	default:
		l.lateNormal = max(l.lateNormal, late)
	}
	e.written = l.now
	l.s.Wait(e, l.now+simBeat, l.now)
	if !e.ongoing {
		l.s.Remove(e)
		l.tracked--
		l.unsent--
	}
}

// run lets events arrive until the given time, and then sends what is left.
func (l *load) run(until time.Duration) {
	l.s = New[*simSeries](1, time.Hour, nil)
	due, warning := 0.0, false
	end := until + simSlack + time.Duration(4*l.capacity)*simRequest
	for l.now = simRequest; l.now < until || l.unsent > 0 && l.now <= end; l.now += simRequest {
		rate := l.arrivals
		if l.ongoing > 0 {
			rate = max(rate, 1) // they are there whatever else arrives
		}
		for due += rate; due >= 1 && l.now < until; due-- {
			warning = !warning
			l.arrive(warning)
		}
		l.request()
	}
}

// No class of requests starves, whatever the load: each is made soon after it is due, or
// after all that was due before.
func TestNothingStarves(t *testing.T) {
	for _, capacity := range []int{1, 10, 100, 1000, 10_000} {
		for _, arrivals := range []float64{0, 0.3, 1, 3, 100} {
			for _, part := range []struct{ ongoing, failing float64 }{{0.5, 0}, {0.9, 0.3}, {1, 1}} {
				n := part.ongoing * float64(capacity)
				l := &load{capacity: capacity, arrivals: arrivals, ongoing: int(n), failing: int(n * part.failing)}
				t.Run(fmt.Sprintf("capacity=%v/arrivals=%v/ongoing=%v/failing=%v", capacity, arrivals, l.ongoing, l.failing), l.check)
			}
		}
	}
}

func (l *load) check(t *testing.T) {
	t.Parallel()
	l.run(80 * time.Minute)
	sent := time.Duration(l.capacity+1) * simRequest
	assert.Zero(t, l.unsent, "all are sent in the end")
	assert.LessOrEqual(t, l.lateWarning, sent)
	assert.LessOrEqual(t, l.lateNormal, simSlack+sent)
	assert.LessOrEqual(t, l.lateBeat, simDue+sent)
}
