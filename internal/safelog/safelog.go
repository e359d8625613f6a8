// Package safelog makes it safe to pass untrusted values to a user's logger.
//
// Names, notes and server responses can contain line breaks and control characters. Some
// log sinks write them unescaped, so that a value can forge log lines: klog's text format
// does so for multi-line strings and for the names in object references. A log sink may
// also panic. See [Guard].
package safelog

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/klog/v2"
)

// Verbatim is a trusted string with several lines, such as a stack, that a guarded logger
// does not escape.
type Verbatim string

// timeFormat is RFC 3339 with milliseconds.
const timeFormat = "2006-01-02T15:04:05.000Z07:00"

// Guard returns a logger that writes to the sink of logger, escapes unprintable characters
// in values, formats times as RFC 3339 in UTC, and recovers from panics of the sink. It
// returns a guarded logger, and one without a sink, unchanged.
//
// Messages and keys must be constants. The guarded logger does not escape them.
func Guard(logger klog.Logger) klog.Logger {
	sink := logger.WithCallDepth(1).GetSink()
	if _, ok := sink.(guard); ok || sink == nil {
		return logger
	}
	return logger.WithSink(guard{sink})
}

// guard is a log sink that escapes values and recovers from panics. It discards the
// panics, because it cannot log them.
type guard struct{ klog.LogSink }

func (g guard) Enabled(level int) bool {
	defer discardPanic()
	return g.LogSink.Enabled(level)
}

func (g guard) Info(level int, msg string, keysAndValues ...any) {
	defer discardPanic()
	g.LogSink.Info(level, msg, escapeAll(keysAndValues)...)
}

func (g guard) Error(err error, msg string, keysAndValues ...any) {
	defer discardPanic()
	g.LogSink.Error(escapeError(err), msg, escapeAll(keysAndValues)...)
}

func (g guard) WithValues(keysAndValues ...any) klog.LogSink {
	return guard{g.LogSink.WithValues(escapeAll(keysAndValues)...)}
}

func (g guard) WithName(name string) klog.LogSink {
	return guard{g.LogSink.WithName(name)}
}

func discardPanic() { _ = recover() }

// escapeAll returns a copy of keysAndValues with escaped values.
func escapeAll(keysAndValues []any) []any {
	escaped := slices.Clone(keysAndValues)
	for i := 1; i < len(escaped); i += 2 {
		escaped[i] = escapeValue(escaped[i])
	}
	return escaped
}

func escapeValue(value any) any {
	switch v := value.(type) {
	case string:
		return Escape(v)
	case Verbatim:
		return string(v)
	case klog.ObjectRef:
		// klog writes the names between quotation marks without escaping them.
		return klog.ObjectRef{Namespace: escapeQuoted(v.Namespace), Name: escapeQuoted(v.Name)}
	case error:
		return escapeError(v)
	case time.Time:
		return v.UTC().Format(timeFormat)
	default:
		return value
	}
}

// printable are the characters that [strconv.Quote] escapes although they are printable.
var printable = strings.NewReplacer(`\\`, `\`, `\"`, `"`)

// Escape replaces unprintable characters and invalid UTF-8 in s with the escape sequences
// of a Go string literal. It keeps printable characters, including backslashes.
func Escape(s string) string { return printable.Replace(escapeQuoted(s)) }

// escapeQuoted escapes s for use between quotation marks: like Escape, and quotation marks
// and backslashes as well.
func escapeQuoted(s string) string {
	quoted := strconv.Quote(s)
	return quoted[1 : len(quoted)-1]
}

// escapeError returns an error that wraps err and has an escaped message, or err itself if
// its message is printable.
func escapeError(err error) error {
	if err == nil {
		return nil
	}
	message := err.Error()
	if escaped := Escape(message); escaped != message {
		return escapedError{err, escaped}
	}
	return err
}

// escapedError replaces the message of an error with an escaped one.
type escapedError struct {
	error
	message string
}

// Error returns the escaped message.
func (e escapedError) Error() string { return e.message }

// Unwrap returns the original error.
func (e escapedError) Unwrap() error { return e.error }
