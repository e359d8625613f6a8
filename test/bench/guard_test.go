//go:build !race

package bench

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// The race detector allocates, and slows down some code more than other code.

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

// The goals are 20 and 100. The guard is lower, since machines differ and are shared.
func TestGuardCPU(t *testing.T) {
	h := MeasureHot("typed", false, 5, 20*time.Millisecond)
	for _, c := range h.Costs {
		t.Logf("%-12s %6.0f ns, %6.1f times ours (%.1f to %.1f)", c.Recorder, c.CPU.Median, c.Ratio.Median, c.Ratio.Min, c.Ratio.Max)
	}
	assert.Greater(t, h.Costs.Of(ToolsNew).Ratio.Median, 5.0)
	assert.Greater(t, h.Costs.Of(ToolsOld).Ratio.Median, 30.0)
}
