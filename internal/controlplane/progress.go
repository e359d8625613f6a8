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
	patience       = 3 * time.Second // no report before that, unless the build compiles dependencies
	lineWidth      = 79              // fits every common terminal
)

// announcement returns the line that precedes a long build of the program in dir.
func announcement(dir string) string {
	if dir == moduleDir {
		return "controlplane: compiling a real kube-apiserver and etcd; the first build takes 3 to 7 minutes on 2 cores"
	}
	return "controlplane: compiling " + dir + "; the first build takes a minute or two on 2 cores"
}

// repository is the import path of the repository. Its packages compile in seconds.
const repository = "github.com/eventseries/eventseries/"

// progress reports the progress of a build from the output of "go build -v". It is
// silent for patience, unless the build downloads or compiles something outside of the
// repository. Its methods are safe for concurrent use.
type progress struct {
	w        io.Writer
	terminal bool
	dir      string // of the program that the go command compiles last, and then links
	start    time.Time
	now      func() time.Time

	mu        sync.Mutex
	announced bool
	drawn     bool // there is a line to clear on a terminal
	linking   bool
	downloads int
	packages  int
	total     int    // number of packages, cached ones included; 0 if unknown
	latest    string // module or package
}

func newProgress(w io.Writer, terminal bool, dir string) *progress {
	return &progress{w: w, terminal: terminal, dir: dir, start: time.Now(), now: time.Now}
}

// line processes one line of the go command's output. It returns false if the line
// names neither a download nor a package, and so is probably an error message.
func (p *progress) line(s string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	module, download := strings.CutPrefix(s, "go: downloading ")
	switch {
	case download:
		p.downloads++
		p.latest = module
	case strings.HasPrefix(s, repository) && !strings.ContainsAny(s, " \t:#"):
		p.packages++
		p.linking = p.linking || s == repository+p.dir
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
		fmt.Fprintln(p.w, announcement(p.dir))
		p.draw()
	}
	return true
}

// compiling reports whether the build has compiled a package outside of the repository.
// The downloads are complete then.
func (p *progress) compiling() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.announced && p.packages > 0
}

// setTotal sets the number of packages, cached ones included.
func (p *progress) setTotal(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total = n
}

// run redraws the report until ctx ends.
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

// draw writes the status. The caller holds mu.
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

// status describes the progress in one line. The caller holds mu.
func (p *progress) status() string {
	elapsed := p.now().Sub(p.start).Truncate(time.Second)
	switch {
	case p.linking:
		return fmt.Sprintf("  %v: %s compiled, linking", elapsed, plural(p.packages, "package"))
	case p.packages+p.downloads == 0:
		return fmt.Sprintf("  %v: checking what to compile", elapsed)
	case p.packages == 0:
		return fmt.Sprintf("  %v: %s downloaded, latest %s", elapsed, plural(p.downloads, "module"), p.latest)
	case p.total == 0:
		return fmt.Sprintf("  %v: %s compiled, latest %s", elapsed, plural(p.packages, "package"), p.latest)
	default:
		// The go command does not print packages that are in the build cache.
		return fmt.Sprintf("  %v: %d of at most %d packages compiled, latest %s", elapsed, p.packages, p.total, p.latest)
	}
}

// plural formats a number of things.
func plural(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// end completes the report.
func (p *progress) end(ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.terminal && p.drawn {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
	if !p.announced {
		return
	}
	outcome := "build completed"
	if !ok {
		outcome = "build failed"
	}
	fmt.Fprintf(p.w, "controlplane: %s after %v\n", outcome, p.now().Sub(p.start).Truncate(time.Second))
}

// isTerminal reports whether w is a terminal on which a line can be redrawn.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
