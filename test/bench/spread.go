package bench

import (
	"slices"
)

// Spread is where the middle of several measurements is and how far they reach. The
// zero value stands for none.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// SpreadOf returns the spread of values, which it leaves as they are.
func SpreadOf(values []float64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return Spread{
		Median: (sorted[(n-1)/2] + sorted[n/2]) / 2,
		Min:    sorted[0],
		Max:    sorted[n-1],
	}
}

// Quantile returns the smallest of sorted values that at least the share q of them
// does not exceed. There must be one at least.
func Quantile[T any](sorted []T, q float64) T {
	rank := int(q * float64(len(sorted)))
	if float64(rank) == q*float64(len(sorted)) {
		rank--
	}
	return sorted[min(max(rank, 0), len(sorted)-1)]
}
