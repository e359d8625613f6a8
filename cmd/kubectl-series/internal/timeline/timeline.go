package timeline

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/group"
	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/text"
	"github.com/eventseries/eventseries/query"
	"github.com/eventseries/eventseries/series"
)

// Options say what a timeline shows.
type Options struct {
	// Kind, Namespace, and Name are those of the object. Namespace is empty if the object
	// is cluster-scoped.
	Kind, Namespace, Name string
	// Items are the series.
	Items []*query.Item
	// Groups, if not empty, contain the items: the timeline shows one bar for each group.
	Groups []*group.Group
	// Now is the time to which the states of the items refer. All times are in its zone.
	Now time.Time
	// Dependents sums up the Warnings about the dependents of the object; empty if there are none.
	Dependents string
	// Paths tell how the objects are connected.
	Paths []string
	// Remarks tell what the timeline does not show.
	Remarks []string
	// Next are commands that show more.
	Next []Hop
}

// Hop is a command that shows what is connected with the object.
type Hop struct {
	// Command is the command, and Why says how its object is connected.
	Command, Why string
}

// Timeline is what all renderers draw. Create one with [New].
type Timeline struct {
	Kind, Namespace, Name string
	Now                   time.Time
	// From and To are the ends of the axis. To is Now, unless the object has been quiet
	// for longer than all of its series together.
	From, To time.Time
	// Break is where To is on the axis, from 0 to 1, if To is before Now: the axis ends
	// with Now nevertheless. Otherwise, it is 0.
	Break float64
	Ticks []Tick
	// Rows are the series in order of their first occurrences, and Groups are those of the
	// options, if there are any.
	Rows   []Row
	Groups []GroupRow
	// Ongoing and Warnings count rows, and Occurrences is the sum of their counts.
	Ongoing, Warnings int
	Occurrences       int64
	LowerBound        bool // there can have been more occurrences
	// Last is the time of the latest occurrence.
	Last           time.Time
	Dependents     string
	Paths, Remarks []string
	Next           []Hop
	isEmpty        bool // nothing is on the axis
}

// Tick is a labeled time on the axis.
type Tick struct {
	At    float64 // on the axis, from 0 to 1
	Label string
}

// Row is a series.
type Row struct {
	*query.Item
	bar
}

// bar is a series or a group on the axis.
type bar struct {
	state   series.State
	warning bool
	// Start and End are the ends of the bar, from 0 to 1. What follows Known, which is the latest
	// occurrence, is assumed: the series is ongoing.
	Start, Known, End float64
	// partly says that some series of a group have ended.
	partly bool
	// Drawn says that it is on the axis: it has a time that is not in the future.
	Drawn bool
}

// GroupRow is a group of series.
type GroupRow struct {
	*group.Group
	bar
	// Rows are the series of the group, in its order.
	Rows []Row
}

// minSpan is the shortest axis.
const minSpan = 10 * time.Second

// breakAt is where an axis breaks that does not reach the present.
const breakAt = 0.84

