package eventtext

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCut(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		limit    int
		want     string
	}{
		{"empty", "", 10, ""},
		{"shorter", "abc", 10, "abc"},
		{"at the limit", "abcdefghij", 10, "abcdefghij"},
		{"one byte longer", "abcdefghijk", 10, "abcdefg…"},
		{"much longer", strings.Repeat("x", 5000), 10, "xxxxxxx…"},
		{"cut before a rune", "abcdefgäöü", 10, "abcdefg…"},
		{"cut inside a rune", "abcdefäöü", 10, "abcdef…"},
		{"cut inside a rune of four bytes", "abcd😀😀", 10, "abcd…"},
		{"invalid", "a\xffb", 10, "a\uFFFDb"},
		{"longer after replacement", "\xffa\xffa\xffa", 10, "\uFFFDa\uFFFD…"},
		{"only the ellipsis fits", "abcdef", 3, "…"},
	} {
		t.Run(tt.name, func(t *testing.T) { assert.Equal(t, tt.want, Cut(tt.in, tt.limit)) })
	}
}

func TestFormat(t *testing.T) {
	for _, tt := range []struct {
		note string
		args []any
		want string
	}{
		{"95% full", nil, "95% full"},
		{"95%% full", nil, "95% full"},
		{"95%% full, %d left", nil, "95%% full, %d left"},
		{"%d%% full", []any{95}, "95% full"},
		{"plain", []any{1}, "plain%!(EXTRA int=1)"},
		{"", nil, ""},
	} {
		t.Run(tt.note, func(t *testing.T) { assert.Equal(t, tt.want, Format(tt.note, tt.args)) })
	}
}

func FuzzCut(f *testing.F) {
	f.Add("", uint16(0))
	f.Add("äöü😀", uint16(7))
	f.Add("\xff\xfe"+strings.Repeat("é", 600), uint16(1024))
	f.Fuzz(func(t *testing.T, in string, size uint16) {
		limit := int(size)%2000 + len(ellipsis)
		out := Cut(in, limit)
		assert.LessOrEqual(t, len(out), limit)
		assert.True(t, utf8.ValidString(out))
		assert.Equal(t, out, Cut(out, limit), "a string that fits stays the same")
		valid := strings.ToValidUTF8(in, string(utf8.RuneError))
		if len(valid) <= limit {
			assert.Equal(t, valid, out)
			return
		}
		kept, found := strings.CutSuffix(out, ellipsis)
		assert.True(t, found)
		assert.True(t, strings.HasPrefix(valid, kept))
		// Cut keeps every rune that fits.
		assert.Greater(t, len(out), limit-utf8.UTFMax)
	})
}
