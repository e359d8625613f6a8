// Package text formats values for people: on one line, in a given width, without what
// could control a terminal.
//
// # Usage
//
//	line := text.Cut(text.Clean(event.Note), width)
//
// # Guarantees
//
//   - [Clean] returns printable characters on one line, so that an Event can neither
//     control a terminal nor break a file.
//   - [Width] and [Cut] count the columns of a terminal.
//   - All functions are pure.
//
// # Limitations
//
//   - Terminals disagree about the width of some emoji.
package text
