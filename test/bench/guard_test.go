//go:build !race

package bench

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// These tests say nothing under the race detector: it allocates, and slows down some
// code more than other.

// An occurrence of a series that goes on takes no memory.
func TestGuardNoAllocations(t *testing.T) {
	for _, form := range Forms {
		for _, related := range []bool{false, true} {
			s := newSubject(form, related, 1)
			d := newRecorder(Ours, 1)
			d.begin(1, func(int) *subject { return &s })
			assert.Zero(t, testing.AllocsPerRun(1000, func() { d.eventf(&s) }), "%s, related %v", form, related)
			d.close()
		}
	}
}

// The goals are 15 and 100 times; machines differ, and others use them.
func TestGuardCPU(t *testing.T) {
	const timesNew, timesOld = 5.0, 30.0
	h := MeasureHot("typed", false, []string{Ours, ToolsNew, ToolsOld}, 5, 20*time.Millisecond)
	for _, c := range h.Costs {
		t.Logf("%-12s %6.0f ns, %6.1f times ours (%.1f to %.1f)", c.Recorder, c.CPU.Median, c.Ratio.Median, c.Ratio.Min, c.Ratio.Max)
	}
	assert.Greater(t, h.Costs[1].Ratio.Median, timesNew)
	assert.Greater(t, h.Costs[2].Ratio.Median, timesOld)
}
