// Package eventtext formats notes, and makes strings fit into the fields of Events.
//
// # Usage
//
//	note := eventtext.Cut(eventtext.Format("snapshot of %s failed", []any{name}), 1024)
//
// # Guarantees
//
//   - [Valid] and [Cut] return valid UTF-8.
//   - [Cut] never splits a rune.
//
// # Limitations
//
//   - [Cut] counts bytes, as the API server does, and ignores grapheme clusters.
package eventtext
