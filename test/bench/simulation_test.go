package bench

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSummaryOfWrites(t *testing.T) {
	r := Simulation{Beginning: 2, Writes: make([]int, 100)}
	for i := range r.Writes {
		r.Writes[i] = 10
	}
	r.Writes[0], r.Writes[1] = 500, 500 // the beginning
	r.Writes[5] = 40                    // counts as busy, but not for the mean
	r.Writes[30] = 70
	r.Writes[95] = 30 // in an interval that has not ended
	r.summarize()
	assert.Equal(t, 70, r.Busiest)
	assert.InDelta(t, 11, r.Mean, 1e-9)
	r.Writes[30] = 10
	r.summarize()
	assert.Equal(t, 40, r.Busiest)
}
