// Package safelog makes it safe to pass untrusted values to a user's logger.
//
// Names, notes and server responses can contain line breaks and control characters. Some
// log sinks write them unescaped, so that a value can forge log lines: klog's text format
// does so for multi-line strings and for the names in object references. A log sink may
// also panic.
//
// # Usage
//
//	logger := safelog.Guard(klog.FromContext(ctx))
//	logger.Error(err, "Failed to write event", "event", klog.KRef(namespace, name))
//
// # Guarantees
//
//   - A guarded logger escapes unprintable characters in values that are strings, errors
//     or object references, and formats times as RFC 3339 in UTC. It preserves the chain
//     of an error.
//   - A guarded logger recovers from panics when its sink writes a line.
//   - [Escape] is idempotent, and returns printable strings unchanged.
//
// # Limitations
//
//   - Messages and keys must be constants. A guarded logger does not escape them.
//   - A guarded logger does not look into values of other types, and writes a [Verbatim]
//     unescaped.
package safelog
