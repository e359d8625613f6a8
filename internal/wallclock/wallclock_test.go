package wallclock

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestSet(t *testing.T) {
	now := time.Now()
	for _, by := range []time.Duration{time.Hour, -time.Hour, 365 * 24 * time.Hour, time.Millisecond, -1, 0} {
		set := Set(now, by)
		assert.Zero(t, set.Sub(now), "monotonic clock")
		assert.Equal(t, by, set.Round(0).Sub(now.Round(0)), "wall clock")
		assert.Equal(t, time.Minute, set.Add(time.Minute).Sub(now))
	}
}

func TestAt(t *testing.T) {
	now, wall := time.Now(), time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	at := At(now, wall)
	assert.Zero(t, at.Sub(now), "monotonic clock")
	assert.True(t, wall.Equal(at.Round(0)), "wall clock")
}

func TestSetPanicsIfUnsupported(t *testing.T) {
	assert.Panics(t, func() { Set(time.Now().Round(0), time.Hour) }, "no monotonic reading")
}
