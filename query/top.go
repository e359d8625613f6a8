package query

import (
	"iter"
	"time"
)

// Dimension is what [Top] groups series by.
type Dimension string

const (
	PerController Dimension = "controller" // [Item.Controller]
	PerReason     Dimension = "reason"
	PerNamespace  Dimension = "namespace" // of the Event
	PerObject     Dimension = "object"    // the regarding object
	PerAction     Dimension = "action"
	PerType       Dimension = "type"
)

// Dimensions returns all dimensions.
func Dimensions() []Dimension {
	return []Dimension{PerController, PerReason, PerNamespace, PerObject, PerAction, PerType}
}

// Group is the sum of the series with the same values.
type Group struct {
	// Values are those of the dimensions, in the order of the arguments of [Top]. An
	// object is "namespace/kind/name", or "kind/name" if it is cluster-scoped.
	Values []string
	// Events is the number of Events, and Ongoing that of ongoing series.
	Events, Ongoing int
	// Occurrences is the sum of the counts.
	Occurrences int64
	// InSeries is the part of Occurrences in Events with more than one.
	InSeries int64
	// First and Last are the times of the earliest and the latest occurrence.
	First, Last time.Time
	// OngoingRate is the sum of the rates of the ongoing series, per second.
	OngoingRate float64
}

// Rate returns the occurrences of the group per second: (Occurrences−1) / (Last−First), or 0 if that is
// not defined.
func (g *Group) Rate() float64 { return 0 }

// LoopShare returns the share of the occurrences that belong to series of more than one,
// from 0 to 1.
func (g *Group) LoopShare() float64 { return 0 }

// Top adds up items by the given dimensions, and returns the groups with the most
// occurrences first. It keeps nothing of the items but the groups. If reading fails, it
// returns the error and the groups so far.
func Top(items iter.Seq2[*Item, error], by ...Dimension) ([]Group, error) {
	return nil, nil
}
