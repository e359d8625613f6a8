package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// thousands formats n with commas, as in 12,345.
func thousands(n int) string {
	digits := strconv.Itoa(n)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// plural formats a number of things.
func plural(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return thousands(n) + " " + thing
}

// cut truncates a line to a width. A width of 0 means no limit.
func cut(line string, width int) string {
	if width <= 0 {
		return line
	}
	runes := []rune(line)
	if len(runes) <= width {
		return line
	}
	return string(runes[:width-1]) + "…"
}

// oneLine replaces line breaks and repeated spaces.
func oneLine(note string) string { return strings.Join(strings.Fields(note), " ") }

// since formats a time since the start, exactly in the first minute.
func since(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}
