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

// When and how often a list shows progress.
const (
	progressDelay = 500 * time.Millisecond
	progressEvery = 100 * time.Millisecond
)

// progress shows on a line of a terminal how far a list is.
type progress struct {
	w        io.Writer
	terminal bool
	clock    clock.PassiveClock
	next     time.Time
	shown    bool
}

func newProgress(w io.Writer, c clock.PassiveClock) *progress {
	return &progress{w: w, terminal: terminal.Of(w, terminal.Auto).Is, clock: c, next: c.Now().Add(progressDelay)}
}

func (p *progress) update(now query.Progress) {
	if now.Done {
		p.clear()
		return
	}
	t := p.clock.Now()
	if !p.terminal || t.Before(p.next) {
		return
	}
	p.next = t.Add(progressEvery)
	line := "Reading events: " + text.Count(int64(now.Events))
	if now.Remaining > 0 {
		line += " of about " + text.Count(int64(now.Events)+now.Remaining)
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
