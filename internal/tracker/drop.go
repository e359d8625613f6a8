package tracker

import "github.com/eventseries/eventseries/series"

// DropReason says why occurrences were lost. The zero value is no reason.
type DropReason string

// The reasons for which a tracker drops occurrences by itself, and those of refusals that it
// tells from each other. Package events documents them.
const (
	DropTableFull   DropReason = "TableFull"
	DropDenied      DropReason = "Denied"
	DropUnavailable DropReason = "Unavailable"

	DropNamespaceNotFound    DropReason = "NamespaceNotFound"
	DropNamespaceTerminating DropReason = "NamespaceTerminating"
	// DropNameTaken: Events of strangers have all names of the series.
	DropNameTaken DropReason = "NameTaken"
	// DropFiltered: Options.Accepts does not accept the key. That is no loss.
	DropFiltered DropReason = "Filtered"
)

// Drop is a loss: occurrences that are on no server and never will be.
type Drop struct {
	Reason DropReason // why
	Key    series.Key // of the series
	Note   string     // of the lost occurrence, or of the first one if there are several
	Count  int        // number of lost occurrences
}
