package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/eventseries/eventseries/series"
)

func TestNewRow(t *testing.T) {
	s := at(3, series.Ongoing, 40)
	s.Namespace, s.Note, s.LastNote = namespace, "first", "latest\nof many"
	l := &life{subject: crashing}
	l.advance(s)
	assert.Equal(t, row{
		subject:   crashing,
		namespace: namespace,
		state:     series.Ongoing,
		count:     40,
		emitted:   41,
		age:       time.Minute,
		note:      "latest of many",
	}, newRow(l, 41, s.First.Add(time.Minute)))

	s.LastNote = ""
	l.advance(s)
	assert.Equal(t, "first", newRow(l, 41, s.First).note)
}
