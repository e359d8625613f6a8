package heartbeat

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestInterval(t *testing.T) {
	const s, m, most = time.Second, time.Minute, time.Duration(math.MaxInt64)
	for _, tt := range []struct {
		first, longest time.Duration
		heartbeats     uint8
		want           time.Duration
	}{
		{0, 30 * m, 0, 30 * m},
		{0, 30 * m, math.MaxUint8, 30 * m},
		{31 * m, 30 * m, 0, 30 * m},
		{s, 8*s + 1, 4, 8 * s},
		{s, 8*s + 1, 5, 8*s + 1},
		{s, 8*s - 1, 4, 8*s - 1},
		{1, most - 1, 63, 1 << 62},
		{1, most - 1, math.MaxUint8, most - 1},
		{most - 1, most - 1, 2, most - 1},
	} {
		assert.Equal(t, tt.want, Interval(tt.first, tt.longest, tt.heartbeats), "%+v", tt)
	}

	var ages []time.Duration
	for n, age := uint8(0), time.Duration(0); age < 2*time.Hour; n++ {
		ages = append(ages, age/m)
		age += Interval(m, 30*m, n)
	}
	assert.Equal(t, []time.Duration{0, 1, 2, 4, 8, 16, 32, 62, 92}, ages)
}
