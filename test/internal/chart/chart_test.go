package chart

import (
	"encoding/xml"
	"math"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
)

func someLines() *Lines {
	return &Lines{
		Title: "Requests & more",
		X:     Axis{Label: "hours"},
		Y:     Axis{Label: "requests", Log: true},
		Lines: []Line{
			{Name: "one", Color: Blue, Step: true, Points: []Point{{0, 1}, {1, 10}, {2, 100}}},
			{Name: "two", Dashed: true, Dots: true, Points: []Point{{0, 1}, {2, 100}}},
		},
	}
}

func TestSVGContainsAllTexts(t *testing.T) {
	bars := &Bars{
		Title: "Cost",
		Axis:  Axis{Label: "ns", Log: true},
		Bars: []Bar{
			{Name: "one", Value: 150, Low: 140, High: 190},
			{Name: "two", Value: 4000, Color: Orange, Label: "4 µs"},
		},
	}
	svg, err := SVG(&Grid{Title: "Both", Columns: 2, Charts: []Chart{someLines(), bars}}, Width, Height)
	require.NoError(t, err)
	require.NoError(t, xml.Unmarshal(svg, new(struct{})))
	for _, text := range []string{"Both", "Requests &amp; more", "hours", "requests", "one", "two", "Cost", "ns", "150", "4 µs", "100", "1000"} {
		assert.Contains(t, string(svg), ">"+text+"</text>")
	}
	assert.NotContains(t, string(svg), "NaN")
}

func TestSVGIsReproducible(t *testing.T) {
	first, err := SVG(someLines(), Width, Height)
	require.NoError(t, err)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			again, err := SVG(someLines(), Width, Height)
			assert.NoError(t, err)
			assert.Equal(t, string(first), string(again))
		})
	}
	wg.Wait()
}

func TestSVGRejectsInvalidData(t *testing.T) {
	line := func(points ...Point) *Lines { return &Lines{Lines: []Line{{Name: "it", Points: points}}} }
	onLog := line(Point{1, 0})
	onLog.Y.Log = true
	limit := line(Point{1, 1})
	limit.X.Max = math.Inf(1)
	steps := line(Point{1, 1e6})
	steps.Y.Step = 1
	for name, tt := range map[string]struct {
		chart Chart
		want  string
	}{
		"no lines":       {&Lines{}, "no lines"},
		"no points":      {line(), "no points"},
		"NaN":            {line(Point{1, math.NaN()}), `"it"`},
		"infinite":       {line(Point{math.Inf(1), 1}), "+Inf"},
		"zero on log":    {onLog, "logarithmic"},
		"infinite limit": {limit, "+Inf"},
		"many steps":     {steps, "1000000 ticks"},
		"no bars":        {&Bars{}, "no bars"},
		"bad bar":        {&Bars{Bars: []Bar{{Name: "it", Value: 1, High: math.NaN()}}}, `"it"`},
		"empty grid":     {&Grid{Columns: 1}, "without charts"},
		"in a grid":      {&Grid{Columns: 1, Charts: []Chart{&Bars{}}}, "no bars"},
	} {
		_, err := SVG(tt.chart, Width, Height)
		assert.ErrorContains(t, err, "chart: ", name)
		assert.ErrorContains(t, err, tt.want, name)
	}
	_, err := SVG(someLines(), 10, 10)
	assert.Error(t, err)
}

func TestSVGOfOnePoint(t *testing.T) {
	for _, log := range []bool{false, true} {
		l := someLines()
		l.X.Log, l.Y.Log = log, log
		l.Lines = []Line{{Points: []Point{{1, 1}}}}
		svg, err := SVG(l, Width, Height)
		require.NoError(t, err)
		assert.NotContains(t, string(svg), "NaN")
	}
}

func TestTicks(t *testing.T) {
	for name, tt := range map[string]struct {
		axis      Axis
		low, high float64
		down, up  bool
		want      []string
	}{
		"from zero":         {Axis{}, 3, 9, true, true, []string{"0", "2", "4", "6", "8", "10"}},
		"not outward":       {Axis{}, 3, 9, false, false, []string{"0", "2", "4", "6", "8"}},
		"tenths":            {Axis{}, 0, 0.5, true, true, []string{"0", "0.1", "0.2", "0.3", "0.4", "0.5"}},
		"below zero":        {Axis{}, -1, 1, true, true, []string{"−1", "−0.5", "0", "0.5", "1"}},
		"only zero":         {Axis{Step: 1}, 0, 0, true, true, []string{"0", "1"}},
		"only down":         {Axis{Log: true}, 7, 2000, true, false, []string{"1", "10", "100", "1000"}},
		"step":              {Axis{Step: 30}, 0, 120, false, false, []string{"0", "30", "60", "90", "120"}},
		"max":               {Axis{Max: 4}, 0, 1, false, false, []string{"0", "1", "2", "3", "4"}},
		"thousands":         {Axis{}, 0, 50_000, true, true, []string{"0", "10\u2009000", "20\u2009000", "30\u2009000", "40\u2009000", "50\u2009000"}},
		"powers of ten":     {Axis{Log: true, Format: SI}, 7, 2000, true, true, []string{"1", "10", "100", "1k", "10k"}},
		"few powers":        {Axis{Log: true}, 1, 10, false, false, []string{"1", "2", "5", "10"}},
		"on a power of ten": {Axis{Log: true, Format: SI}, 1000, 1e6, true, true, []string{"1k", "10k", "100k", "1M"}},
		"below one":         {Axis{Log: true}, 0.01, 1, false, false, []string{"0.01", "0.1", "1"}},
		"only a power":      {Axis{Log: true}, 10, 10, true, true, []string{"10", "20", "50", "100"}},
	} {
		var axis plot.Axis
		require.NoError(t, tt.axis.apply(&axis, extent{tt.low, tt.high}, tt.down, tt.up), name)
		var labels []string
		for _, tick := range axis.Tick.Marker.Ticks(axis.Min, axis.Max) {
			labels = append(labels, tick.Label)
		}
		assert.Equal(t, tt.want, labels, name)
	}
}

func TestSI(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.5: "0.5", 999: "999", 1500: "1.5k", -2e6: "-2M", 3e9: "3G"} {
		assert.Equal(t, want, SI(v))
	}
}

func TestSpreadMovesLabelsApart(t *testing.T) {
	for name, tt := range map[string]struct{ ys, want []vg.Length }{
		"far apart":    {[]vg.Length{10, 50, 90}, []vg.Length{10, 50, 90}},
		"overlapping":  {[]vg.Length{50, 50}, []vg.Length{50, 60}},
		"out of order": {[]vg.Length{52, 50}, []vg.Length{60, 50}},
		"at the top":   {[]vg.Length{98, 99, 100}, []vg.Length{80, 90, 100}},
		"below":        {[]vg.Length{-5, 0}, []vg.Length{0, 10}},
	} {
		spread(tt.ys, 10, 0, 100)
		assert.Equal(t, tt.want, tt.ys, name)
	}
}
