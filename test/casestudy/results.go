package main

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	eventsv1 "k8s.io/api/events/v1"

	"github.com/eventseries/eventseries/query"
	"github.com/eventseries/eventseries/test/casestudy/recorders"
	"github.com/eventseries/eventseries/test/internal/chart"
)

// results are the figures of all cases.
type results struct {
	Cores   int // of the machine of the last run
	Version string
	Runs    []schedulerRun // in the order of the cases and recorders
}

// schedulerRun is the result of a case with a recorder. If a name does not say otherwise, it
// is about the Pods that no node fits, and their events with the reason FailedScheduling.
type schedulerRun struct {
	Case, Recorder string

	Occurrences int            // calls of the recorder
	Requests    map[string]int // by verb
	Running     eventTally     // just before the scheduler is stopped
	Stopped     eventTally     // after the scheduler has exited

	// The Pods that fit, and their events. If the scheduler exits while they bind, not
	// all of their events have the reason Scheduled.
	Batches                       []batch
	OtherOccurrences, OtherEvents int

	CPU  float64 // seconds of the process of the scheduler, without its start
	Exit float64 // seconds from SIGTERM to the exit of the scheduler
}

// eventTally is what the API server knows.
type eventTally struct {
	Events int `json:",omitempty"`
	Count  int
}

// batch is a number of Pods that are created as fast as possible.
type batch struct {
	Pods, Bound int
	Seconds     float64 // from the first create request until the last Pod was bound
}

// Sent returns the number of requests.
func (r schedulerRun) Sent() (n int) {
	for _, requests := range r.Requests {
		n += requests
	}
	return n
}

// Lost returns how many occurrences are in no Event.
func (r schedulerRun) Lost() int { return r.Occurrences - r.Stopped.Count }

// OtherLost returns how many events about Pods that fit are in no Event.
func (r schedulerRun) OtherLost() int { return r.OtherOccurrences - r.OtherEvents }

// Throughput returns the median of the bound Pods per second of the batches.
func (r schedulerRun) Throughput() float64 {
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

// CPUPerOccurrence returns the CPU of the scheduler per call of the recorder, in
// milliseconds.
func (r schedulerRun) CPUPerOccurrence() float64 {
	return r.CPU * 1000 / float64(r.Occurrences+r.OtherOccurrences)
}

// Losses returns the runs in which this recorder lost occurrences.
func (r *results) Losses() (all []schedulerRun) {
	for _, run := range r.Runs {
		if run.Recorder == recorders.Eventseries && run.Lost() > 0 {
			all = append(all, run)
		}
	}
	return all
}

// replace adds a run, and removes an earlier one of the same case and recorder.
func (r *results) replace(run schedulerRun) {
	r.Runs = append(slices.DeleteFunc(r.Runs, func(old schedulerRun) bool {
		return old.Case == run.Case && old.Recorder == run.Recorder
	}), run)
	position := func(run schedulerRun) int {
		return slices.IndexFunc(schedulerCases, func(c schedulerCase) bool { return c.Name == run.Case })
	}
	slices.SortFunc(r.Runs, func(a, b schedulerRun) int {
		return cmp.Or(
			cmp.Compare(position(a), position(b)),
			cmp.Compare(slices.Index(schedulerRecorders, a.Recorder), slices.Index(schedulerRecorders, b.Recorder)),
		)
	})
}

// measure sets the figures of the Events, from what the scheduler has counted, the audit log,
// and the Events just before SIGTERM and after it.
func (r *schedulerRun) measure(counts, audit []byte, before, after []eventsv1.Event) error {
	var emitted []recorders.Count
	if err := json.Unmarshal(counts, &emitted); err != nil {
		return err
	}
	for _, count := range emitted {
		switch {
		case strings.HasPrefix(count.Name, stuck):
			r.Occurrences += count.Count
		case strings.HasPrefix(count.Name, fitting):
			r.OtherOccurrences += count.Count
		}
	}
	r.Running = eventTally{Count: tally(before).Count}
	r.Stopped = tally(after)
	for i := range after {
		if strings.HasPrefix(after[i].Regarding.Name, fitting) {
			r.OtherEvents++
		}
	}
	r.Requests = make(map[string]int)
	for line := range bytes.Lines(audit) {
		var entry struct {
			Verb      string
			User      struct{ Username string }
			ObjectRef struct{ Resource, Name string }
		}
		if json.Unmarshal(line, &entry) != nil || entry.User.Username != schedulerUser.Name || entry.ObjectRef.Resource != "events" {
			continue
		}
		if name := entry.ObjectRef.Name; name == "" || strings.HasPrefix(name, stuck) { // a list has no name
			r.Requests[entry.Verb]++
		}
	}
	return nil
}

// tally counts the Events about Pods that no node fits, and their occurrences.
func tally(all []eventsv1.Event) (t eventTally) {
	for i := range all {
		if strings.HasPrefix(all[i].Regarding.Name, stuck) {
			t.Events++
			t.Count += int(query.FromEvent(&all[i], time.Now()).Count)
		}
	}
	return t
}

// readResults reads the results of earlier runs, if there are any.
func readResults(name string) (*results, error) {
	r := new(results)
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err == nil {
		err = json.Unmarshal(data, r)
	}
	if err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	return r, nil
}

func (r *results) write(name string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(data, '\n'), 0o644)
}

//go:embed scheduler.md.tmpl
var pageText string

// heading is the first line of the section.
const heading = "## kube-scheduler\n"

var pageTemplate = template.Must(template.New("scheduler.md").Funcs(template.FuncMap{
	"count":   chart.Number,
	"decimal": func(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) },
	"cents":   func(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) },
}).Parse(pageText))

// render returns a page with the section of the results in place of the former one.
func (r *results) render(page string) (string, error) {
	before, after, found := strings.Cut(page, heading)
	if !found {
		return "", fmt.Errorf("the page has no heading %q", heading)
	}
	var section bytes.Buffer
	if err := pageTemplate.Execute(&section, r); err != nil {
		return "", err
	}
	if i := strings.Index(after, "\n## "); i >= 0 {
		return before + section.String() + after[i:], nil
	}
	return before + section.String(), nil
}

func writePage(name string, r *results) error {
	page, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	text, err := r.render(string(page))
	if err != nil {
		return err
	}
	return os.WriteFile(name, []byte(text), 0o644)
}
