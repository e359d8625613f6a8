// Package query reads the Events of all recorders as series: what is going on, since
// when, how often, and whether it still goes on.
package query
