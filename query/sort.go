package query

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"

	"github.com/eventseries/eventseries/series"
)

// Order is an order of series. Items that are equal in it keep the order of the list.
type Order string

const (
	ByState      Order = "state"      // as [States]: ongoing first; the latest first
	ByLast       Order = "last"       // the latest occurrence first
	ByFirst      Order = "first"      // the earliest first occurrence first
	ByCount      Order = "count"      // the highest count first, then the latest
	ByRate       Order = "rate"       // the highest rate first, then the latest
	ByType       Order = "type"       // Warnings first, the latest first
	ByReason     Order = "reason"     // alphabetically, the latest first
	ByObject     Order = "object"     // by namespace, kind, and name of the regarding object, the latest first
	ByController Order = "controller" // alphabetically, the latest first
	ByName       Order = "name"       // by namespace and name of the Event
)

// Orders returns all orders.
func Orders() []Order {
	return []Order{ByState, ByLast, ByFirst, ByCount, ByRate, ByType, ByReason, ByObject, ByController, ByName}
}

// SortKey is what [Order.Key] keeps of an item.
type SortKey struct {
	text   string
	number float64
	time   int64 // in microseconds
}

// Key returns what the order compares, for [SortBy].
func (o Order) Key(i *Item) SortKey {
	key := SortKey{time: -i.Last.UnixMicro()}
	if i.ahead() {
		key.time = -time.Time{}.UnixMicro() // last, as if it had no time
	}
	switch o {
	case ByState:
		key.number = float64(slices.Index(States(), i.State))
	case ByFirst:
		key.time = i.First.UnixMicro()
	case ByCount:
		key.number = -float64(i.Count)
	case ByRate:
		key.number = -i.Rate()
	case ByType:
		key.text = i.Key.Type
		if key.text == corev1.EventTypeWarning {
			key.number = -1
		}
	case ByReason:
		key.text = i.Key.Reason
	case ByObject:
		key.text = strings.Join([]string{i.Key.Regarding.Namespace, i.Key.Regarding.Kind, i.Key.Regarding.Name}, "\x00")
	case ByController:
		key.text = i.Controller()
	case ByName:
		key.text, key.time = i.Namespace+"\x00"+i.Name, 0
	default: // ByLast
	}
	return key
}

// Compare compares two keys of the same order like [cmp.Compare].
func (k SortKey) Compare(other SortKey) int {
	return cmp.Or(cmp.Compare(k.number, other.number), cmp.Compare(k.text, other.text), cmp.Compare(k.time, other.time))
}

// Sort returns the items in an order. An order that is not in [Orders] is [ByLast]. If
// limit is positive, it returns the first limit items only. It reads all items before
// it yields the first. It keeps the Events encoded, which needs about 0.7 kB for each
// of them, or for each of 2×limit. If reading fails, it yields one error.
func Sort(items iter.Seq2[*Item, error], order Order, limit int) iter.Seq2[*Item, error] {
	return SortBy(items, order.Key, SortKey.Compare, limit)
}

// SortBy is [Sort] with a key of the caller: key returns what to keep of an item, and
// compare compares two keys like [cmp.Compare].
func SortBy[K any](items iter.Seq2[*Item, error], key func(*Item) K, compare func(a, b K) int, limit int) iter.Seq2[*Item, error] {
	return func(yield func(*Item, error) bool) {
		type entry struct {
			key  K
			n    int // position in items
			item packed
		}
		var entries []entry
		sort := func() {
			slices.SortFunc(entries, func(a, b entry) int { return cmp.Or(compare(a.key, b.key), cmp.Compare(a.n, b.n)) })
			if limit > 0 && len(entries) > limit {
				clear(entries[limit:])
				entries = entries[:limit]
			}
		}
		n := 0
		for item, err := range items {
			if err != nil {
				yield(nil, err)
				return
			}
			entries = append(entries, entry{key(item), n, pack(item)})
			n++
			if limit > 0 && len(entries) >= 2*max(limit, minSort) {
				sort()
			}
		}
		sort()
		for i := range entries {
			item := entries[i].item.unpack()
			entries[i] = entry{} // free the memory as soon as possible
			if !yield(item, nil) {
				return
			}
		}
	}
}

// minSort bounds how often [SortBy] sorts to drop what is beyond a small limit.
const minSort = 64

// packed is an item in about a third of its memory. The zero value is none.
type packed struct {
	event                []byte
	at, written, because time.Time // because is Followed or Contended
}

func pack(item *Item) packed {
	p := packed{item.encoded, item.At, item.written, latest(item.Followed, item.Contended)}
	if p.event != nil {
		return p
	}
	data, err := item.Event.Marshal()
	if err != nil { // only custom types can fail
		panic(fmt.Sprintf("query: encode event %s/%s: %v", item.Namespace, item.Name, err))
	}
	p.event = data
	return p
}

func (p packed) unpack() *Item {
	event := &eventsv1.Event{}
	if err := event.Unmarshal(p.event); err != nil {
		panic(fmt.Sprintf("query: decode an event: %v", err))
	}
	event.SetGroupVersionKind(eventKind)
	item := newItem(event, p.at, p.written)
	item.encoded = p.event
	switch {
	case p.because.IsZero():
	case item.State == series.Ongoing:
		item.setFollowed(p.because)
	default:
		item.setContended(p.because)
	}
	return item
}
