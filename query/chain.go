package query

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/fields"

	"github.com/eventseries/eventseries/series"
)

// hashDigits is the length of the hash in the name of an Event of this project.
const hashDigits = 16

// ownKey returns the key of an Event of this project that first occurred at a time. k
// is the key with the reporting instance and without a note. The name contains a hash
// of the key, so it tells which of both the recorder's key has. ok is false if another
// recorder chose the name.
func ownKey(name, note string, first time.Time, k series.Key) (_ series.Key, ok bool) {
	if !mayHaveHash(name, first) {
		return k, false
	}
	instance := k.ReportingInstance
	for _, k.Note = range []string{"", note, series.CombinedPrefix} {
		for _, k.ReportingInstance = range []string{instance, ""} {
			if _, ok := k.Salt(name, first); ok {
				return k, true
			}
		}
	}
	k.Note, k.ReportingInstance = "", instance
	return k, false
}

// mayHaveHash reports whether name can be a base name or a unique name: whether it ends
// with a hash, or with a hash and a time. It saves most Events of other recorders the
// hashes: the names of client-go end with the time of the first occurrence.
func mayHaveHash(name string, first time.Time) bool {
	rest, suffix := cutLast(name)
	if _, hash := cutLast(rest); len(hash) == hashDigits {
		return true
	}
	nanos, err := strconv.ParseInt(suffix, 16, 64)
	isTime := err == nil && time.Unix(0, nanos).Sub(first).Abs() < time.Hour
	return len(suffix) == hashDigits && !isTime
}

func cutLast(name string) (before, after string) {
	dot := strings.LastIndexByte(name, '.')
	return name[:max(dot, 0)], name[dot+1:]
}

// SameKey reports whether two series have the same key, so that the later one is a
// successor of the earlier one.
//
// In Events of this project, the name tells whether the key contains the reporting
// instance and the note. In those of other recorders it contains the instance, and in those
// of the legacy recorder the note, too.
func SameKey(a, b *Item) bool { return keyOf(a) == keyOf(b) }

func keyOf(i *Item) series.Key {
	switch i.Recorder {
	case Eventseries:
		k, _ := ownKey(i.Name, i.Note, i.First, i.Key)
		return k
	case ToolsRecord, Other:
		k := i.Key
		k.Note = i.Note
		return k
	default:
		return i.Key
	}
}

// Chain is the series of one key that the server still has, in order of time.
type Chain struct {
	// Predecessors are the series that began earlier, the earliest first.
	Predecessors []*Item
	// Item is the series of which this is the chain.
	Item *Item
	// Successors are the series that began later, the earliest first.
	Successors []*Item
}

// Chain reads the predecessors and the successors of a series: all Events with the
// same key, whatever their names are. See [SameKey].
func (r *Reader) Chain(ctx context.Context, item *Item) (*Chain, error) {
	selector := selectorOf(fields.Set{
		"regarding.kind": item.Key.Regarding.Kind, "regarding.name": item.Key.Regarding.Name,
		"reason": item.Key.Reason, "type": item.Key.Type,
	})
	q := Query{
		Namespaces: []string{item.Namespace}, Controllers: []string{item.Controller()},
		FieldSelector: selector.String(), At: item.At,
	}
	chain := &Chain{Item: item}
	byFirst := func(a, b *Item) int { return cmp.Or(a.First.Compare(b.First), cmp.Compare(a.Name, b.Name)) }
	for other, err := range r.List(ctx, q) {
		switch {
		case err != nil:
			return nil, err
		case other.Name == item.Name || !SameKey(item, other):
		case byFirst(other, item) < 0:
			chain.Predecessors = append(chain.Predecessors, other)
		default:
			chain.Successors = append(chain.Successors, other)
		}
	}
	slices.SortFunc(chain.Predecessors, byFirst)
	slices.SortFunc(chain.Successors, byFirst)
	return chain, nil
}
