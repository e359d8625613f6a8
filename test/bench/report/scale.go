package main

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/eventseries/eventseries/test/bench"
	"github.com/eventseries/eventseries/test/internal/chart"
)

//go:embed scale.md.tmpl
var scaleText string

var scaleTemplate = template.Must(template.New("scale.md").Funcs(template.FuncMap{
	"count":    chart.Number,
	"size":     size,
	"time":     func(d time.Duration) string { return nanoseconds(float64(d)) },
	"times":    times,
	"duration": func(d time.Duration) string { return d.Round(time.Second).String() },
	"rate":     func(f bench.Fleet) string { return fmt.Sprintf("%.1f", float64(f.Total())/time.Hour.Seconds()) },
	"cores":    func(f bench.Fleet) string { return fmt.Sprintf("%.1f", f.CPU.Hours()) },
	"percent":  func(part, of int) string { return fmt.Sprintf("%.0f %%", 100*float64(part)/float64(of)) },
	"kinds": func(requests map[string]int) string {
		var all []string
		for _, kind := range slices.Sorted(maps.Keys(requests)) {
			all = append(all, kind+" "+chart.Number(requests[kind]))
		}
		return strings.Join(all, ", ")
	},
	"about": func(story string) string { return fleetStories[story] },
}).Parse(scaleText))

// fleetStories say what happens in the stories of the large cluster.
var fleetStories = map[string]string{
	"Agents start": "Two agents start on each node within a minute, as after an upgrade of two DaemonSets. Each reconciles its Node every ten minutes. One of a " +
		"hundred fails every ten seconds.",
	"Rollouts": "A tenth of all Pods are replaced: Deployments of 50 Pods, which begin within half an hour. Each replaces a Pod every two seconds.",
	"Crash loops": "One of a hundred Pods crashes in a loop, with a back-off from 10 seconds to 5 minutes: Pulled, Created, and Started for each restart, and " +
		"BackOff about once per minute. The kubelet writes the status of the Pod each time, so its `resourceVersion` changes.",
	"CronJobs": "A CronJob for each 25 nodes runs every minute, in the first 200 milliseconds of it. Each Job has a Pod.",
	"Failing reconciliations": "Something that all 200 controllers need breaks within a minute. Each of them retries 50 objects, with the back-off of `workqueue` " +
		"from 10 milliseconds to 1,000 seconds.",
	"A zone fails": "A third of all nodes fail within 40 seconds. Each of their Pods gets NodeNotReady, and is evicted after 5 to 15 minutes. A new Pod does not fit " +
		"anywhere for one to five tries, and then starts on another node.",
	"The control plane restarts": "The crash loops, and no request reaches the API server from minute 20 to minute 22.",
	"All kubelets restart": "The crash loops, and each kubelet restarts once between minute 10 and minute 40. It ends in order, with `Shutdown`, and emits five " +
		"events about its Node.",
}

// fleetStory are the results of a story, with those of this recorder first.
type fleetStory struct {
	Name string
	Rows []bench.Fleet
}

// Goals returns which goals hold. Where a peer has as few Events, there cannot be fewer: each
// series is one.
func (s fleetStory) Goals() (all []string) {
	ours := s.Rows[0]
	most := func(cost func(*bench.Fleet) int64) int { // compared with the better peer
		return cmp.Compare(cost(&ours), min(cost(&s.Rows[1]), cost(&s.Rows[2])))
	}
	events := most(func(f *bench.Fleet) int64 { return int64(f.Events) })
	for _, holds := range []bool{
		ours.Lost() == 0,
		most(func(f *bench.Fleet) int64 { return int64(f.Total()) }) < 0,
		events < 0,
		most(func(f *bench.Fleet) int64 { return f.Written }) < 0,
		ours.Ratio() <= 3 || ours.Busiest <= ours.Emitted,
	} {
		goal := "**no**"
		if holds {
			goal = "yes"
		}
		all = append(all, goal)
	}
	if events == 0 {
		all[2] = "equal"
	}
	return all
}

// storiesOf groups results by their stories.
func storiesOf(r *bench.Results) (all []fleetStory) {
	for _, f := range r.Fleet {
		if len(all) == 0 || all[len(all)-1].Name != f.Story {
			all = append(all, fleetStory{Name: f.Story})
		}
		all[len(all)-1].Rows = append(all[len(all)-1].Rows, f)
	}
	return all
}

// scale returns the text of scale.md and its picture, or nothing if there are no results.
func scale(r *bench.Results) (map[string][]byte, error) {
	stories := storiesOf(r)
	if len(stories) == 0 {
		return nil, nil
	}
	const clusters = 10
	var paper []bench.Fleet
	for i := range stories[0].Rows {
		sum := bench.Fleet{Recorder: stories[0].Rows[i].Recorder, Requests: make(map[string]int)}
		for _, s := range stories {
			f := s.Rows[i]
			sum.Requests["all"] += clusters * f.Total()
			sum.Events += clusters * f.Events
			sum.Written += clusters * f.Written
			sum.CPU += clusters * f.CPU
			sum.Heap += clusters * f.Heap
			sum.Occurrences += clusters * f.Occurrences
			sum.Counted += clusters * f.Counted
			sum.Dropped += clusters * f.Dropped
		}
		paper = append(paper, sum)
	}
	var took time.Duration
	for _, f := range r.Fleet {
		took += f.Took
	}
	var b bytes.Buffer
	err := scaleTemplate.Execute(&b, map[string]any{
		"R": r, "Run": r.Runs["fleet"], "Stories": stories, "Nodes": r.Fleet[0].Nodes, "Pods": r.Fleet[0].Nodes * bench.PodsPerNode, "Paper": paper, "Took": took,
	})
	if err != nil {
		return nil, err
	}
	var plots []*plot.Plot
	for _, s := range stories {
		p := chart.New(s.Name, "minutes", "requests per minute")
		p.X.Tick.Marker = quarters
		var lines []chart.Line
		for _, f := range slices.Backward(s.Rows) {
			line := chart.Line{Name: f.Recorder, Color: colors[f.Recorder], Step: true}
			for minute, n := range f.Minutes {
				line.Points = append(line.Points, plotter.XY{X: float64(minute), Y: float64(n)})
			}
			lines = append(lines, line)
		}
		if err := chart.Add(p, lines...); err != nil {
			return nil, fmt.Errorf("picture of %s: %w", s.Name, err)
		}
		plots = append(plots, p)
	}
	return map[string][]byte{"scale.md": b.Bytes(), "scale/requests.svg": chart.SVG(1100, 1000, slices.Collect(slices.Chunk(plots, 2))...)}, nil
}
