package safelog

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestGuard(t *testing.T) {
	var lines []string
	logger := funcr.New(func(prefix, args string) { lines = append(lines, prefix+" "+args) },
		funcr.Options{Verbosity: 1, LogCaller: funcr.All})
	g := Guard(logger)
	assert.Equal(t, g, Guard(g), "a guarded logger stays the same")
	g.WithName("name").WithValues("k", "v").V(1).Info("one")
	g.Error(nil, "two", "count", 2, "stack", Verbatim("a\nb"),
		"at", time.Date(2026, 1, 2, 13, 0, 0, 1_500_000, time.FixedZone("", 3600)))
	g.V(2).Info("three")
	require.Len(t, lines, 2)
	assert.Contains(t, lines[0], `"msg"="one" "k"="v"`)
	assert.Contains(t, lines[0], "name")
	assert.Contains(t, lines[1], `"error"=null "count"=2 "stack"="a\nb" "at"="2026-01-02T12:00:00.001Z"`)
	for _, line := range lines {
		assert.Contains(t, line, "safelog_test.go", "the call depth stays the same")
	}
}

func TestGuardRecoversFromPanics(t *testing.T) {
	logger := Guard(funcr.New(func(string, string) { panic("cannot write") }, funcr.Options{})).WithName("x").WithValues("k", "v")
	assert.NotPanics(t, func() {
		Guard(klog.Logger{}).Info("no sink")
		logger.Info("message")
		logger.Error(errors.New("e"), "message")
	})
}

func TestEscape(t *testing.T) {
	for in, want := range map[string]string{
		"":                              "",
		"plain, with \"quotes\" and \\": "plain, with \"quotes\" and \\",
		"größer 世界 …":                   "größer 世界 …",
		"a\nb\r\tc":                     `a\nb\r\tc`,
		"\x1b[2Jgone\x00\x7f":           `\x1b[2Jgone\x00\x7f`,
		"not \xff UTF-8":                `not \xff UTF-8`,
		"replacement \uFFFD":            "replacement \uFFFD",
		"rtl \u202e over":               `rtl \u202e over`,
		"line\u2028separator":           `line\u2028separator`,
	} {
		assert.Equal(t, want, Escape(in), "%q", in)
	}
}

func FuzzEscape(f *testing.F) {
	f.Add("a\nb\x1b[31m\xff\u202e\"\\")
	f.Fuzz(func(t *testing.T, s string) {
		escaped := Escape(s)
		assert.True(t, utf8.ValidString(escaped))
		for _, r := range escaped {
			assert.True(t, strconv.IsPrint(r), "%q", r)
		}
		assert.Equal(t, escaped, Escape(escaped), "Escape is idempotent")
		quoted := escapeQuoted(s)
		back, err := strconv.Unquote(`"` + quoted + `"`)
		assert.NoError(t, err, "a Go string literal")
		assert.Equal(t, s, back)
	})
}

// errorSink keeps the last error.
type errorSink struct {
	klog.LogSink
	last error
}

func (s *errorSink) Error(err error, _ string, _ ...any) { s.last = err }

func TestEscapedErrorKeepsChain(t *testing.T) {
	cause := errors.New("a\nb")
	sink := &errorSink{LogSink: funcr.New(nil, funcr.Options{}).GetSink()}
	logger := Guard(klog.New(sink))
	logger.Error(fmt.Errorf("wrapped: %w", cause), "message")
	assert.ErrorIs(t, sink.last, cause)
	assert.EqualError(t, sink.last, `wrapped: a\nb`)
	logger.Error(nil, "message")
	assert.NoError(t, sink.last)
}

// klogLine matches the severity and the date at the start of a line.
var klogLine = regexp.MustCompile(`^[IWEF]\d{4} `)

func TestValuesCannotForgeLinesInTextFormat(t *testing.T) {
	const hostile = "x\nE0101 00:00:00.000000       1 forged.go:1] \"All is lost\"\r\x1b[2J\u202e\" forged=\"yes\n >"
	for name, value := range map[string]any{
		"string":     hostile,
		"error":      errors.New(hostile),
		"object":     klog.KRef(hostile, hostile),
		"namespaced": klog.KRef("ns", hostile),
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			logger := Guard(textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&out))))
			logger.Info("info", "value", value)
			logger.WithValues("value", value).Info("with values")
			logger.Error(errors.New(hostile), "error", "value", value)
			lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
			require.Len(t, lines, 3, out.String())
			for _, line := range lines {
				assert.Regexp(t, klogLine, line)
				assert.Equal(t, Escape(line), line, "unprintable characters")
				assert.NotContains(t, line, ` forged="yes`)
			}
		})
	}
}
