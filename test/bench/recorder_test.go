package bench

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// What is measured of the peers is all of their work only if they lose nothing.
func TestNothingIsLostOnTheWay(t *testing.T) {
	const n = 5*queued + 17
	for _, name := range []string{Ours, ToolsNew, ToolsOld, Floor, FloorClock} {
		t.Run(name, func(t *testing.T) {
			d := newRecorder(name, 1)
			defer d.close()
			s := newSubject("typed", false, 1)
			d.begin(1, func(int) *subject { return &s })
			d.emitAbout(n, &s)
			var taken int64
			switch r := d.recorder.(type) {
			case *ours:
				taken = int64(r.Stats().Occurrences)
			case *toolsEvents:
				taken = r.counted()
			case *toolsRecord:
				taken = r.taken.Load()
			case *floor:
				for _, e := range r.counts {
					taken += int64(e.count)
				}
			}
			assert.EqualValues(t, n+2, taken)
			assert.Equal(t, 1, d.tracked(1))
		})
	}
}

func TestSeriesHaveBegunWhenTheyAreMeasured(t *testing.T) {
	const n = queued + 500
	subjects := references(n)
	for _, name := range []string{Ours, ToolsNew, ToolsOld} {
		t.Run(name, func(t *testing.T) {
			d := newRecorder(name, n)
			defer d.close()
			d.begin(n, func(i int) *subject { return &subjects[i] })
			assert.EqualValues(t, 2*n, d.sink.writes(), "a create, and what makes it a series")
			assert.Equal(t, n, d.tracked(n))
		})
	}
}
