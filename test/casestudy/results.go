package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// results are the figures of all steps.
type results struct {
	Machine  string
	Programs []*moved
}

// moved is what eventsmigrate did to a program.
type moved struct {
	Module, Version string
	Packages        []string // the patterns
	Date            string
	Seconds         float64 // of the first run of eventsmigrate
	CPUSeconds      float64 // the same, with the go commands that it runs
	SecondSeconds   float64
	SecondChanged   int // files that the second run changed
	CallsMoved      int
	CallsLeft       int
	Files           int
	Inserted        int // lines
	Deleted         int
	Rules           []rule
	Left, Decide    []place
	Changed         []string // packages
	Compiled        int      // packages that were type-checked afterwards
	Broken          []string // packages that do not compile
	Before, After   tests
	Story           *story `json:",omitempty"`
}

// rule is a row of the report.
type rule struct {
	Name                string
	Moved, Left, Decide int
}

// place is a line of the report.
type place struct{ Place, Rule, Text string }

// tests are the results of the unit tests of the changed packages.
type tests struct {
	Packages, Passed, Skipped int
	Failed                    []string // package and name
}

// story compares the stock and the moved program at work.
type story struct {
	Date     string
	Duration time.Duration
	Stock    side
	Moved    side
	Finished *side `json:",omitempty"` // Moved, and what a person adds
}

// Sides returns what each version did: Stock, Moved, and perhaps Finished.
func (s *story) Sides() []*side {
	sides := []*side{&s.Stock, &s.Moved}
	if s.Finished != nil {
		sides = append(sides, s.Finished)
	}
	return sides
}

// side is what one version did.
type side struct {
	Events   int // objects on the server at the end
	Emitted  int // occurrences, by the log
	Recorded int // occurrences, by the counts on the server
	// RecordedBefore is Recorded just before SIGTERM.
	RecordedBefore int
	Related        int // Events with a related object
	Combined       int // Events with "(combined from similar events)"
	Requests       map[string]int
	Denied         int // requests for Events that RBAC denied
	RequestBytes   int
	Jobs           int // created by CronJobs
	JobsNamed      map[string]int
	Reasons        []reason
	CPUSeconds     float64
	MaxRSS         int64 // bytes
	Exit           string
	ExitSeconds    float64
}

// Lost returns how many occurrences did not reach the server.
func (s *side) Lost() int { return s.Emitted - s.Recorded }

// reason compares the occurrences of a reason for a kind of objects.
type reason struct {
	Kind, Reason              string
	Emitted, Recorded, Events int
	Related                   string // the kinds of the related objects
}

// of returns the results of a program, and adds them if necessary.
func (r *results) of(p program) *moved {
	for _, m := range r.Programs {
		if m.Module == p.Module {
			m.Version, m.Packages = p.Version, p.Packages
			return m
		}
	}
	m := &moved{Module: p.Module, Version: p.Version, Packages: p.Packages}
	r.Programs = append(r.Programs, m)
	return m
}

// readResults reads the results of earlier runs, if there are any.
func readResults[T any](name string) (*T, error) {
	r := new(T)
	data, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		return r, nil
	}
	if err == nil {
		err = json.Unmarshal(data, r)
	}
	if err != nil {
		return nil, fmt.Errorf("casestudy: results: %w", err)
	}
	return r, nil
}

func writeResults(name string, r any) error {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(r)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(name), 0o755)
	}
	if err == nil {
		err = os.WriteFile(name, b.Bytes(), 0o644)
	}
	if err != nil {
		return fmt.Errorf("casestudy: results: %w", err)
	}
	return nil
}

// machine describes this machine.
func machine() string {
	model := "unknown CPU"
	info, _ := os.ReadFile("/proc/cpuinfo") // only on Linux
	for line := range strings.Lines(string(info)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			model = strings.TrimSpace(value)
			break
		}
	}
	return fmt.Sprintf("%d cores of %s, %s/%s, %s", runtime.NumCPU(), model, runtime.GOOS, runtime.GOARCH, runtime.Version())
}
