package main

import (
	"time"

	"github.com/eventseries/eventseries/series"
)

// snapshot is all that is to be shown at one time.
type snapshot struct {
	elapsed time.Duration
	phase   string
	rows    []row
	emitted int   // occurrences
	calls   calls // by which the recorder has told the server of them
}

// row is what is to be shown of one Event: all but emitted as the server has it.
type row struct {
	subject   subject
	namespace string // of the Event
	state     series.State
	count     int
	emitted   int
	age       time.Duration
	note      string
}

// newRow returns the row of an Event which was emitted so many times.
func newRow(l *life, emitted int, now time.Time) row {
	note := l.latest.Note
	if l.latest.LastNote != "" {
		note = l.latest.LastNote
	}
	return row{
		subject:   l.subject,
		namespace: l.latest.Namespace,
		state:     l.latest.State,
		count:     int(l.latest.Count),
		emitted:   emitted,
		age:       now.Sub(l.latest.First),
		note:      oneLine(note),
	}
}
