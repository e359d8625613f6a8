package tracker

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
)

// A note that is formatted anew each time and stays the same is held once.
func TestNoteIsHeldOnce(t *testing.T) {
	table := NewTable(Options{}, start)
	note := func() Occurrence { return Occurrence{Note: strings.Clone("back-off restarting")} }
	e := table.Observe(testKey("a"), note(), start).Dirty[0]
	table.Observe(testKey("a"), note(), start)
	assert.Equal(t, "back-off restarting", e.lastNote)
	assert.Same(t, unsafe.StringData(e.note), unsafe.StringData(e.lastNote))
	table.Describe(e, Occurrence{Note: "another"}, start)
	table.Describe(e, note(), start)
	assert.Same(t, unsafe.StringData(e.note), unsafe.StringData(e.lastNote))
}
