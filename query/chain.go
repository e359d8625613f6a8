package query

import "context"

// SameKey reports whether two series have the same key, so that the later one is a
// successor of the earlier one.
//
// In Events of this project, the name tells whether the key contains the reporting
// instance and the note. In those of the legacy recorder it contains both.
func SameKey(a, b *Item) bool { return false }

// Chain is the series of one key that the server still has, in order of time.
type Chain struct {
	// Predecessors are the series that began earlier, the earliest first.
	Predecessors []*Item
	// Item is the series of which this is the chain.
	Item *Item
	// Successors are the series that began later, the earliest first.
	Successors []*Item
}

// Chain reads the predecessors and the successors of a series.
func (r *Reader) Chain(ctx context.Context, item *Item) (*Chain, error) {
	return &Chain{Item: item}, nil
}
