package main

import (
	"cmp"
	_ "embed"
	"slices"
	"strconv"
	"text/template"

	"github.com/eventseries/eventseries/test/casestudy/recorders"
	"github.com/eventseries/eventseries/test/internal/chart"
)

// schedulerResults are the figures of kube-scheduler.
type schedulerResults struct {
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
func (r schedulerRun) Sent() int { return sum(r.Requests) }

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

// Bound describes how many Pods of the batches were bound.
func (r schedulerRun) Bound() string {
	var all, pods int
	for _, b := range r.Batches {
		all, pods = all+b.Pods, pods+b.Bound
	}
	return chart.Number(pods) + " of " + chart.Number(all)
}

// CPUPerOccurrence returns the CPU of the scheduler per call of the recorder, in
// milliseconds.
func (r schedulerRun) CPUPerOccurrence() float64 {
	return r.CPU * 1000 / float64(r.Occurrences+r.OtherOccurrences)
}

// Losses returns the runs in which this recorder lost occurrences.
func (r *schedulerResults) Losses() (all []schedulerRun) {
	for _, run := range r.Runs {
		if run.Recorder == recorders.Eventseries && run.Lost() > 0 {
			all = append(all, run)
		}
	}
	return all
}

// replace adds a run, and removes an earlier one of the same case and recorder.
func (r *schedulerResults) replace(run schedulerRun) {
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

//go:embed scheduler.md.tmpl
var schedulerText string

const schedulerHeading = "## kube-scheduler"

var schedulerTemplate = template.Must(template.New("scheduler.md").Funcs(template.FuncMap{
	"count":   chart.Number,
	"decimal": func(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) },
	"cents":   func(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) },
}).Parse(schedulerText))
