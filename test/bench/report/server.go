package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/eventseries/eventseries/test/bench"
	"github.com/eventseries/eventseries/test/internal/chart"
)

// costsOfStory are the costs of a story to the server, with each recorder.
type costsOfStory struct {
	Name                 string
	Size                 int
	Ours, Events, Record *bench.Server
}

// Peers returns the costs with client-go's recorders.
func (c costsOfStory) Peers() []*bench.Server { return []*bench.Server{c.Events, c.Record} }

// storyCosts returns the stories that all recorders were told, in the order of the
// results.
func storyCosts(r *bench.Results) []costsOfStory {
	var all []costsOfStory
	for i := range r.Server {
		s := &r.Server[i]
		at := slices.IndexFunc(all, func(c costsOfStory) bool { return c.Name == s.Story })
		if at < 0 {
			at, all = len(all), append(all, costsOfStory{Name: s.Story, Size: s.Size})
		}
		switch s.Recorder {
		case bench.Ours:
			all[at].Ours = s
		case bench.ToolsNew:
			all[at].Events = s
		case bench.ToolsOld:
			all[at].Record = s
		}
	}
	return slices.DeleteFunc(all, func(c costsOfStory) bool { return c.Ours == nil || c.Events == nil || c.Record == nil })
}

// measure is a measured quantity of a story.
type measure struct {
	Name   string
	of     func(s *bench.Server) float64
	format func(v float64) string
}

// measures are the rows of the tables. The first three have goals.
var measures = []measure{
	{"CPU of the server", func(s *bench.Server) float64 { return float64(s.Used.CPU) }, nanoseconds},
	{"requests", func(s *bench.Server) float64 { return float64(s.Total().Requests) }, whole},
	{"bytes written to etcd", func(s *bench.Server) float64 { return s.Used.PutBytes }, bytesOf},
	{"creates", requestsOf("create"), whole},
	{"patches", requestsOf("patch"), whole},
	{"lists", requestsOf("list"), whole},
	{"bytes of lists", func(s *bench.Server) float64 { return float64(s.Verbs["list"].Received) }, bytesOf},
	{"bytes of requests", func(s *bench.Server) float64 { return float64(s.Total().Sent) }, bytesOf},
	{"bytes of responses", func(s *bench.Server) float64 { return float64(s.Total().Received) }, bytesOf},
	{"writes to etcd", func(s *bench.Server) float64 { return s.Used.Puts }, whole},
	{"write-ahead log", func(s *bench.Server) float64 { return s.Used.WAL }, bytesOf},
	{"database with all versions", func(s *bench.Server) float64 { return s.Used.Database }, bytesOf},
	{"database, compacted", func(s *bench.Server) float64 { return s.Compacted }, bytesOf},
	{"Events", func(s *bench.Server) float64 { return float64(s.Events) }, whole},
	{"bytes of Events", func(s *bench.Server) float64 { return float64(s.Stored) }, bytesOf},
	{"bytes per Event", perEvent, whole},
	{"occurrences that the Events account for", counted, percent},
}

func requestsOf(verb string) func(s *bench.Server) float64 {
	return func(s *bench.Server) float64 { return float64(s.Verbs[verb].Requests) }
}

func perEvent(s *bench.Server) float64 { return float64(s.Stored) / float64(s.Events) }
func counted(s *bench.Server) float64  { return float64(s.Counted) / float64(s.Occurrences) }

func whole(v float64) string   { return chart.Number(math.Round(v)) }
func bytesOf(v float64) string { return withUnit(v, "B", "kB", "MB", "GB") }
func percent(v float64) string { return fmt.Sprintf("%.1f %%", 100*v) }

// Of returns the measured value with a recorder.
func (m measure) Of(s *bench.Server) string { return m.format(m.of(s)) }

// Ratio compares a recorder with ours.
func (m measure) Ratio(s, ours *bench.Server) string {
	switch a, b := m.of(s), m.of(ours); {
	case a <= 0 || b <= 0: // none, or less than the noise
		return "–"
	default:
		return times(a / b)
	}
}

// serverGoals adds the goals for the server.
func serverGoals(r *bench.Results, add func(holds bool, what, measured string, args ...any), because func(reason string, holds bool, what, measured string, args ...any)) {
	var growth []string
	grown := 0.0
	for _, c := range storyCosts(r) {
		holds := true
		var measured []string
		for _, m := range measures[:3] {
			better := slices.MinFunc(c.Peers(), func(a, b *bench.Server) int { return cmp.Compare(m.of(a), m.of(b)) })
			ratio := m.of(c.Ours) / m.of(better)
			text := fmt.Sprintf("%s %s", m.Name, times(ratio))
			if ratio >= 1 {
				holds = false
				text += " of `" + better.Recorder + "`"
				if share := counted(better); share < 1 {
					text += ", whose Events account for " + percent(share) + " of the occurrences"
				}
			}
			measured = append(measured, text)
		}
		because(reasons[c.Name], holds, "The server, "+c.Name+": less CPU, fewer requests, and fewer bytes written to etcd than the better peer", "%s", strings.Join(measured, "; "))
		if slices.Contains(grownStories, c.Name) {
			grows := float64(c.Ours.Stored)/float64(c.Record.Stored) - 1
			grown = max(grown, grows)
			growth = append(growth, fmt.Sprintf("%s: %+.0f %%", c.Name, 100*grows))
		}
	}
	if len(growth) > 0 {
		add(grown <= 0.56, "Event data in etcd: at most 56 % more than with `tools/record`", "%s", strings.Join(growth, "; "))
	}
}

