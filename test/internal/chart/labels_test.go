package chart

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"gonum.org/v1/plot/vg"
)

func TestNamesMoveApart(t *testing.T) {
	for name, tt := range map[string]struct{ ys, want []vg.Length }{
		"far apart":      {[]vg.Length{10, 50, 90}, []vg.Length{10, 50, 90}},
		"on one another": {[]vg.Length{50, 50}, []vg.Length{50, 60}},
		"out of order":   {[]vg.Length{52, 50}, []vg.Length{60, 50}},
		"at the top":     {[]vg.Length{98, 99, 100}, []vg.Length{80, 90, 100}},
		"below":          {[]vg.Length{-5, 0}, []vg.Length{0, 10}},
	} {
		t.Run(name, func(t *testing.T) {
			spread(tt.ys, 10, 0, 100)
			assert.Equal(t, tt.want, tt.ys)
		})
	}
}
