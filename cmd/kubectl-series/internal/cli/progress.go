package cli

import (
	"fmt"
	"io"
	"time"

	"k8s.io/utils/clock"

	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/terminal"
	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/text"
	"github.com/eventseries/eventseries/query"
)

// Delays before a list shows progress. A line in a file stays, so it takes longer there.
const (
	terminalDelay = 500 * time.Millisecond
	terminalEvery = 100 * time.Millisecond
	fileDelay     = 5 * time.Second
	fileEvery     = 10 * time.Second
)

// progress shows how far a list is: on one line in a terminal, or as a line now and then.
type progress struct {
	w        io.Writer
	terminal bool
	clock    clock.PassiveClock
	next     time.Time
	shown    bool
}

func newProgress(w io.Writer, c clock.PassiveClock) *progress {
	p := &progress{w: w, terminal: terminal.Of(w, terminal.Auto).Is, clock: c}
	p.next = c.Now().Add(p.choose(terminalDelay, fileDelay))
	return p
}

func (p *progress) choose(inTerminal, inFile time.Duration) time.Duration {
	if p.terminal {
		return inTerminal
	}
	return inFile
}

func (p *progress) update(now query.Progress) {
	if now.Done {
		p.clear()
		return
	}
	t := p.clock.Now()
	if t.Before(p.next) {
		return
	}
	p.next = t.Add(p.choose(terminalEvery, fileEvery))
	line := "Reading events: " + text.Count(int64(now.Events))
	if now.Remaining > 0 {
		line += " of about " + text.Count(int64(now.Events)+now.Remaining)
	}
	if !p.terminal {
		fmt.Fprintln(p.w, line)
		return
	}
	p.shown = true
	fmt.Fprintf(p.w, "\r\x1b[K%s", line)
}

// clear removes the line from the terminal.
func (p *progress) clear() {
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.shown = false
	}
}
