package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/eventseries/eventseries/query"
	"github.com/eventseries/eventseries/series"
	"github.com/eventseries/eventseries/test/casestudy/recorders"
)

// fluxResults are the figures of kustomize-controller.
type fluxResults struct {
	Machine, Date string
	fluxSetup
	Runs []*fluxRun
}

// fluxSetup is what all runs have in common.
type fluxSetup struct {
	Version         string
	Scale           int           // an hour takes an hour divided by this
	Interval, Retry time.Duration // of the Kustomizations, before they are scaled
	Kustomizations  int
}

// fluxRun is what the program did with a recorder.
type fluxRun struct {
	Recorder     string
	Groups       []*fluxGroup
	Lists        int // requests that belong to no group
	Posts        int // to the webhook
	RequestBytes int // of the requests that write Events
	StoredBytes  int // of the Events at the end
	ServerCPU    float64
	CPU          float64
	MaxRSS       int64   // bytes
	Warmup       float64 // seconds until each Kustomization has been reconciled once
	Exit         float64 // seconds
}

// fluxGroup is a group of Kustomizations.
type fluxGroup struct {
	Name                     string // the beginning of their names
	Kustomizations           int
	Emitted                  int
	Recorded, RecordedBefore int // occurrences in Events at the end, and just before SIGTERM
	Events, Ongoing          int // at the end
	FewestEvents, MostEvents int // of a Kustomization
	Exact                    int // Kustomizations whose occurrences are all counted
	Requests                 map[string]int
	Example                  fluxExample
}

// fluxExample is what a user sees of one Kustomization just before SIGTERM.
type fluxExample struct {
	Name    string
	Emitted int         // until the exit
	Events  []fluxEvent // the latest first
}

// fluxEvent is what an Event says.
type fluxEvent struct {
	Reason string
	State  string // that the Event says
	Count  int
	Note   string
}

// measureFlux collects the results of a run.
func (c *cluster) measureFlux(ctx context.Context, counts string, run *fluxRun) error {
	list, err := c.clients.EventsV1().Events(shop).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	metrics, err := c.clients.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return err
	}
	if run.RequestBytes, err = requestBytes(metrics); err != nil {
		return err
	}
	audit, err := os.ReadFile(filepath.Join(c.dir, "audit.log"))
	if err != nil {
		return err
	}
	content, err := os.ReadFile(counts)
	if err != nil {
		return err
	}
	var emitted []recorders.Count
	if err := json.Unmarshal(content, &emitted); err != nil {
		return err
	}
	if usage, ok := c.program.ProcessState.SysUsage().(*syscall.Rusage); ok {
		run.MaxRSS = usage.Maxrss << 10 // kB on Linux
	}
	// The API server stores Events of both groups as those of the core group.
	stored, err := c.clients.CoreV1().Events(shop).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range stored.Items {
		run.StoredBytes += stored.Items[i].Size()
	}
	run.compare(emitted, c.before, list.Items, audit, c.listed, filepath.Join(c.dir, "tmp"))
	return nil
}

// compare compares what was emitted with the Events just before SIGTERM and at the end,
// and counts the requests. tmp is the directory for the temporary files of the program.
func (r *fluxRun) compare(emitted []recorders.Count, before, after []eventsv1.Event, audit []byte, listed time.Time, tmp string) {
	type tally struct{ emitted, recorded, events int }
	groups, byName := map[string]*fluxGroup{}, map[string]*tally{}
	for _, name := range fluxGroups {
		groups[name] = &fluxGroup{Name: name, Requests: map[string]int{}}
		r.Groups = append(r.Groups, groups[name])
	}
	for _, count := range emitted {
		group := groups[groupOf(count.Name)]
		group.Emitted += count.Count
		t := byName[count.Name]
		if t == nil {
			t = new(tally)
			byName[count.Name] = t
			group.Kustomizations++
			if group.Example.Name == "" || count.Name < group.Example.Name {
				group.Example.Name = count.Name
			}
		}
		t.emitted += count.Count
	}
	for i := range after {
		group, t, item := groups[groupOf(after[i].Regarding.Name)], byName[after[i].Regarding.Name], query.FromEvent(&after[i], time.Now())
		if group == nil || t == nil {
			continue // by the API server
		}
		group.Events++
		group.Recorded += int(item.Count)
		if after[i].Labels[series.LabelState] == series.Ongoing.String() {
			group.Ongoing++
		}
		t.events++
		t.recorded += int(item.Count)
	}
	for name, t := range byName {
		group := groups[groupOf(name)]
		group.MostEvents = max(group.MostEvents, t.events)
		if group.FewestEvents == 0 || t.events < group.FewestEvents {
			group.FewestEvents = t.events
		}
		if t.emitted == t.recorded {
			group.Exact++
		}
		if name == group.Example.Name {
			group.Example.Emitted = t.emitted
		}
	}
	slices.SortStableFunc(before, func(a, b eventsv1.Event) int {
		return query.FromEvent(&b, listed).Last.Compare(query.FromEvent(&a, listed).Last)
	})
	for i := range before {
		group, item := groups[groupOf(before[i].Regarding.Name)], query.FromEvent(&before[i], listed)
		if group == nil {
			continue
		}
		group.RecordedBefore += int(item.Count)
		if before[i].Regarding.Name == group.Example.Name {
			group.Example.Events = append(group.Example.Events, fluxEvent{
				before[i].Reason, before[i].Labels[series.LabelState], int(item.Count), strings.ReplaceAll(before[i].Note, tmp, "/tmp"),
			})
		}
	}
	for line := range bytes.Lines(audit) {
		var entry struct {
			Verb      string
			User      struct{ Username string }
			ObjectRef struct{ Resource, Name string }
		}
		if json.Unmarshal(line, &entry) != nil || entry.User.Username != kustomizeController || entry.ObjectRef.Resource != "events" {
			continue
		}
		if group := groups[groupOf(entry.ObjectRef.Name)]; group != nil {
			group.Requests[entry.Verb]++
		} else {
			r.Lists++
		}
	}
}

// sum adds up a figure of all groups.
func (r *fluxRun) sum(of func(*fluxGroup) int) (n int) {
	for _, g := range r.Groups {
		n += of(g)
	}
	return n
}

// Emitted returns how many occurrences were emitted.
func (r *fluxRun) Emitted() int { return r.sum(func(g *fluxGroup) int { return g.Emitted }) }

// Recorded returns how many occurrences the Events contain.
func (r *fluxRun) Recorded() int { return r.sum(func(g *fluxGroup) int { return g.Recorded }) }

// Events returns the number of Events.
func (r *fluxRun) Events() int { return r.sum(func(g *fluxGroup) int { return g.Events }) }

// Requests returns the number of requests for Events.
func (r *fluxRun) Requests() int { return r.Lists + r.sum((*fluxGroup).requests) }

func (g *fluxGroup) requests() (n int) {
	for _, count := range g.Requests {
		n += count
	}
	return n
}

// PerOne returns the number of requests for one Kustomization.
func (g *fluxGroup) PerOne() float64 { return float64(g.requests()) / float64(g.Kustomizations) }
