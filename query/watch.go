package query

import (
	"context"
	"iter"
)

// ChangeType says what happened to a series.
type ChangeType string

const (
	// Added: the series exists, or matches the query for the first time.
	Added ChangeType = "Added"
	// Modified: the Event changed and still matches.
	Modified ChangeType = "Modified"
	// Left: the Event changed and does not match any longer, for example because the
	// series finished and the query selects ongoing ones.
	Left ChangeType = "Left"
	// Deleted: the Event was deleted or expired.
	Deleted ChangeType = "Deleted"
	// Synced: the changes before this one were the Events that existed when the watch
	// began. It has no Item, and occurs once.
	Synced ChangeType = "Synced"
)

// Change is a change of a series.
type Change struct {
	Type ChangeType
	// Item is the series after the change, or the last known one if Deleted. It is nil
	// for Synced.
	Item *Item
}

// Watch yields the series that q selects as Added, then one Synced, and then each
// change until ctx ends or the caller stops. It yields no version of an Event twice and
// misses no Event, also if the connection breaks, the server restarts, or the server has
// forgotten the version from which to continue (410 Gone): Watch then lists again and
// yields the differences. Versions of an Event between two lists can be missing.
//
// Watch yields one error and stops if the first list fails, or if the server denies the
// watch. If ctx ends, it stops without an error.
//
// The state of a series is that at the time of the change. That a series becomes stale is no
// change: see [Item.StaleAt].
func (r *Reader) Watch(ctx context.Context, q Query) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {}
}
