package terminal

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/term"
)

// Terminal describes an output. The zero value is a file: it has no width and no colors.
type Terminal struct {
	// Is says that the output is a terminal.
	Is bool
	// Width and Height are the numbers of columns and lines; 0 means no limit.
	Width, Height int
	// Color says that the output shows colors.
	Color bool
}

// Modes of colors.
const (
	Auto   = "auto" // in a terminal, unless NO_COLOR is set or TERM is dumb
	Always = "always"
	Never  = "never"
)

// Of describes an output. See https://no-color.org for NO_COLOR.
func Of(w io.Writer, colors string) Terminal {
	var t Terminal
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		t.Is = true
		if width, height, err := term.GetSize(int(f.Fd())); err == nil {
			t.Width, t.Height = width, height
		}
		t.Color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && enableColors(f)
	}
	switch colors {
	case Always:
		t.Color = true
	case Never:
		t.Color = false
	}
	return t
}

// Color is a color of the terminal's palette, which people choose for their background.
type Color int

// The colors. The zero value is that of the text.
const (
	Plain   Color = 0
	Bold    Color = 1
	Dim     Color = 2
	Red     Color = 31
	Green   Color = 32
	Yellow  Color = 33
	Magenta Color = 35
)

// Paint returns s in a color, if t shows colors.
func (t Terminal) Paint(s string, color Color) string {
	if !t.Color || color == Plain || s == "" {
		return s
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", color, s)
}
