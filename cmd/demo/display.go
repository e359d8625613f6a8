package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/eventseries/eventseries/series"
)

// display shows the progress of a session.
type display interface {
	// changed shows a change of an Event on the server.
	changed(s snapshot, what step, r row)
	// draw shows the current state. The session calls it every interval.
	draw(s snapshot)
	interval(p pace) time.Duration
	// end shows the final state.
	end(s snapshot)
}

// newDisplay returns a table if out is a terminal on which it can be redrawn, or lines
// otherwise.
func newDisplay(out *os.File, verbose bool) display {
	// The log of -v would overwrite the table.
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
func (p *printer) interval(pace pace) time.Duration     { return pace.summary }
func (p *printer) end(snapshot)                         {} // the result follows

// Terminal control sequences.
const (
	clearLine  = "\x1b[K"
	clearBelow = "\x1b[J"
)

// screen redraws a table.
type screen struct {
	out     io.Writer
	size    func() size
	colored bool
	drawn   int // lines of the last table
}

func (c *screen) changed(snapshot, step, row)   {} // draw follows
func (c *screen) interval(p pace) time.Duration { return p.redraw }
func (c *screen) end(s snapshot)                { c.draw(s) }

func (c *screen) draw(s snapshot) {
	text := table(s, c.size(), c.colored)
	up := ""
	if c.drawn > 0 {
		up = fmt.Sprintf("\x1b[%dA\r", c.drawn)
	}
	// A single write does not flicker.
	fmt.Fprint(c.out, up+strings.ReplaceAll(text, "\n", clearLine+"\n")+clearBelow)
	c.drawn = strings.Count(text, "\n")
}

// lineHeading is the heading for the columns of line.
const lineHeading = "    TIME  CHANGE     STATE        COUNT  EVENT\n"

// line describes a change of an Event on the server.
func line(s snapshot, what step, r row) string {
	return fmt.Sprintf("%8s  %-9s  %-9s  %7s  %s %s %s: %s\n", since(s.elapsed), what, r.state,
		thousands(r.count), r.namespace, r.subject.regarding, r.subject.reason, r.note)
}

// summary describes the current state in one line.
func summary(s snapshot) string {
	return fmt.Sprintf("%8s  ---------  %s, %s; one write per occurrence: %s%s (%s)\n", since(s.elapsed),
		plural(s.emitted, "occurrence"), plural(s.calls.total(), "API call"), thousands(s.emitted), times(s), s.phase)
}

// snapshot is the state of a session at one time.
type snapshot struct {
	elapsed time.Duration
	phase   string
	rows    []row
	emitted int   // occurrences
	calls   calls // by the recorder
}

// row is the state of an Event on the server, except for emitted.
type row struct {
	subject   subject
	namespace string // of the Event
	state     series.State
	count     int
	emitted   int
	age       time.Duration
	note      string
}

// newRow returns the row of an Event with a number of emitted occurrences.
func newRow(l *lifecycle, emitted int, now time.Time) row {
	note := l.latest.Note
	if l.latest.LastNote != "" {
		note = l.latest.LastNote
	}
	return row{
		subject:   l.subject,
		namespace: l.latest.Namespace,
		state:     l.latest.State,
		count:     int(l.latest.Count),
		emitted:   emitted,
		age:       now.Sub(l.latest.First),
		note:      oneLine(note),
	}
}