// New returns the timeline of some series.
func New(o Options) *Timeline {
	t := &Timeline{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, Now: o.Now, Dependents: o.Dependents, Paths: o.Paths, Remarks: o.Remarks, Next: o.Next}
	for _, item := range o.Items {
		t.Rows = append(t.Rows, Row{Item: item})
		t.Occurrences += int64(item.Count)
		t.LowerBound = t.LowerBound || item.LowerBound()
		if item.State == series.Ongoing {
			t.Ongoing++
		}
		if item.Event.Type == corev1.EventTypeWarning {
			t.Warnings++
		}
	}
	slices.SortStableFunc(t.Rows, func(a, b Row) int {
		return cmp.Or(a.First.Compare(b.First), a.Last.Compare(b.Last), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	t.scale()
	for i := range t.Rows {
		t.Rows[i] = t.row(t.Rows[i].Item)
	}
	for _, g := range o.Groups {
		r := GroupRow{Group: g, bar: t.bar(g.First, g.Last, g.State, g.Type)}
		r.partly = g.State == series.Ongoing && g.Ongoing < g.Events
		for _, item := range g.Items {
			r.Rows = append(r.Rows, t.row(item))
		}
		t.Groups = append(t.Groups, r)
	}
	t.Ticks = t.ticks(maxTicks)
	return t
}

func (t *Timeline) row(item *query.Item) Row {
	return Row{Item: item, bar: t.bar(item.First, item.Last, item.State, item.Event.Type)}
}

// bar returns where a bar is.
func (t *Timeline) bar(first, last time.Time, state series.State, eventType string) bar {
	last = latest(first, last)
	b := bar{state: state, warning: eventType == corev1.EventTypeWarning, Start: t.position(first), Known: t.position(last), Drawn: !first.IsZero() && !t.isAhead(first)}
	b.End = b.Known
	if state == series.Ongoing {
		b.End = t.position(latest(last, t.Now))
	}
	return b
}

// isAhead reports whether a time is further in the future than a clock can be ahead.
func (t *Timeline) isAhead(at time.Time) bool { return at.Sub(t.Now) > series.ClockSkew }

// in returns a time in the zone of the timeline.
func (t *Timeline) in(at time.Time) time.Time { return at.In(t.Now.Location()) }

// scale computes the ends of the axis.
func (t *Timeline) scale() {
	t.From, t.To, t.isEmpty = t.Now, time.Time{}, true
	for _, row := range t.Rows {
		if row.First.IsZero() || t.isAhead(row.First) { // the Event has no time, or a false one
			continue
		}
		t.isEmpty = false
		if row.First.Before(t.From) {
			t.From = row.First
		}
		if row.Last.After(t.To) && !t.isAhead(row.Last) {
			t.To = row.Last
		}
	}
	t.Last = t.To
	t.From = t.in(t.From)
	if t.To.IsZero() || t.Ongoing > 0 || t.Now.Sub(t.To) <= t.To.Sub(t.From) {
		t.To = latest(t.To, t.Now)
	}
	t.To = t.in(latest(t.To, t.From.Add(minSpan)))
	if t.To.Before(t.Now) {
		t.Break = breakAt
	}
}

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// position returns where a time is on the axis, from 0 to 1.
func (t *Timeline) position(at time.Time) float64 {
	linear := min(max(at.Sub(t.From).Seconds()/t.To.Sub(t.From).Seconds(), 0), 1)
	if t.Break == 0 {
		return linear
	}
	if at.After(t.To) {
		return 1
	}
	return linear * t.Break
}

func (r *Row) object(namespace string) string { return text.Object(r.Key.Regarding, namespace) }

func (r *Row) related(namespace string) string {
	if r.Key.Related.IsZero() {
		return ""
	}
	return text.Object(r.Key.Related, namespace)
}

func (r *Row) note() string { return text.Clean(cmp.Or(r.LastNote, r.Note)) }

// maxTicks is how many parts the axis has at most.
const maxTicks = 6

// steps are the distances between ticks.
var steps = []time.Duration{
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, day, 2 * day, 7 * day,
}

const day = 24 * time.Hour

// ticks returns n times on the axis or fewer, plus one if the axis begins with a tick. They
// are round values, and the format tells them apart.
func (t *Timeline) ticks(n int) []Tick {
	if t.isEmpty {
		return nil
	}
	span := t.To.Sub(t.From)
	step := steps[len(steps)-1]
	for _, s := range steps {
		if span <= time.Duration(n)*s {
			step = s
			break
		}
	}
	for span > time.Duration(n)*step {
		step *= 2
	}
	var ticks []Tick
	_, offset := t.From.Zone() // a round time is one of the zone
	ahead := time.Duration(offset) * time.Second
	for at := t.From.Add(ahead).Truncate(step).Add(-ahead); !at.After(t.To); at = at.Add(step) {
		if !at.Before(t.From) {
			ticks = append(ticks, Tick{At: t.position(at), Label: at.Format(t.format(step))})
		}
	}
	return ticks
}

// format returns the format of times that are step apart.
func (t *Timeline) format(step time.Duration) string {
	switch {
	case step >= 100*day:
		return "Jan 2006"
	case step >= day:
		return "Jan 2"
	case step < time.Minute:
		return t.clock()
	case t.To.Sub(t.From) >= day:
		return "Jan 2 15:04"
	default:
		return "15:04"
	}
}

// clock returns the format of the times of rows.
func (t *Timeline) clock() string {
	if t.From.YearDay() != t.To.YearDay() || t.To.Sub(t.From) >= day {
		return "Jan 2 15:04:05"
	}
	return "15:04:05"
}

// times formats the first and the last time of a bar. Those that are not on the axis have a date.
func (t *Timeline) times(first, last time.Time) (from, to string) {
	if first.IsZero() {
		return text.None, text.None
	}
	format := t.clock()
	if t.isAhead(last) {
		format = time.DateTime
	}
	if from = t.in(first).Format(format); last.IsZero() {
		return from, text.None
	}
	return from, t.in(last).Format(format)
}

// endsNow reports whether the present is at the end of the axis.
func (t *Timeline) endsNow() bool { return t.Break > 0 || t.To.Equal(t.Now) }

const dateTimeZone = "2006-01-02 15:04:05 MST"

// span returns the time that the axis covers, such as "2026-11-22 06:10:00 to 07:42:10 UTC (92m)", or
// the present if nothing is on it.
func (t *Timeline) span() string {
	if t.isEmpty {
		return t.Now.Format(dateTimeZone)
	}
	last := dateTimeZone
	if t.From.Format(time.DateOnly) == t.To.Format(time.DateOnly) {
		last = "15:04:05 MST"
	}
	return t.From.Format(time.DateTime) + " to " + t.To.Format(last) + " (" + text.Duration(t.To.Sub(t.From)) + ")"
}
