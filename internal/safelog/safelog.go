// Package safelog is for loggers of others that are given what others wrote.
//
// Names, notes and what a server answers can have line breaks and control
// characters in them. Not every log sink keeps these from looking like lines of
// its own: klog's text format writes a string of several lines, and the names of
// an object reference, as they are. And a sink is code of the user, which may
// panic. Guard is against both.
package safelog

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/klog/v2"
)

// Verbatim is a value of several lines that is logged as it is: one that the
// program has made itself, such as a stack.
type Verbatim string

// timeFormat is how times are logged: as Events have them, in UTC.
const timeFormat = "2006-01-02T15:04:05.000Z07:00"

// Guard returns a logger that writes what logger does, with everything in its
// values escaped that is not printable and times as RFC 3339 has them, and that does not panic when logger does.
// A logger that is guarded already is returned as it is.
//
// Messages and keys are not looked at. They must be constants.
func Guard(logger klog.Logger) klog.Logger {
	sink := logger.WithCallDepth(1).GetSink()
	if _, ok := sink.(guard); ok || sink == nil {
		return logger
	}
	return logger.WithSink(guard{sink})
}

// guard keeps the panics of a log sink to itself. There is nobody to be told of
// them: the log is where one would say so.
type guard struct{ klog.LogSink }

func (g guard) Enabled(level int) bool {
	defer swallow()
	return g.LogSink.Enabled(level)
}

func (g guard) Info(level int, msg string, keysAndValues ...any) {
	defer swallow()
	g.LogSink.Info(level, msg, escapeAll(keysAndValues)...)
}

func (g guard) Error(err error, msg string, keysAndValues ...any) {
	defer swallow()
	g.LogSink.Error(escapeError(err), msg, escapeAll(keysAndValues)...)
}

func (g guard) WithValues(keysAndValues ...any) klog.LogSink {
	return guard{g.LogSink.WithValues(escapeAll(keysAndValues)...)}
}

func (g guard) WithName(name string) klog.LogSink {
	return guard{g.LogSink.WithName(name)}
}

func swallow() { _ = recover() }

// escapeAll returns keys and values with the values escaped. What is given is
// left as it is.
func escapeAll(keysAndValues []any) []any {
	escaped := make([]any, len(keysAndValues))
	copy(escaped, keysAndValues)
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
		// klog puts it between quotation marks, which a name must not end.
		return klog.ObjectRef{Namespace: escapeQuoted(v.Namespace), Name: escapeQuoted(v.Name)}
	case error:
		return escapeError(v)
	case time.Time:
		// String would add the monotonic reading.
		return v.UTC().Format(timeFormat)
	default:
		return value
	}
}

// Escape returns s with everything that is not printable, and what is not UTF-8,
// written as Go would in a string literal. What is printable stays as it is,
// backslashes included, so a string that needs nothing is itself.
func Escape(s string) string {
	return escape(s, strconv.IsPrint)
}

// escapeQuoted is Escape for what is put between quotation marks by somebody who
// looks at nothing.
func escapeQuoted(s string) string {
	return escape(s, func(r rune) bool { return strconv.IsPrint(r) && r != '"' && r != '\\' })
}

func escape(s string, plain func(rune) bool) string {
	var b strings.Builder
	done := 0
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if plain(r) && (r != utf8.RuneError || size > 1) {
			i += size
			continue
		}
		quoted := strconv.Quote(s[i : i+size])
		b.WriteString(s[done:i])
		b.WriteString(quoted[1 : len(quoted)-1])
		i += size
		done = i
	}
	if done == 0 {
		return s
	}
	b.WriteString(s[done:])
	return b.String()
}

// escapeError returns err, or one that says the same in printable characters.
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

// escapedError is an error whose message has been escaped.
type escapedError struct {
	error
	message string
}

// Error returns the escaped message.
func (e escapedError) Error() string { return e.message }

// Unwrap returns the error itself.
func (e escapedError) Unwrap() error { return e.error }
