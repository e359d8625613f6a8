package query

import (
	"cmp"
	"context"
	"slices"
	"time"
	"unique"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/eventseries/eventseries/series"
)

// The Event of a recorder that writes no states says neither that a loop is over nor, if the recorder
// drops occurrences, that it goes on. Other Events about the object do.
//
// A controller that reports something new about an object has got further than the loop: a Pod
// with FailedScheduling is Scheduled. A retry is not new: its reasons occurred before.
//
// The legacy recorder has a spam filter: all events of a source and type about an object share a token
// bucket, which gets a token every 5 minutes. While several events recur, most occurrences find
// it empty, and one of the events can take all tokens for hours. So the silence of a series says
// nothing as long as other events about the object were written.

// subject is what the Events of a controller about an object have in common.
type subject struct {
	controller string
	object     series.Reference // without a field path
}

func subjectOf(i *Item) subject {
	object := i.Key.Regarding
	object.FieldPath = ""
	return subject{i.Controller(), object}
}

// span is the time between the first and the last write of an Event, in microseconds.
type span struct {
	first, last                  int64
	name, reason, path, instance string
	isLegacy                     bool
}

func spanOf(i *Item) span {
	one := func(s string) string { return unique.Make(s).Value() } // there are few
	return span{i.First.UnixMicro(), latest(i.First, i.Last).UnixMicro(), i.Name, one(i.Key.Reason), one(i.Key.Regarding.FieldPath), one(i.Key.ReportingInstance), i.Recorder == ToolsRecord}
}

// compare orders spans by first. Those of one Event are equal.
func (s span) compare(other span) int {
	return cmp.Or(cmp.Compare(s.first, other.first), cmp.Compare(s.name, other.name), cmp.Compare(s.reason, other.reason), cmp.Compare(s.path, other.path))
}

// spans are those of the Events without a state. Those about a subject are in order.
type spans map[subject][]span

// find returns where the span of an item is, or belongs.
func (s spans) find(i *Item) (place int, found bool) {
	return slices.BinarySearchFunc(s[subjectOf(i)], spanOf(i), span.compare)
}

// add adds the span of an item, or extends it. It returns whether the Event is new.
func (s spans) add(i *Item) bool {
	if i.Recorder == Eventseries {
		return false
	}
	of := s[subjectOf(i)]
	place, found := s.find(i)
	if found {
		of[place].last = max(of[place].last, i.Last.UnixMicro())
		return false
	}
	s[subjectOf(i)] = slices.Insert(of, place, spanOf(i))
	return true
}

func (s spans) remove(i *Item) {
	place, found := s.find(i)
	if !found {
		return
	}
	if of := slices.Delete(s[subjectOf(i)], place, place+1); len(of) > 0 {
		s[subjectOf(i)] = of
	} else {
		delete(s, subjectOf(i))
	}
}

// settle sets the state of a series that is Ongoing or Quiet on its own.
func (s spans) settle(i *Item) {
	switch {
	case i.State == series.Quiet:
		s.contend(i)
	case i.unconfirmed():
		s.follow(i)
	}
}

// unconfirmed reports whether a series is Ongoing although its Event says no state.
func (i *Item) unconfirmed() bool { return i.State == series.Ongoing && i.Stated == series.Singleton }

// follow sets the state of a series that is Ongoing on its own: it is Unknown if another event about
// the object, or about the same part of it, began since. Times of the legacy recorder are rounded
// down to seconds.
func (s spans) follow(i *Item) {
	own := spanOf(i)
	known := sets.New[string]()
	for _, other := range s[subjectOf(i)] {
		switch {
		case other.compare(own) == 0 || other.path != "" && own.path != "" && other.path != own.path:
		case other.first < i.Last.UnixMicro():
			known.Insert(other.reason)
		case other.reason == own.reason || !known.Has(other.reason):
			i.setFollowed(time.UnixMicro(other.first))
			return
		}
	}
}

// contend sets the state of a series that is Quiet on its own. Each write about the object can
// have taken the token that the series needed until then, so the series is Unknown until it has
// been quiet for its window since the last one. An event that began later took none.
func (s spans) contend(i *Item) {
	patience, until := i.StaleAt.Sub(i.Last).Microseconds(), i.Last.UnixMicro()
	for _, other := range s[subjectOf(i)] {
		if other.first > until+patience {
			break
		}
		if other.isLegacy && other.instance == i.Key.ReportingInstance {
			until = max(until, other.last)
		}
	}
	if until > i.Last.UnixMicro() {
		i.setContended(time.UnixMicro(until))
	}
}

// setFollowed makes a series Unknown that is Ongoing on its own.
func (i *Item) setFollowed(at time.Time) { i.Followed, i.State = at, series.Unknown }

func (i *Item) setContended(at time.Time) {
	if i.Contended = at; !i.At.After(i.quietAt()) {
		i.State = series.Unknown
	}
}

// quietAt returns when a series that is Unknown because of other events becomes Quiet.
func (i *Item) quietAt() time.Time { return i.StaleAt.Add(i.Contended.Sub(i.Last)) }

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// Settle sets the states of series whose Events say none, and that are Ongoing or Quiet on their own:
// they become Unknown if other Events about the objects say so. A [Reader] does this; it is for
// programs that call [FromEvent]. Pass all Events about an object together.
func Settle(items []*Item) {
	known := make(spans)
	for _, i := range items {
		known.add(i)
	}
	for _, i := range items {
		known.settle(i)
	}
}

// undecided reports whether other Events determine if q selects an item.
func (q *Query) undecided(item *Item) bool {
	if item.State != series.Quiet && !item.unconfirmed() {
		return false
	}
	unknown := *item
	unknown.State = series.Unknown
	return q.Matches(item) || q.Matches(&unknown)
}

// subject returns what selects the object of an Event.
func (i *Item) subject() Object {
	return Object{Kind: i.Key.Regarding.Kind, Name: i.Key.Regarding.Name, Namespace: i.Namespace}
}

// complete reads the Events about the objects of undecided items that q does not select.
func (r *Reader) complete(ctx context.Context, q *Query, known spans, objects sets.Set[Object]) error {
	all := len(q.Reasons) != 1 && len(q.Types) != 1 && q.FieldSelector == "" && q.LabelSelector == ""
	if all || len(objects) == 0 {
		return nil
	}
	wider := Query{Namespaces: q.Namespaces, Role: Regarding, At: q.At}
	switch {
	case len(objects) <= maxObjectRequests:
		wider.Namespaces, wider.Objects = nil, objects.UnsortedList()
	case len(q.Objects) > 0: // the user may list their namespaces
		wider.Namespaces = nil
		for o := range objects {
			wider.Namespaces = append(wider.Namespaces, o.Namespace)
		}
	}
	requests, err := wider.plan(true)
	if err != nil {
		return err
	}
	l := &lister{reader: r, query: &wider, progress: func(Progress) {}}
	return l.run(ctx, requests, func(item *Item) bool {
		known.add(item)
		return true
	})
}
