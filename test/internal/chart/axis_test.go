package chart

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/plot"
)

func ticks(t *testing.T, a Axis, lowest, highest float64, outward ends) []string {
	t.Helper()
	var axis plot.Axis
	require.NoError(t, a.apply(&axis, extent{lowest, highest}, outward))
	var labels []string
	for _, tick := range axis.Tick.Marker.Ticks(axis.Min, axis.Max) {
		labels = append(labels, tick.Label)
	}
	return labels
}

func TestTicks(t *testing.T) {
	for name, tt := range map[string]struct {
		axis            Axis
		lowest, highest float64
		outward         ends
		want            []string
	}{
		"from zero":           {Axis{}, 3, 9, low | high, []string{"0", "2", "4", "6", "8", "10"}},
		"no further":          {Axis{}, 3, 9, 0, []string{"0", "2", "4", "6", "8"}},
		"tenths":              {Axis{}, 0, 0.5, low | high, []string{"0", "0.1", "0.2", "0.3", "0.4", "0.5"}},
		"below zero":          {Axis{}, -1, 1, low | high, []string{"−1", "−0.5", "0", "0.5", "1"}},
		"nothing but zero":    {Axis{Step: 1}, 0, 0, low | high, []string{"0", "1"}},
		"only down":           {Axis{Log: true}, 7, 2000, low, []string{"1", "10", "100", "1000"}},
		"step":                {Axis{Step: 30}, 0, 120, 0, []string{"0", "30", "60", "90", "120"}},
		"reaches further":     {Axis{Max: 4}, 0, 1, 0, []string{"0", "1", "2", "3", "4"}},
		"thousands":           {Axis{}, 0, 50_000, low | high, []string{"0", "10\u2009000", "20\u2009000", "30\u2009000", "40\u2009000", "50\u2009000"}},
		"powers of ten":       {Axis{Log: true, Format: SI}, 7, 2000, low | high, []string{"1", "10", "100", "1k", "10k"}},
		"few powers":          {Axis{Log: true}, 1, 10, 0, []string{"1", "2", "5", "10"}},
		"on a power of ten":   {Axis{Log: true, Format: SI}, 1000, 1e6, low | high, []string{"1k", "10k", "100k", "1M"}},
		"below one":           {Axis{Log: true}, 0.01, 1, 0, []string{"0.01", "0.1", "1"}},
		"nothing but a power": {Axis{Log: true}, 10, 10, low | high, []string{"10", "20", "50", "100"}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tt.want, ticks(t, tt.axis, tt.lowest, tt.highest, tt.outward))
		})
	}
}

func TestSI(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.5: "0.5", 999: "999", 1500: "1.5k", -2e6: "-2M", 3e9: "3G"} {
		assert.Equal(t, want, SI(v))
	}
}
