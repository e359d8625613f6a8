package controlplane

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	redrawInterval = 500 * time.Millisecond
	plainInterval  = 10 * time.Second
	patience       = 3 * time.Second
	lineWidth      = 79 // a terminal narrower than that is not worth asking for its width
)

// announcement explains the wait before it begins.
const announcement = "controlplane: compiling a real kube-apiserver and etcd; this happens once and takes 3 to 7 minutes on 2 cores"

// mainPackage is the import path of the program: the last package to be
// compiled, after which it is linked.
const mainPackage = "github.com/eventseries/eventseries/" + moduleDir

// progress turns the output of "go build -v" into a report for people. Until
// something other than the program itself is downloaded or compiled, it says
// nothing for patience, and then only what it is waiting for. All methods may be
// called from several goroutines.
type progress struct {
	w        io.Writer
	terminal bool
	start    time.Time
	now      func() time.Time

	mu        sync.Mutex
	announced bool
	drawn     bool // a line that end has to clear on a terminal
	linking   bool
	downloads int
	packages  int
	total     int    // of packages, those in the build cache included; 0: not known
	latest    string // module or package
}

func newProgress(w io.Writer, terminal bool) *progress {
	return &progress{w: w, terminal: terminal, start: time.Now(), now: time.Now}
}

// line takes a line of the go command's output. It reports false for one that
// is neither a download nor a package, and so most likely an error message.
func (p *progress) line(s string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	module, download := strings.CutPrefix(s, "go: downloading ")
	switch {
	case download:
		p.downloads++
		p.latest = module
	case s == mainPackage:
		p.packages++
		p.linking = true
		return true
	case s == "" || strings.ContainsAny(s, " \t:#"):
		return false
	default:
		p.packages++
		p.latest = s
	}
	if !p.announced {
		p.announced = true
		if p.terminal && p.drawn {
			fmt.Fprint(p.w, "\r\x1b[K")
		}
		fmt.Fprintln(p.w, announcement)
		p.draw()
	}
	return true
}

// compiling reports whether downloads are over and packages other than the
// program itself are compiled.
func (p *progress) compiling() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.announced && p.packages > 0
}

// setTotal says how many packages the program is made of.
func (p *progress) setTotal(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total = n
}

// run draws until ctx ends.
func (p *progress) run(ctx context.Context) {
	interval := plainInterval
	if p.terminal {
		interval = redrawInterval
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			p.tick()
		}
	}
}

func (p *progress) tick() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.announced || p.now().Sub(p.start) >= patience {
		p.draw()
	}
}

// draw writes the state of things. The caller holds mu.
func (p *progress) draw() {
	p.drawn = true
	status := p.status()
	if !p.terminal {
		fmt.Fprintln(p.w, status)
		return
	}
	if len(status) > lineWidth {
		status = status[:lineWidth]
	}
	fmt.Fprintf(p.w, "\r%s\x1b[K", status)
}

// status describes the state of things in a line. The caller holds mu.
func (p *progress) status() string {
	elapsed := p.now().Sub(p.start).Truncate(time.Second)
	switch {
	case p.linking:
		return fmt.Sprintf("  %v: %d packages compiled, linking the control plane", elapsed, p.packages)
	case p.packages+p.downloads == 0:
		return fmt.Sprintf("  %v: looking what there is to compile", elapsed)
	case p.packages == 0:
		return fmt.Sprintf("  %v: %d modules downloading, latest %s", elapsed, p.downloads, p.latest)
	case p.total == 0:
		return fmt.Sprintf("  %v: %d packages compiled, latest %s", elapsed, p.packages, p.latest)
	default:
		// Those that are in the build cache already are in the total, but are
		// not reported by the go command.
		return fmt.Sprintf("  %v: %d of at most %d packages compiled, latest %s", elapsed, p.packages, p.total, p.latest)
	}
}

// end finishes the report.
func (p *progress) end(ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.terminal && p.drawn {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
	if !p.announced {
		return
	}
	outcome := "compiled"
	if !ok {
		outcome = "not compiled: gave up"
	}
	fmt.Fprintf(p.w, "controlplane: %s after %v\n", outcome, p.now().Sub(p.start).Truncate(time.Second))
}

// isTerminal reports whether w is a terminal that can redraw a line.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
