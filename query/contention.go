package query

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/eventseries/eventseries/series"
)

// The legacy recorder has a spam filter: all events of a source about an object share a token
// bucket, which gets a token every 5 minutes. While several events recur, most occurrences find
// it empty, and one of the events can take all tokens for hours. So the silence of a series says
// nothing as long as other events about the object were written.

// bucket identifies a token bucket.
type bucket struct {
	controller, instance string
	object               series.Reference // without a field path
}

func bucketOf(i *Item) bucket {
	object := i.Key.Regarding
	object.FieldPath = ""
	return bucket{i.Controller(), i.Key.ReportingInstance, object}
}

// span is the time between the first and the last write of an Event.
type span struct{ first, last time.Time }

// spans are those of the Events of legacy recorders. Those of a bucket are in order of first.
type spans map[bucket][]span

// find returns where the span of an item is, or belongs.
func (s spans) find(i *Item) (place int, found bool) {
	return slices.BinarySearchFunc(s[bucketOf(i)], i.First, func(a span, first time.Time) int { return a.first.Compare(first) })
}

func (s spans) add(i *Item) {
	if i.Recorder != ToolsRecord {
		return
	}
	of := s[bucketOf(i)]
	place, found := s.find(i)
	if found {
		of[place].last = latest(of[place].last, i.Last)
		return
	}
	s[bucketOf(i)] = slices.Insert(of, place, span{i.First, latest(i.First, i.Last)})
}

func (s spans) remove(i *Item) {
	place, found := s.find(i)
	if !found || s[bucketOf(i)][place].last.After(i.Last) { // of another Event that began at the same time
		return
	}
	if of := slices.Delete(s[bucketOf(i)], place, place+1); len(of) > 0 {
		s[bucketOf(i)] = of
	} else {
		delete(s, bucketOf(i))
	}
}

// contend sets the state of a series that is Quiet on its own. Each write about the object can
// have taken the token that the series needed until then, so the series is Unknown until it has
// been quiet for its window since the last one. An event that began later took none.
func (s spans) contend(i *Item) {
	if i.State != Quiet {
		return
	}
	patience, until := i.StaleAt.Sub(i.Last), i.Last
	for _, other := range s[bucketOf(i)] {
		if other.first.After(until.Add(patience)) {
			break
		}
		until = latest(until, other.last)
	}
	if until.After(i.Last) {
		i.setContended(until)
	}
}

func (i *Item) setContended(at time.Time) {
	if i.Contended = at; !at.IsZero() && !i.At.After(i.quietAt()) {
		i.State = Unknown
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

// Settle sets the states of series of the legacy recorder that are Quiet on their own, but can have
// been kept from an update by others: they become Unknown. A [Reader] does this; it is for
// programs that call [FromEvent]. Pass all Events about an object together.
func Settle(items []*Item) {
	known := make(spans)
	for _, i := range items {
		known.add(i)
	}
	for _, i := range items {
		known.contend(i)
	}
}

// undecided reports whether other Events determine if q selects an item.
func (q *Query) undecided(item *Item) bool {
	if item.State != Quiet {
		return false
	}
	unknown := *item
	unknown.State = Unknown
	return q.Matches(item) || q.Matches(&unknown)
}

// complete reads the Events about the objects of undecided items that q does not select.
func (r *Reader) complete(ctx context.Context, q *Query, known spans, undecided []*Item) error {
	all := len(q.Reasons) != 1 && len(q.Types) != 1 && q.FieldSelector == "" && q.LabelSelector == "" && (q.Role == Regarding || !q.RelatedByLabel)
	if all || len(undecided) == 0 {
		return nil
	}
	wider := Query{Namespaces: q.Namespaces, Role: Regarding, At: q.At}
	objects := sets.New[Object]()
	for _, item := range undecided {
		ref := item.Key.Regarding
		objects.Insert(Object{Kind: ref.Kind, Name: ref.Name, Namespace: item.Namespace})
	}
	if len(objects) <= maxObjectRequests {
		wider.Namespaces, wider.Objects = nil, objects.UnsortedList()
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
