package chart

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Measures of a terminal in pixels.
const (
	cellWidth  = 7.5
	lineHeight = 19
	border     = 18
)

// terminalStyle has the colors of a terminal for light and dark pages. The classes are the codes of
// the escape sequences.
const terminalStyle = `
svg { --page: #ffffff; --ink: #1f2328; --edge: #d0d7de; --dim: #59636e; --red: #b3261e; --green: #1a7f37; --yellow: #8a5a00; --magenta: #8250df; color-scheme: light dark; }
@media (prefers-color-scheme: dark) {
svg { --page: #0d1117; --ink: #e6edf3; --edge: #30363d; --dim: #9198a1; --red: #ff8f7a; --green: #56d364; --yellow: #e3b341; --magenta: #d2a8ff; }
}
rect { fill: var(--page); stroke: var(--edge); }
text { fill: var(--ink); font: 12.5px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", "Liberation Mono", monospace; white-space: pre; }
.c1 { font-weight: 700; } .c2 { fill: var(--dim); } .c31 { fill: var(--red); } .c32 { fill: var(--green); } .c33 { fill: var(--yellow); } .c35 { fill: var(--magenta); }
`

// sequence is the escape sequence of a color.
var sequence = regexp.MustCompile("\x1b\\[([0-9]+)m")

// Terminal draws what a program printed in a terminal of a number of columns as a picture, with the
// colors that it set. The picture follows the reader's preference for light or dark. title
// describes it for those who cannot see it. Each character must take one column.
func Terminal(title, output string, columns int) []byte {
	lines := strings.Split(strings.TrimRight(output, "\n"), "\n")
	width, height := float64(columns)*cellWidth+2*border, len(lines)*lineHeight+2*border
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%d" viewBox="0 0 %.0f %d" role="img" style="max-width:100%%;height:auto">`+"\n<title>", width, height, width, height)
	escape(&b, title)
	fmt.Fprintf(&b, "</title>\n<style>%s</style>\n<rect x=\"0.5\" y=\"0.5\" width=\"%.0f\" height=\"%d\" rx=\"8\"/>\n", terminalStyle, width-1, height-1)
	for i, line := range lines {
		drawLine(&b, line, border+(i+1)*lineHeight-5)
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// drawLine draws the parts of a line. Each has a length, so columns are below each other in any font.
func drawLine(b *bytes.Buffer, line string, y int) {
	class, column := "0", 0
	draw := func(s string) {
		n := utf8.RuneCountInString(s)
		if strings.TrimSpace(s) != "" {
			fmt.Fprintf(b, `<text class="c%s" x="%.1f" y="%d" textLength="%.1f" lengthAdjust="spacingAndGlyphs">`, class, border+float64(column)*cellWidth, y, float64(n)*cellWidth)
			escape(b, s)
			b.WriteString("</text>\n")
		}
		column += n
	}
	for line != "" {
		match := sequence.FindStringSubmatchIndex(line)
		if match == nil {
			draw(line)
			return
		}
		draw(line[:match[0]])
		class, line = line[match[2]:match[3]], line[match[1]:]
	}
}

func escape(b *bytes.Buffer, s string) {
	_ = xml.EscapeText(b, []byte(s)) // a Buffer returns no error
}
