package tracker

import "github.com/eventseries/eventseries/series"

// DropReason says why occurrences were lost. The zero value is no reason.
type DropReason string

const (
	// DropTableFull: there was no room for a new series, and nothing that could
	// be forgotten for it.
	DropTableFull DropReason = "TableFull"
	// DropDisplaced: a Normal that had not been written yet gave way to a Warning.
	DropDisplaced DropReason = "Displaced"
	// DropClosingFull: too many ended series were waiting for their last write.
	DropClosingFull DropReason = "ClosingFull"
)

// Drop is a loss: occurrences that are on no server and never will be.
type Drop struct {
	// Reason says why.
	Reason DropReason
	// Key of the series.
	Key series.Key
	// Note of the occurrence that was lost, or of the first one if there are
	// several.
	Note string
	// Count is the number of occurrences lost.
	Count int
}

// Effects is what a change to the table means for those who keep queues beside
// it. The zero value means nothing.
type Effects struct {
	// Dirty entries have something to be written.
	Dirty []*Entry
	// Ended entries take no occurrences and have no deadlines any more, or have
	// been given up after that.
	Ended []*Entry
	// Dropped is what was lost.
	Dropped []Drop
}
