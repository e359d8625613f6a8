package tracker

import (
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/eventseries/eventseries/series"
)

// TallyKey is what occurrences are counted by. Each field can be [Other].
type TallyKey struct{ Controller, Type, Reason string }

// Tally is a row of [Tracker.Tallies].
type Tally struct {
	TallyKey
	Occurrences uint64 // that arrived, including dropped and filtered ones
	Ongoing     int    // series at the moment
}

// Other stands for all values without a row of their own.
const Other = "other"

// tallies count occurrences by controller, type, and reason. It can be used concurrently.
//
// A row never disappears, and its count never decreases: it is a counter in a database of
// time series, which keeps each row that it has seen. So rows are not given to the most
// frequent reasons of the moment. The first half of them goes to the first reasons: a
// program has some dozens. If it makes up more, each of the others has to earn its row
// by occurring often, compared with those that have none. What occurs before that stays in
// the row of the others.
type tallies struct {
	limit int // of rows, without those of others; zero: nothing is counted

	mu      sync.Mutex
	rows    map[TallyKey]uint64
	own     int // rows that are not of others
	others  int // rows of others that name a controller; at most limit
	limited bool

	// candidates are the most frequent reasons without a row, as the algorithm of Misra and
	// Gries finds them: at most limit, with at most earned occurrences. A new one that has
	// no room takes as many occurrences from all.
	candidates map[TallyKey]uint64
}

// earned is how often a candidate has to occur more than its share.
const earned = 16

func (x *tallies) init(limit int) {
	x.limit, x.rows, x.candidates = limit, make(map[TallyKey]uint64), make(map[TallyKey]uint64)
}

func tallyKeyOf(k *series.Key) TallyKey { return TallyKey{k.ReportingController, k.Type, k.Reason} }

// count counts n occurrences, and returns the row.
func (x *tallies) count(k TallyKey, n uint64) TallyKey {
	if x.limit == 0 {
		return k
	}
	if k.Type != corev1.EventTypeNormal && k.Type != corev1.EventTypeWarning {
		k.Type = Other
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, ok := x.rows[k]; !ok {
		if x.earns(k, n) {
			x.own++
		} else {
			x.limited = x.limited || k.Reason != Other
			k = x.other(k)
		}
	}
	x.rows[k] += n
	return k
}

// earns reports whether a reason that occurs n times more gets a row.
func (x *tallies) earns(k TallyKey, n uint64) bool {
	switch had, isCandidate := x.candidates[k]; {
	case k.Reason == Other, x.own == x.limit:
		return false
	case x.own < x.limit-x.limit/2, had+n >= earned:
		delete(x.candidates, k)
		return true
	case n == 0: // nothing has occurred since the previous call
	case isCandidate, len(x.candidates) < x.limit:
		x.candidates[k] = had + n
	default:
		for other, count := range x.candidates {
			if count <= n {
				delete(x.candidates, other)
			} else {
				x.candidates[other] = count - n
			}
		}
	}
	return false
}

// other returns the row of the others for a reason without one.
func (x *tallies) other(k TallyKey) TallyKey {
	k.Reason = Other
	if _, ok := x.rows[k]; !ok && k.Controller != Other {
		if x.others == x.limit {
			k.Controller = Other
		} else {
			x.others++
		}
	}
	return k
}

// Tally counts an occurrence of k that is not passed to Observe.
func (t *Tracker) Tally(k *series.Key) { t.tallies.count(tallyKeyOf(k), 1) }

// Tallies returns the occurrences and the Ongoing series by controller, type, and reason.
// Up to Options.Tallies combinations have rows of their own. limited reports whether others
// have none. It looks at all series, and locks the tracker for one shard after the other.
func (t *Tracker) Tallies() (rows []Tally, limited bool) {
	ongoing := make(map[TallyKey]int)
	t.inParts(func(e *Entry) {
		e.drain()
		if row := t.tally(e); e.class == ongoingNormal || e.class == ongoingWarning {
			ongoing[row]++
		}
	})
	x := &t.tallies
	x.mu.Lock()
	defer x.mu.Unlock()
	rows = make([]Tally, 0, len(x.rows))
	for k, n := range x.rows {
		rows = append(rows, Tally{k, n, ongoing[k]})
	}
	return rows, x.limited
}

// tally counts what has occurred with the words of e since the previous call.
func (t *table) tally(e *Entry) TallyKey {
	w := e.key.shared
	n := w.taken
	w.taken = 0
	return t.tallies.count(TallyKey{w.value.controller, w.value.eventType, w.value.reason}, n)
}
