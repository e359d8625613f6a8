package bench

import (
	"fmt"
	"time"

	"github.com/eventseries/eventseries/events"
)

// Names of the recorders, as they are reported.
const (
	Ours       = "eventseries"
	ToolsNew   = "tools/events"
	ToolsOld   = "tools/record"
	Floor      = "floor"
	FloorClock = "floor, and the time read"
)

// recorder is a recorder under measurement, which is running. Methods are called by
// one goroutine, unless it is said.
type recorder interface {
	// eventf emits an event and waits for nothing. Those of ours and the floor may
	// be called concurrently.
	eventf(s *subject)
	// batch is how many occurrences it has room for until they have been taken in.
	// Zero: any number.
	batch() int
	// settle returns when so many occurrences have been taken in since it was made.
	settle(n int64)
	// writes says whether it writes anything. Not the floor.
	writes() bool
	// tracked is how many it still knows of so many series that have begun.
	tracked(begun int) int
	// close ends it.
	close()
}

// newRecorder starts a recorder of a name, with room for so many series.
func newRecorder(name string, series int) *driver {
	d := &driver{sink: newSink()}
	switch name {
	case Ours:
		d.recorder = newOurs(d.sink, events.Options{
			Capacity: series,
			// One note in ten seconds is formatted of each series. In so short a time
			// as is measured, and with many series, that would be each one's.
			NoteInterval: time.Hour,
		})
	case ToolsNew:
		d.recorder = newToolsEvents(d.sink)
	case ToolsOld:
		d.recorder = newToolsRecord(d.sink)
	case Floor, FloorClock:
		d.recorder = &floor{counts: make(map[floorKey]*floorEntry), clock: name == FloorClock}
	default:
		panic(fmt.Sprintf("bench: no recorder %q", name))
	}
	return d
}

// patience bounds how long anything is waited for that must happen.
const patience = 5 * time.Minute

// must is for what cannot fail in what is measured.
func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("bench: %v", err))
	}
}
