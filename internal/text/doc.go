// Package text formats notes and shortens strings to the limits of the API server.
//
// # Usage
//
//	note := text.Cut(text.Format("snapshot of %s failed", []any{name}), 1024)
//
// # Guarantees
//
//   - [Valid] and [Cut] return valid UTF-8.
//   - [Cut] never splits a rune.
//   - [Subdomain] returns what kube-apiserver accepts in a name, or nothing.
//
// # Limitations
//
//   - [Cut] counts bytes, as the API server does, and ignores grapheme clusters.
package text
