package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Names of the recorders, which are values of the flag --recorder of ./kube-scheduler.
const (
	clientGo = "client-go"
	ours     = "eventseries"
)

var recorders = []string{clientGo, ours}

// testCase is what the scheduler has to do.
type testCase struct {
	Name     string
	Pods     int // which no node fits
	Duration time.Duration
	// SameMessage changes the nodes in a way that does not change why a Pod does not fit.
	SameMessage bool
}

var cases = []testCase{
	{Name: "30 Pods, 60 s", Pods: 30, Duration: time.Minute},
	{Name: "30 Pods, 10 min", Pods: 30, Duration: 10 * time.Minute},
	{Name: "1,000 Pods, 60 s", Pods: 1000, Duration: time.Minute},
	{Name: "1,000 Pods, 10 min", Pods: 1000, Duration: 10 * time.Minute},
	{Name: "30 Pods, 60 s, same message", Pods: 30, Duration: time.Minute, SameMessage: true},
	{Name: "1,000 Pods, 60 s, same message", Pods: 1000, Duration: time.Minute, SameMessage: true},
}

// Result of a case with a recorder. If a name does not say otherwise, it is about the
// Pods that no node fits, and their events with the reason FailedScheduling.
type Result struct {
	Case, Recorder string

	Occurrences int            // calls of the recorder
	Requests    map[string]int // by verb
	Failed      map[string]int `json:",omitempty"` // by verb and status code
	Running     Tally          // just before the scheduler is stopped
	Stopped     Tally          // after the scheduler has exited

	// The Pods that fit, and their events. If the scheduler exits while they bind, not
	// all of their events have the reason Scheduled.
	Batches                                      []Batch
	OtherOccurrences, OtherRequests, OtherEvents int

	CPU  float64 // seconds of the process of the scheduler, without its start
	Exit float64 // seconds from SIGTERM to the exit of the scheduler
}

// Tally is what the API server knows.
type Tally struct{ Events, Count int }

// Batch is a number of Pods that the benchmark creates as fast as it can.
type Batch struct {
	Pods, Bound int
	Seconds     float64 // from the first create request until the last Pod was bound
}

// requests returns the number of requests.
func (r Result) requests() (n int) {
	for _, count := range r.Requests {
		n += count
	}
	return n
}

// lost returns how many occurrences are in no Event.
func (r Result) lost() int { return r.Occurrences - r.Stopped.Count }

// throughput returns the median of the bound Pods per second of the batches.
func (r Result) throughput() float64 {
	var rates []float64
	for _, b := range r.Batches {
		rates = append(rates, float64(b.Bound)/b.Seconds)
	}
	slices.Sort(rates)
	n := len(rates)
	if n == 0 {
		return 0
	}
	return (rates[(n-1)/2] + rates[n/2]) / 2
}

// cpuPerOccurrence returns the CPU of the scheduler per call of the recorder, in
// milliseconds.
func (r Result) cpuPerOccurrence() float64 {
	return r.CPU * 1000 / float64(r.Occurrences+r.OtherOccurrences)
}

// Results are those of all cases, in the order of the cases and recorders.
type Results struct {
	Cores int // of the machine of the last run
	Runs  []Result
}

// replace adds results, and removes earlier ones of the same cases and recorders.
func (r *Results) replace(runs []Result) {
	for _, run := range runs {
		r.Runs = slices.DeleteFunc(r.Runs, func(old Result) bool { return old.Case == run.Case && old.Recorder == run.Recorder })
		r.Runs = append(r.Runs, run)
	}
	position := func(run Result) int {
		return slices.IndexFunc(cases, func(c testCase) bool { return c.Name == run.Case })
	}
	slices.SortStableFunc(r.Runs, func(a, b Result) int {
		return cmp.Or(cmp.Compare(position(a), position(b)), cmp.Compare(a.Recorder, b.Recorder))
	})
}

// readResults reads results from a file. A file that does not exist has none.
func readResults(path string) (*Results, error) {
	results := new(Results)
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return results, nil
	}
	if err == nil {
		err = json.Unmarshal(content, results)
	}
	if err != nil {
		return nil, fmt.Errorf("scheduler: results: %w", err)
	}
	return results, nil
}

func (r *Results) write(path string) error {
	content, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o755)
	}
	if err == nil {
		err = os.WriteFile(path, append(content, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("scheduler: results: %w", err)
	}
	return nil
}
