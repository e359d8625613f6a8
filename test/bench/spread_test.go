package bench

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSpread(t *testing.T) {
	assert.Equal(t, Spread{}, SpreadOf(nil))
	assert.Equal(t, Spread{Median: 2, Min: 2, Max: 2}, SpreadOf([]float64{2}))
	assert.Equal(t, Spread{Median: 2.5, Min: 1, Max: 9}, SpreadOf([]float64{9, 2, 1, 3}))
	values := []float64{3, 1, 2}
	assert.Equal(t, Spread{Median: 2, Min: 1, Max: 3}, SpreadOf(values))
	assert.Equal(t, []float64{3, 1, 2}, values)
}

func TestQuantile(t *testing.T) {
	values := make([]int, 1000)
	for i := range values {
		values[i] = i + 1
	}
	assert.Equal(t, 999, Quantile(values, 0.999))
	assert.Equal(t, 500, Quantile(values, 0.5))
	assert.Equal(t, 1000, Quantile(values, 1))
	assert.Equal(t, 1, Quantile(values, 0))
	assert.Equal(t, 7, Quantile([]int{7}, 0.999))
}