// reasons say why a story does not meet its goal.
var reasons = map[string]string{
	"Hot loop": "if nothing updates the objects, `tools/events` merges as much. It stores neither a state nor a heartbeat, lists nothing, and sends " +
		"all heartbeats at once. Those of this recorder are spread, and some are due in the quiet minutes before the end",
	"Flood": "no recorder can merge singletons, and this recorder lists once",
	"Failing reconciliations": "a patch costs the server more than a create. `tools/events` creates three to four times as many Events, " +
		"of which none says that the loop goes on",
}

// grownStories are those of the proposal: Pods that restart, and Pods that start.
var grownStories = []string{"CrashLoopBackOff", "Rollout"}

// Growth compares the stored Events with those of tools/record.
func (c costsOfStory) Growth() []string {
	if !slices.Contains(grownStories, c.Name) {
		return nil
	}
	more := func(of func(s *bench.Server) float64) string {
		return fmt.Sprintf("%+.0f %%", 100*(of(c.Ours)/of(c.Record)-1))
	}
	return []string{
		more(perEvent),
		more(func(s *bench.Server) float64 { return float64(s.Events) }),
		more(func(s *bench.Server) float64 { return float64(s.Stored) }),
	}
}

// storyMinutes is the length of a story and the quiet time after it.
const storyMinutes = 80

// serverPictures show the requests of each story so far.
func serverPictures(r *bench.Results) ([][]*plot.Plot, error) {
	var plots []*plot.Plot
	for _, c := range storyCosts(r) {
		p := chart.New(c.Name, "minutes", "requests so far (logarithmic)")
		chart.Log(&p.Y)
		p.X.Tick.Marker = quarters
		var lines []chart.Line
		for _, s := range slices.SortedStableFunc(slices.Values([]*bench.Server{c.Record, c.Events, c.Ours}), func(a, b *bench.Server) int { return b.Total().Requests - a.Total().Requests }) {
			line := chart.Line{Name: s.Recorder + ": " + chart.Number(s.Total().Requests), Color: colors[s.Recorder]}
			sum := 0
			for minute := range storyMinutes {
				if minute < len(s.Minutes) { // it ends with the last request
					sum += s.Minutes[minute]
				}
				line.Points = append(line.Points, plotter.XY{X: float64(minute + 1), Y: float64(max(sum, 1))})
			}
			lines = append(lines, line)
		}
		if err := chart.Add(p, lines...); err != nil {
			return nil, fmt.Errorf("picture of story %q: %w", c.Name, err)
		}
		plots = append(plots, p)
	}
	return slices.Collect(slices.Chunk(plots, 2)), nil
}

// about describes a story with objects of the given number.
func about(name string, size int) string {
	n := chart.Number(size)
	switch name {
	case "Hot loop":
		return n + " objects, each with the same event every 5 seconds. The controller does not write to the objects."
	case "Hot loop with updates":
		return n + " objects, each with the same event every 5 seconds. The controller updates the status of the object each time, " +
			"which changes the resourceVersion. For `tools/events` that is a different event."
	case "CrashLoopBackOff":
		return n + " Pods on ten nodes, whose container exits after 5 seconds. The kubelet restarts it with a back-off from 10 seconds to " +
			"5 minutes, as in Kubernetes 1.36: Pulled, Created, and Started for each restart, and BackOff for each sync in between, about " +
			"once per minute."
	case "CronJobs":
		return n + " CronJobs with a Job per minute: SuccessfulCreate, SawCompletedJob, and SuccessfulDelete about the CronJob, SuccessfulCreate " +
			"and Completed about the Job. The events about Jobs are singletons, so every recorder creates an Event for each."
	case "Rollout":
		return "A Deployment replaces " + n + " Pods in 40 steps of 15 seconds. Each new Pod has Scheduled, Pulling, Pulled, Created, and Started, each old " +
			"one Killing, each step two ScalingReplicaSet, and the ReplicaSets have a SuccessfulCreate or SuccessfulDelete for each Pod. " +
			"The events about Pods are singletons, so every recorder creates an Event for each."
	case "Flood":
		return n + " events about as many objects, 100 per second. None recurs, so there is nothing to merge: every recorder creates an Event for each, " +
			"and this recorder also lists once."
	case "Failing reconciliations":
		return n + " objects whose reconciliation always fails. The controller retries with the default back-off of `workqueue`, up to 1,000 seconds."
	case "Resync":
		return n + " objects that the controller reconciles every 10 minutes, each time with the same event."
	default:
		return ""
	}
}
