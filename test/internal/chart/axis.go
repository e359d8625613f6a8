package chart

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
)

// Axis describes the scale of an axis. The zero value is linear and starts at zero.
type Axis struct {
	// Label names the values and their unit. The label of a vertical axis is above it.
	Label string
	// Log makes the axis logarithmic. All values must be greater than zero.
	Log bool
	// Max extends the axis to a value beyond the data. Zero means no extension.
	Max float64
	// Step is the distance between two ticks of a linear axis. Zero selects a round
	// number that results in about five ticks.
	Step float64
	// Format formats the values of ticks. Nil means Plain.
	Format func(float64) string
}

// Group inserts a separator between groups of three digits.
func Group(digits, separator string) string {
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + separator + digits[i:]
	}
	return digits
}

// Plain formats a number in decimal digits, with thin spaces between thousands.
func Plain(v float64) string {
	s := strconv.FormatFloat(math.Abs(v), 'f', -1, 64)
	if whole, fraction, _ := strings.Cut(s, "."); len(whole) > 4 {
		s = strings.TrimSuffix(Group(whole, "\u2009")+"."+fraction, ".")
	}
	if v < 0 {
		return "−" + s
	}
	return s
}

// SI formats a number with a metric prefix: 1500 is "1.5k".
func SI(v float64) string {
	prefix := ""
	for _, p := range []string{"k", "M", "G"} {
		if math.Abs(v) < 1000 {
			break
		}
		v, prefix = v/1000, p
	}
	return strconv.FormatFloat(v, 'g', 4, 64) + prefix
}

func (a *Axis) format(v float64) string {
	if a.Format != nil {
		return a.Format(v)
	}
	return Plain(v)
}

// extent is a range of values.
type extent struct{ min, max float64 }

// empty is an extent without values.
func empty() extent { return extent{math.Inf(1), math.Inf(-1)} }

// include extends e to v. It returns an error if the axis cannot show v.
func (a *Axis) include(e *extent, v float64) error {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return fmt.Errorf("chart: axis %q: cannot draw %v", a.Label, v)
	case a.Log && v <= 0:
		return fmt.Errorf("chart: axis %q is logarithmic: %v is not greater than zero", a.Label, v)
	}
	e.min, e.max = min(e.min, v), max(e.max, v)
	return nil
}

const (
	// rounding is how far, in steps, a value may be beyond a tick and still count as
	// on the tick.
	rounding = 1e-9
	// maxTicks is the number of ticks that fit on an axis.
	maxTicks = 100
)

// apply sets the range, scale and ticks of an axis of a plot. down and up extend the
// range to the next tick.
func (a *Axis) apply(to *plot.Axis, data extent, down, up bool) error {
	if a.Max != 0 {
		if err := a.include(&data, a.Max); err != nil {
			return err
		}
	}
	to.Label.Text = a.Label
	if a.Log {
		a.applyLog(to, data, down, up)
		return nil
	}
	data.min, data.max = min(data.min, 0), max(data.max, 0)
	if data.min == data.max {
		data.max = 1
	}
	step := a.Step
	if step <= 0 {
		step = roundStep((data.max - data.min) / 5)
	}
	first, last := math.Ceil(data.min/step-rounding), math.Floor(data.max/step+rounding)
	to.Min, to.Max = data.min, data.max
	if down {
		first = math.Floor(data.min/step + rounding)
		to.Min = first * step
	}
	if up {
		last = math.Ceil(data.max/step - rounding)
		to.Max = last * step
	}
	if n := (to.Max - to.Min) / step; n > maxTicks {
		return fmt.Errorf("chart: axis %q: step %v results in %.0f ticks, more than %d", a.Label, step, n, maxTicks)
	}
	var ticks plot.ConstantTicks
	for i := first; i <= last; i++ {
		ticks = append(ticks, a.tick(i*step))
	}
	to.Tick.Marker = ticks
	return nil
}

func (a *Axis) applyLog(to *plot.Axis, data extent, down, up bool) {
	to.Scale = plot.LogScale{}
	to.Min, to.Max = data.min, data.max
	if down || to.Min == to.Max {
		to.Min = math.Pow(10, math.Floor(math.Log10(data.min)+rounding))
	}
	if up {
		to.Max = math.Pow(10, math.Ceil(math.Log10(data.max)-rounding))
	}
	if to.Min == to.Max {
		to.Max *= 10
	}
	factors := []float64{1}
	if math.Log10(to.Max/to.Min) < 2 {
		factors = []float64{1, 2, 5}
	}
	var ticks plot.ConstantTicks
	for e := math.Floor(math.Log10(to.Min)); e <= math.Ceil(math.Log10(to.Max)); e++ {
		for _, f := range factors {
			tick := a.tick(f * math.Pow(10, e))
			if tick.Value >= to.Min*(1-rounding) && tick.Value <= to.Max*(1+rounding) {
				ticks = append(ticks, tick)
			}
		}
	}
	to.Tick.Marker = ticks
}

// tick returns a tick at v, rounded so that three steps of 0.1 are not
// 0.30000000000000004.
func (a *Axis) tick(v float64) plot.Tick {
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 12, 64), 64)
	return plot.Tick{Value: v, Label: a.format(v)}
}

// roundStep returns the smallest number >= v that is 1, 2, 2.5 or 5 times a power of
// ten.
func roundStep(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 2.5, 5} {
		if v <= m*power*(1+rounding) {
			return m * power
		}
	}
	return 10 * power
}
