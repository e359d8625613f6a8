// Package timeline draws the life of an object: each series is a bar from its first to its
// last occurrence, open-ended if it is ongoing.
//
// # Usage
//
//	t := timeline.New(timeline.Options{Kind: "Pod", Name: "checkout-0", Items: items, Now: now})
//	err := t.WriteHTML(w)
//
// # Guarantees
//
//   - [New] is pure: it reads no clock and does no I/O.
//   - The SVG image and the HTML page are self-contained: they have no scripts, and refer
//     to nothing outside. The page denies both by its Content-Security-Policy.
//   - They follow the reader's preference for light or dark, and are readable without
//     colors: Warnings are filled, Normals are outlined, and each state has a shape and a name.
//   - All of them show all series. Only a terminal and the image truncate notes.
//
// # Limitations
//
//   - A bar shows when a series began and when it occurred last, and not each occurrence:
//     an Event does not contain these times.
package timeline
