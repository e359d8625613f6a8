// Package terminal knows what an output is: whether it is a terminal, how wide it is, and
// whether it shows colors.
package terminal
