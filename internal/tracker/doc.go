// Package tracker holds the active series of a recorder: what an occurrence does
// to a series, what to write next, and what a response means.
package tracker
