package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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

func someBars() *Bars {
	return &Bars{
		Title: "Cost",
		Axis:  Axis{Label: "ns", Log: true},
		Bars: []Bar{
			{Name: "one", Value: 150, Low: 140, High: 190},
			{Name: "two", Value: 4000, Color: Orange, Label: "4 µs"},
		},
	}
}

// texts returns the texts of a picture, and fails the test if it is no XML.
func texts(t *testing.T, svg []byte) []string {
	t.Helper()
	var found []string
	inText := false
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return found
		}
		require.NoError(t, err)
		switch token := token.(type) {
		case xml.StartElement:
			inText = token.Name.Local == "text"
		case xml.EndElement:
			inText = false
		case xml.CharData:
			if inText {
				found = append(found, string(token))
			}
		}
	}
}

func TestPictureSaysWhatItIsAbout(t *testing.T) {
	svg, err := SVG(&Grid{Title: "Both", Columns: 2, Charts: []Chart{someLines(), someBars()}}, Width, Height)
	require.NoError(t, err)
	assert.Subset(t, texts(t, svg), []string{
		"Both", "Requests & more", "hours", "requests", "one", "two", "Cost", "ns", "150", "4 µs", "100", "1000",
	})
	assert.NotContains(t, string(svg), "NaN")
}

func TestSameChartIsSamePicture(t *testing.T) {
	first, err := SVG(someLines(), Width, Height)
	require.NoError(t, err)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			again, err := SVG(someLines(), Width, Height)
			if assert.NoError(t, err) {
				assert.Equal(t, string(first), string(again))
			}
		})
	}
	wg.Wait()
}

func TestWhatCannotBeDrawnIsAnError(t *testing.T) {
	line := func(points ...Point) *Lines { return &Lines{Lines: []Line{{Name: "it", Points: points}}} }
	onLog := line(Point{1, 0})
	onLog.Y.Log = true
	limit := line(Point{1, 1})
	limit.X.Max = math.Inf(1)
	steps := line(Point{1, 1e6})
	steps.Y.Step = 1
	for name, tt := range map[string]struct {
		chart Chart
		says  string
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
		"empty grid":     {&Grid{}, "without charts"},
		"in a grid":      {&Grid{Charts: []Chart{&Bars{}}}, "no bars"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := SVG(tt.chart, Width, Height)
			require.ErrorContains(t, err, "chart: ")
			assert.ErrorContains(t, err, tt.says)
		})
	}
	_, err := SVG(someLines(), 10, 10)
	assert.Error(t, err)
}

func TestOnePoint(t *testing.T) {
	for _, log := range []bool{false, true} {
		l := someLines()
		l.X.Log, l.Y.Log = log, log
		l.Lines = []Line{{Points: []Point{{1, 1}}}}
		svg, err := SVG(l, Width, Height)
		require.NoError(t, err)
		assert.NotContains(t, string(svg), "NaN")
	}
}
