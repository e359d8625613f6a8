package bench

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// However the series came, their heartbeats must not come all at once: the server
// would feel it every half hour.
func TestWritesAreEven(t *testing.T) {
	for name, rebuilt := range map[string]bool{"after a start": false, "after a restart": true} {
		t.Run(name, func(t *testing.T) {
			s := Simulate(t, SimulationOptions{
				Series: 10_000, Every: 4 * time.Minute, Duration: 3 * time.Hour, Emitters: 2, Rebuilt: rebuilt,
			})
			t.Logf("at most %d writes in a minute, %.1f in the mean", s.Busiest, s.Mean)
			assert.LessOrEqual(t, float64(s.Busiest), 1.5*s.Mean)
			assert.InEpsilon(t, 10_000.0/30, s.Mean, 0.1, "a heartbeat in half an hour")
		})
	}
}
