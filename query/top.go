package query

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/eventseries/eventseries/series"
)

// Dimension is what [Top] groups series by.
type Dimension string

const (
	PerController Dimension = "controller" // [Item.Controller]
	PerReason     Dimension = "reason"     // of the Event
	PerNamespace  Dimension = "namespace"  // of the Event
	PerObject     Dimension = "object"     // the regarding object
	PerAction     Dimension = "action"     // of the Event
	PerType       Dimension = "type"       // Normal or Warning
	PerNode       Dimension = "node"       // [Item.Node]
)

// Dimensions returns all dimensions.
func Dimensions() []Dimension {
	return []Dimension{PerController, PerReason, PerNamespace, PerObject, PerAction, PerType, PerNode}
}

// Group is the sum of the series with the same values.
type Group struct {
	// Values are those of the dimensions, in the order of the arguments of [Top]. An
	// object is "namespace/kind/name", or "kind/name" if it is cluster-scoped.
	Values []string
	// Events is the number of Events, and Ongoing that of ongoing series.
	Events, Ongoing int
	// Occurrences is the sum of the counts. There can have been more if LowerBound is true:
	// see [Item.LowerBound].
	Occurrences int64
	LowerBound  bool
	// InSeries is the part of Occurrences in Events with more than one.
	InSeries int64
	// First and Last are the times of the earliest and the latest occurrence. They leave out
	// series whose times are in the future or missing. They are zero if no series has a time.
	First, Last time.Time
	// timed is the part of Occurrences between First and Last.
	timed int64
}

// Rate returns the occurrences of the group per second: (Occurrences−1) / (Last−First), or 0
// if that is not defined. It leaves out series whose times are in the future.
func (g *Group) Rate() float64 { return rate(g.timed, g.First, g.Last) }

// LoopShare returns the share of the occurrences that belong to series of more than one,
// from 0 to 1.
func (g *Group) LoopShare() float64 {
	if g.Occurrences == 0 {
		return 0
	}
	return float64(g.InSeries) / float64(g.Occurrences)
}

// Add adds a series to the sums.
func (g *Group) Add(i *Item) {
	g.Events++
	g.Occurrences += int64(i.Count)
	if i.Count > 1 {
		g.InSeries += int64(i.Count)
	}
	if i.State == series.Ongoing {
		g.Ongoing++
	}
	g.LowerBound = g.LowerBound || i.LowerBound()
	if i.Last.IsZero() || i.ahead() {
		return
	}
	g.timed += int64(i.Count)
	if g.First.IsZero() || i.First.Before(g.First) {
		g.First = i.First
	}
	if i.Last.After(g.Last) {
		g.Last = i.Last
	}
}

// Top adds up items by the given dimensions, and returns the groups with the most
// occurrences first. Without dimensions, it returns one group. It keeps nothing of the
// items but the groups. If reading fails, it returns the error and the groups so far.
func Top(items iter.Seq2[*Item, error], by ...Dimension) ([]Group, error) {
	type values [7]string // one per dimension; more arguments repeat some
	by = by[:min(len(by), len(values{}))]
	groups := make(map[values]*Group)
	var failed error
	for item, err := range items {
		if err != nil {
			failed = err
			break
		}
		var v values
		for i, dimension := range by {
			v[i] = dimension.value(item)
		}
		group := groups[v]
		if group == nil {
			group = &Group{Values: slices.Clone(v[:len(by)])}
			groups[v] = group
		}
		group.Add(item)
	}
	sorted := make([]Group, 0, len(groups))
	for _, group := range groups {
		sorted = append(sorted, *group)
	}
	slices.SortFunc(sorted, func(a, b Group) int {
		return cmp.Or(-cmp.Compare(a.Occurrences, b.Occurrences), -cmp.Compare(a.Events, b.Events), slices.Compare(a.Values, b.Values))
	})
	return sorted, failed
}

// value returns the value of an item.
func (d Dimension) value(i *Item) string {
	switch d {
	case PerController:
		return i.Controller()
	case PerReason:
		return i.Key.Reason
	case PerNamespace:
		return i.Namespace
	case PerObject:
		object := i.Key.Regarding.Kind + "/" + i.Key.Regarding.Name
		if namespace := i.Key.Regarding.Namespace; namespace != "" {
			object = namespace + "/" + object
		}
		return object
	case PerAction:
		return i.Key.Action
	case PerType:
		return i.Key.Type
	case PerNode:
		return i.Node()
	default:
		return ""
	}
}
