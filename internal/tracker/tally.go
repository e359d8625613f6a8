package tracker

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/eventseries/eventseries/series"
)

// TallyKey is what occurrences are counted by. Each field can be [Other].
type TallyKey struct{ Controller, Type, Reason string }

// Tally is a row of [Tracker.Tallies].
type Tally struct {
	TallyKey
	Occurrences uint64 // that arrived, including dropped ones
	Ongoing     int    // series at the moment
}

// Other stands for all values without a row of their own.
const Other = "other"

// maxTallies is the number of combinations with rows of their own. A controller has some dozens.
const maxTallies = 200

// tallies count occurrences by controller, type, and reason. The first combinations get rows; later
// ones count in a row of all others of their type. A row never disappears, and its count never
// decreases: it is a counter in a database of time series.
type tallies struct {
	limit int // of rows, without those of others
	own   int // rows that are not of others
	rows  map[TallyKey]*Tally
}

// row returns the row of a key.
func (x *tallies) row(of *series.Key) *Tally {
	k := TallyKey{of.ReportingController, of.Type, of.Reason}
	if k.Type != corev1.EventTypeNormal && k.Type != corev1.EventTypeWarning {
		k.Type = Other
	}
	r := x.rows[k]
	switch {
	case r != nil:
		return r
	case x.own < x.limit:
		x.own++
	default:
		k = TallyKey{Other, k.Type, Other}
		if r = x.rows[k]; r != nil {
			return r
		}
	}
	// Copies, because the strings can be parts of longer ones.
	r = &Tally{TallyKey: TallyKey{strings.Clone(k.Controller), strings.Clone(k.Type), strings.Clone(k.Reason)}}
	x.rows[r.TallyKey] = r
	return r
}
