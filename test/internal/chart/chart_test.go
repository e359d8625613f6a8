package chart

import (
	"encoding/xml"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
)

func TestSVGContainsAllTexts(t *testing.T) {
	p := New("Requests & more", "hours", "requests")
	Log(&p.Y)
	require.NoError(t, Add(p, Line{Name: "one", Color: plotutil.Color(0), Points: plotter.XYs{{X: 0, Y: 7}, {X: 3, Y: 2e6}}}))
	svg := SVG(640, 400, p)
	require.NoError(t, xml.Unmarshal(svg, new(struct{})))
	for _, text := range []string{"Requests &amp; more", "hours", "requests", "one", "0", "1", "100", "1,000,000"} {
		assert.Contains(t, string(svg), ">"+text+"</text>")
	}
	assert.NotContains(t, string(svg), "NaN")
}

func TestAddRejectsInvalidData(t *testing.T) {
	for name, points := range map[string]plotter.XYs{
		"no points": nil,
		"NaN":       {{X: 1, Y: math.NaN()}},
		"infinite":  {{X: math.Inf(1), Y: 1}},
	} {
		assert.ErrorContains(t, Add(New("", "", ""), Line{Name: "it", Points: points}), `chart: line "it": `, name)
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[any]string{0.0: "0", 0.5: "0.5", 0.30000000000000004: "0.3", -2e6: "-2,000,000", 999: "999", int64(2_160_000_000): "2,160,000,000", uint64(12345): "12,345"} {
		assert.Equal(t, want, Number(v))
	}
}

func TestTerminal(t *testing.T) {
	svg := string(Terminal("A & B", "$ a <b>\n\x1b[31mred\x1b[0m  ┣━▶\n\n", 20))
	require.NoError(t, xml.Unmarshal([]byte(svg), new(struct{})))
	for _, want := range []string{
		"<title>A &amp; B</title>", `width="186" height="74"`, ">$ a &lt;b&gt;</text>",
		`<text class="c31" x="18.0" y="51" textLength="22.5" lengthAdjust="spacingAndGlyphs">red</text>`,
		`<text class="c0" x="40.5" y="51" textLength="37.5" lengthAdjust="spacingAndGlyphs">  ┣━▶</text>`,
	} {
		assert.Contains(t, svg, want)
	}
	assert.NotContains(t, svg, "\x1b")
}
