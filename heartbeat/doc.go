// Package heartbeat decides when the recorder does something about a series of
// Kubernetes events: when the next heartbeat is due ([Intervals]), and which of
// many series is handled next ([Schedule]). It decides nothing about what is
// written.
package heartbeat
