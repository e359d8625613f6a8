// Package table formats rows as columns that fit a terminal.
package table

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/terminal"
	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/text"
)

// Column is a column of a table.
type Column struct {
	Name string
	// Right aligns the cells to the right.
	Right bool
	// Min is the width to which a narrow terminal truncates the column. If 0, it is never
	// truncated.
	Min int
	// Middle says that it truncates values in the middle instead of at the end.
	Middle bool
	// Initial says that a narrow terminal shows only the first letter of the values, which
	// tells them apart.
	Initial bool
	// Omit is the rank in which a narrow terminal omits columns, the lowest first. If 0,
	// the column is never omitted.
	Omit int
	// LastResort says that Initial and Omit are only for a terminal that is too narrow for the
	// least widths of all columns that are left.
	LastResort bool
}

// Cell is a value in a row.
type Cell struct {
	Text  string
	Color terminal.Color
}

// gap and tight separate columns: gap as in kubectl, tight if the terminal is too narrow
// for it.
const (
	gap   = "   "
	tight = "  "
)

// maxWidth is the greatest width of a column. A longer value moves the rest of its line, except in
// a terminal, and not all others.
const maxWidth = 100

// Layout is how to print rows. Create one with [Fit].
type Layout struct {
	terminal  terminal.Terminal
	columns   []Column
	shown     []int // indexes of the columns
	widths    []int // of all columns
	separator string
}

// Fit returns a layout for rows. In a terminal it omits and truncates columns until they
// fit, those that contain nothing first. Elsewhere, nothing is truncated.
func Fit(columns []Column, rows [][]Cell, t terminal.Terminal) *Layout {
	l := &Layout{terminal: t, columns: columns, separator: gap}
	empty := make([]bool, len(columns))
	for i, column := range columns {
		l.shown = append(l.shown, i)
		width := text.Width(column.Name)
		empty[i] = true
		for _, row := range rows {
			width = max(width, min(text.Width(row[i].Text), maxWidth))
			empty[i] = empty[i] && (row[i].Text == text.None || row[i].Text == "")
		}
		l.widths = append(l.widths, width)
	}
	if t.Width <= 0 || l.width(l.natural) <= t.Width {
		return l
	}
	l.separator = tight
	l.narrow(false, l.natural)
	l.omit(empty, false, l.least)
	l.narrow(true, l.legible)
	l.omit(empty, true, l.legible)
	l.shrink(func(i int) int { return columns[i].Min })
	l.shrink(func(i int) int { return min(columns[i].Min, tiny) })
	return l
}

// narrow shows the first letters of columns while the widths do not fit.
func (l *Layout) narrow(lastResort bool, widths func(int) int) {
	for i, column := range l.columns {
		if column.Initial && column.LastResort == lastResort && l.width(widths) > l.terminal.Width {
			l.widths[i] = 1
		}
	}
}

// omit omits columns while the widths do not fit, and empty ones while the table does not.
func (l *Layout) omit(empty []bool, lastResort bool, widths func(int) int) {
	for {
		can := slices.DeleteFunc(slices.Clone(l.shown), func(i int) bool { return l.columns[i].Omit == 0 || l.columns[i].LastResort != lastResort })
		isEmpty := func(i int) bool { return empty[i] }
		if len(can) == 0 || l.width(widths) <= l.terminal.Width && (l.width(l.natural) <= l.terminal.Width || !slices.ContainsFunc(can, isEmpty)) {
			return
		}
		first := slices.MinFunc(can, func(a, b int) int {
			if empty[a] != empty[b] {
				return cmp.Compare(rank(empty[b]), rank(empty[a]))
			}
			return cmp.Compare(l.columns[a].Omit, l.columns[b].Omit)
		})
		l.shown = slices.DeleteFunc(l.shown, func(i int) bool { return i == first })
	}
}

// tiny is the width down to which columns shrink in a terminal that is too narrow for
// those that cannot be omitted.
const tiny = 6

// readable is the width for which columns give way as a last resort.
const readable = 12

// shrink truncates the widest columns until they fit, but none below the given width.
// Columns without one keep theirs.
func (l *Layout) shrink(limit func(int) int) {
	spare := func(i int) int {
		if limit(i) == 0 || l.widths[i] <= limit(i) {
			return 0
		}
		return l.widths[i]
	}
	for l.width(l.natural) > l.terminal.Width {
		widest := slices.MaxFunc(l.shown, func(a, b int) int { return cmp.Compare(spare(a), spare(b)) })
		if spare(widest) == 0 {
			return
		}
		l.widths[widest]--
	}
}

func rank(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (l *Layout) natural(i int) int { return l.widths[i] }

func (l *Layout) least(i int) int {
	if l.columns[i].Min == 0 {
		return l.widths[i]
	}
	return min(l.columns[i].Min, l.widths[i])
}

// legible is the least width of a column that can still be read.
func (l *Layout) legible(i int) int {
	if l.columns[i].Min == 0 {
		return l.widths[i]
	}
	return min(l.widths[i], l.columns[i].Min, readable)
}

// width returns the width of a line if each column has the given width.
func (l *Layout) width(of func(int) int) int {
	total := (len(l.shown) - 1) * len(l.separator)
	for _, i := range l.shown {
		total += of(i)
	}
	return total
}

// Header returns the line with the names of the columns.
func (l *Layout) Header() string {
	cells := make([]Cell, len(l.columns))
	for i, column := range l.columns {
		cells[i] = Cell{Text: column.Name, Color: terminal.Bold}
	}
	return l.Line(cells)
}

// Line returns a row as a line with a line break. A value that is longer than its column moves the rest of its line, except in a terminal.
func (l *Layout) Line(row []Cell) string {
	var b strings.Builder
	room := l.terminal.Width
	for n, i := range l.shown {
		s, last := row[i].Text, n == len(l.shown)-1
		width := l.widths[i]
		if l.terminal.Width > 0 {
			width = min(width, max(room, 0))
			if _, size := utf8.DecodeRuneInString(s); l.columns[i].Initial && width == 1 {
				s = s[:size]
			}
			if l.columns[i].Middle {
				s = text.CutMiddle(s, width)
			}
			s = text.Cut(s, width)
			room -= width + len(l.separator)
		}
		fill := strings.Repeat(" ", max(width-text.Width(s), 0))
		if l.columns[i].Right {
			b.WriteString(fill)
		}
		b.WriteString(l.terminal.Paint(s, row[i].Color))
		if last || l.terminal.Width > 0 && room <= 0 {
			break
		}
		if !l.columns[i].Right {
			b.WriteString(fill)
		}
		b.WriteString(l.separator)
	}
	b.WriteByte('\n')
	return b.String()
}
