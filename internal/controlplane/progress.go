package controlplane

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"
)

// reportInterval is the time between two lines about a build.
const reportInterval = 10 * time.Second

// all is the number of packages of the control plane, of which a build compiles those that are
// not in the build cache. They take about the same time each.
const all = 2050

// progress is the standard error of "go build -v". It writes a line about the progress when
// the go command prints something, at most every reportInterval. It is silent if the build
// compiles only packages of the repository, which takes seconds.
type progress struct {
	w        io.Writer
	dir      string // of the first program
	now      func() time.Time
	start    time.Time
	next     time.Time // of the next line; zero before the first one
	packages int
	// compiling is the time of the first package: before it, the go command downloads.
	compiling time.Time
	partial   []byte // the beginning of a line
	errors    strings.Builder
}

func (p *progress) Write(text []byte) (int, error) {
	p.partial = append(p.partial, text...)
	for {
		line, rest, ok := bytes.Cut(p.partial, []byte("\n"))
		if !ok {
			return len(text), nil
		}
		p.line(string(line))
		p.partial = rest
	}
}

// line reports a line of the go command. What names neither a module nor a package is an
// error message.
func (p *progress) line(s string) {
	if !strings.HasPrefix(s, "go: downloading ") {
		if s == "" || strings.ContainsAny(s, " \t:#") {
			fmt.Fprintln(&p.errors, s)
			return
		}
		if p.packages++; p.packages == 1 {
			p.compiling = p.now()
		}
	}
	if p.next.IsZero() {
		if strings.HasPrefix(s, "github.com/eventseries/eventseries/") {
			return
		}
		what := p.dir + "; the first build takes a minute or two on 2 cores"
		if p.dir == moduleDir {
			what = "a real kube-apiserver and etcd; the first build takes 10 to 20 minutes of CPU, and 3 GB of disk"
		}
		fmt.Fprintf(p.w, "controlplane: compiling %s\n", what)
	}
	if now := p.now(); !now.Before(p.next) {
		p.next = now.Add(reportInterval)
		fmt.Fprintf(p.w, "  %v: %d packages compiled%s, latest: %s\n", p.elapsed(), p.packages, p.left(), s)
	}
}

// left estimates how long the build takes from now on, if nothing of it is in the build cache.
func (p *progress) left() string {
	if p.dir != moduleDir || p.packages < all/100 || p.packages >= all {
		return ""
	}
	left := p.now().Sub(p.compiling) / time.Duration(p.packages) * time.Duration(all-p.packages)
	return fmt.Sprintf(" of at most %d, at most %v left", all, left.Round(time.Minute)+time.Minute)
}

func (p *progress) elapsed() time.Duration { return p.now().Sub(p.start).Truncate(time.Second) }

// end completes the report. It returns the error of the go command with its messages.
func (p *progress) end(err error) error {
	outcome := "completed"
	if err != nil {
		outcome = "failed"
		err = fmt.Errorf("%w\n%s%s", err, &p.errors, p.partial)
	}
	if !p.next.IsZero() {
		fmt.Fprintf(p.w, "controlplane: build %s after %v\n", outcome, p.elapsed())
	}
	return err
}
