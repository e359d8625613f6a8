package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// display shows a run while it goes on.
type display interface {
	// changed shows that an Event has changed on the server.
	changed(s snapshot, what step, r row)
	// draw shows how things stand. It is to be called every interval.
	draw(s snapshot)
	interval() time.Duration
	// end shows how things stand in the end, and leaves it there.
	end(s snapshot)
}

// newDisplay returns the display that suits out: a table where it can be drawn
// again and again, else lines.
func newDisplay(out *os.File, verbose bool) display {
	// What -v logs would be written into the table.
	if verbose || !term.IsTerminal(int(out.Fd())) || os.Getenv("TERM") == "dumb" {
		fmt.Fprint(out, lineHeading)
		return &printer{out: out}
	}
	return &screen{out: out, size: func() size { return terminalSize(out) }, colored: os.Getenv("NO_COLOR") == ""}
}

func terminalSize(f *os.File) size {
	width, height, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return size{width: 80, height: 24}
	}
	return size{width: width, height: height}
}

// printer writes lines.
type printer struct{ out io.Writer }

func (p *printer) changed(s snapshot, what step, r row) { fmt.Fprint(p.out, line(s, what, r)) }
func (p *printer) draw(s snapshot)                      { fmt.Fprint(p.out, summary(s)) }
func (p *printer) interval() time.Duration              { return 5 * time.Second }
func (p *printer) end(snapshot)                         {} // the result says it

// Control sequences of a terminal.
const (
	clearLine  = "\x1b[K"
	clearBelow = "\x1b[J"
)

// screen draws a table over the one before.
type screen struct {
	out     io.Writer
	size    func() size
	colored bool
	drawn   int // lines
}

func (c *screen) changed(snapshot, step, row) {} // the next table shows it
func (c *screen) interval() time.Duration     { return 200 * time.Millisecond }
func (c *screen) end(s snapshot)              { c.draw(s) }

func (c *screen) draw(s snapshot) {
	text := table(s, c.size(), c.colored)
	up := ""
	if c.drawn > 0 {
		up = fmt.Sprintf("\x1b[%dA\r", c.drawn)
	}
	// In one write, so that nothing flickers.
	fmt.Fprint(c.out, up+strings.ReplaceAll(text, "\n", clearLine+"\n")+clearBelow)
	c.drawn = strings.Count(text, "\n")
}
