package chart

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
)

// Axis says how values become places. The zero value is linear and begins at zero.
type Axis struct {
	// Label says what the values are, and in what unit. That of a vertical axis is
	// written above it.
	Label string
	// Log makes the axis logarithmic. All values must be above zero then.
	Log bool
	// Min and Max are values that the axis is to reach at least. If both are zero,
	// it reaches as far as the data, and from zero if it is linear.
	Min, Max float64
	// Step is the distance between two ticks of a linear axis. If zero, a round
	// number that makes about five.
	Step float64
	// Format writes the value of a tick. If nil, Plain.
	Format func(float64) string
}

// Plain writes a number in digits, with thin spaces between the thousands.
func Plain(v float64) string {
	s := strconv.FormatFloat(math.Abs(v), 'f', -1, 64)
	whole, fraction, _ := strings.Cut(s, ".")
	var b strings.Builder
	if v < 0 {
		b.WriteString("−")
	}
	for i, digit := range whole {
		if i > 0 && (len(whole)-i)%3 == 0 && len(whole) > 4 {
			b.WriteRune('\u2009')
		}
		b.WriteRune(digit)
	}
	if fraction != "" {
		b.WriteString("." + fraction)
	}
	return b.String()
}

// SI writes a number with a prefix of the metric system for its thousands: 1500 is
// "1.5k".
func SI(v float64) string {
	for _, unit := range []struct {
		value  float64
		prefix string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if math.Abs(v) >= unit.value {
			return strconv.FormatFloat(v/unit.value, 'g', 4, 64) + unit.prefix
		}
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

func (a *Axis) format(v float64) string {
	if a.Format != nil {
		return a.Format(v)
	}
	return Plain(v)
}

// check returns an error if v has no place on the axis.
func (a *Axis) check(v float64) error {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return fmt.Errorf("chart: axis %q: %v cannot be drawn", a.Label, v)
	case a.Log && v <= 0:
		return fmt.Errorf("chart: axis %q is logarithmic: %v is not above zero", a.Label, v)
	}
	return nil
}

// extent is a range of values.
type extent struct{ min, max float64 }

func (e *extent) include(v float64) {
	e.min, e.max = min(e.min, v), max(e.max, v)
}

// ends are ends of an axis.
type ends uint8

const (
	low ends = 1 << iota
	high
)

// nothing is an extent without a value.
func nothing() extent { return extent{math.Inf(1), math.Inf(-1)} }

// apply sets range, scale and ticks of an axis of a plot for the values of data.
// outward says which ends of the range are widened to the next tick.
func (a *Axis) apply(to *plot.Axis, data extent, outward ends) error {
	if a.Min != 0 || a.Max != 0 {
		for _, v := range []float64{a.Min, a.Max} {
			if err := a.check(v); err != nil {
				return err
			}
			data.include(v)
		}
	}
	to.Label.Text = a.Label
	if a.Log {
		to.Scale = plot.LogScale{}
		to.Min, to.Max = data.min, data.max
		if outward&low != 0 || to.Min == to.Max {
			to.Min = math.Pow(10, math.Floor(math.Log10(data.min)+rounding))
		}
		if outward&high != 0 {
			to.Max = math.Pow(10, math.Ceil(math.Log10(data.max)-rounding))
		}
		if to.Min == to.Max {
			to.Max *= 10
		}
		to.Tick.Marker = plot.ConstantTicks(a.logTicks(to.Min, to.Max))
		return nil
	}
	data.include(0)
	if data.min == data.max {
		data.max = 1
	}
	step := a.Step
	if step <= 0 {
		step = roundStep((data.max - data.min) / 5)
	}
	to.Min, to.Max = data.min, data.max
	if outward&low != 0 {
		to.Min = math.Floor(data.min/step+rounding) * step
	}
	if outward&high != 0 {
		to.Max = math.Ceil(data.max/step-rounding) * step
	}
	if n := (to.Max - to.Min) / step; n > maxTicks {
		return fmt.Errorf("chart: axis %q: a step of %v makes %.0f ticks, more than %d", a.Label, step, n, maxTicks)
	}
	to.Tick.Marker = plot.ConstantTicks(a.linearTicks(to.Min, to.Max, step))
	return nil
}

const (
	// rounding is how far a value may be past a tick, in steps, and still count as
	// being on it.
	rounding = 1e-9
	// maxTicks is how many ticks can be told apart on one axis.
	maxTicks = 100
)

// roundStep returns the round number (1, 2, 2.5 or 5 times a power of ten) next
// above v.
func roundStep(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 2.5, 5} {
		if v <= m*power*(1+rounding) {
			return m * power
		}
	}
	return 10 * power
}

func (a *Axis) linearTicks(lowest, highest, step float64) []plot.Tick {
	var ticks []plot.Tick
	first, last := math.Ceil(lowest/step-rounding), math.Floor(highest/step+rounding)
	for i := first; i <= last; i++ {
		// Rounded, so that three steps of 0.1 are not 0.30000000000000004.
		v, _ := strconv.ParseFloat(strconv.FormatFloat(i*step, 'g', 12, 64), 64)
		ticks = append(ticks, plot.Tick{Value: v, Label: a.format(v)})
	}
	return ticks
}

// logTicks has a tick for each power of ten. Where there are few, 2 and 5 times
// these have one too.
func (a *Axis) logTicks(lowest, highest float64) []plot.Tick {
	factors := []float64{1}
	if math.Log10(highest/lowest) < 2 {
		factors = []float64{1, 2, 5}
	}
	var ticks []plot.Tick
	for e := math.Floor(math.Log10(lowest)); e <= math.Ceil(math.Log10(highest)); e++ {
		for _, f := range factors {
			v, _ := strconv.ParseFloat(strconv.FormatFloat(f*math.Pow(10, e), 'g', 12, 64), 64)
			if v >= lowest*(1-rounding) && v <= highest*(1+rounding) {
				ticks = append(ticks, plot.Tick{Value: v, Label: a.format(v)})
			}
		}
	}
	return ticks
}
