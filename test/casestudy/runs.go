package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/eventseries/eventseries/internal/controlplane"
	"github.com/eventseries/eventseries/query"
	"github.com/eventseries/eventseries/series"
	"github.com/eventseries/eventseries/test/casestudy/recorders"
)

// trial is a program that runs with several recorders, one after the other, each with an
// API server of its own.
type trial struct {
	binary     string
	user       controlplane.User // of the program
	groups     []string          // the beginnings of the names of its objects, and of their Events
	scale      int               // how much faster time passes
	serverArgs []string          // of kube-apiserver
	// prepare creates what the program needs.
	prepare func(context.Context, *cluster) error
	// args returns the arguments of the program.
	args func(context.Context) ([]string, error)
	// begin returns when the hour begins.
	begin func(context.Context, *cluster) error
	// acts returns what happens in the hour, if it is not nil.
	acts func(*cluster) []act
}

// group returns the group of an object, or of an Event, by its name, or "".
func (t trial) group(name string) string {
	if i := slices.IndexFunc(t.groups, func(group string) bool { return strings.HasPrefix(name, group) }); i >= 0 {
		return t.groups[i]
	}
	return ""
}

// replace replaces a text that a file of the copy contains once.
func (m *mover) replace(file, before, after string) error {
	name := filepath.Join(m.dir(), filepath.FromSlash(file))
	content, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if n := bytes.Count(content, []byte(before)); n != 1 {
		return fmt.Errorf("%s contains %q %d times", name, before, n)
	}
	return os.WriteFile(name, bytes.Replace(content, []byte(before), []byte(after), 1), 0o644)
}

// copyKubernetes copies Kubernetes, and adds the program in a directory of testdata to it.
// With the versions of the control plane, what they share is compiled already.
func (m *mover) copyKubernetes(ctx context.Context, apiserver, program string) error {
	if err := m.copy(ctx); err != nil {
		return err
	}
	here := filepath.Join(m.root, "test", "casestudy")
	if err := os.CopyFS(filepath.Join(m.dir(), "cmd", program), os.DirFS(filepath.Join(here, "testdata", program))); err != nil {
		return err
	}
	const counting = "counting.go"
	content, err := os.ReadFile(filepath.Join(here, "recorders", counting))
	if err == nil {
		err = os.Mkdir(filepath.Join(m.dir(), "cmd", "recorders"), 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(m.dir(), "cmd", "recorders", counting), content, 0o644)
	}
	if err != nil {
		return err
	}
	info, err := buildinfo.ReadFile(apiserver)
	if err != nil {
		return err
	}
	edit := []string{"mod", "edit"}
	for _, module := range info.Deps {
		if module.Path != m.Module && !strings.HasPrefix(module.Path, recorderModule) {
			edit = append(edit, "-require="+module.Path+"@"+module.Version)
		}
	}
	_, err = m.output(ctx, "go", edit...)
	return err
}

// compileTrial compiles a package of the copy, without cgo as the control plane.
func (m *mover) compileTrial(ctx context.Context, name, pkg string) (binary string, err error) {
	log.Printf("%s: compile", m.Module)
	binary = filepath.Join(m.work, "bin", name)
	build := m.command(ctx, "go", "build", "-o", binary, pkg)
	build.Env = append(build.Env, "CGO_ENABLED=0")
	_, err = outputOf(build)
	return binary, err
}

// tryEach runs the program with each of the selected recorders, one after the other.
func (m *mover) tryEach(ctx context.Context, cfg config, t trial, apiserver string, names []string, done func(*recorderRun) error) error {
	for _, recorder := range names {
		if !strings.Contains(recorder, cfg.recorder) {
			continue
		}
		log.Printf("%s: %v: %s", path.Base(t.binary), m.duration, recorder)
		run, err := m.try(ctx, t, apiserver, recorder)
		if err == nil {
			err = done(run)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", recorder, err)
		}
	}
	return nil
}

// try runs the program with a recorder for an hour of its time, which is shorter.
func (m *mover) try(ctx context.Context, t trial, apiserver, recorder string) (run *recorderRun, err error) {
	dir := filepath.Join(m.work, path.Base(t.binary)+"-"+strings.NewReplacer("/", "-", ", ", "-", " ", "-").Replace(recorder))
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(dir, "tmp"), 0o755); err != nil {
		return nil, err
	}
	c, err := m.startCluster(ctx, apiserver, "", dir, t.serverArgs...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.server.Stop()) }()
	c.binary = t.binary
	if err := t.prepare(ctx, c); err != nil {
		return nil, err
	}
	before, err := c.serverCPU(ctx)
	if err != nil {
		return nil, err
	}
	counts := filepath.Join(dir, "counts.json")
	if err := c.startTrial(ctx, t, recorders.Config{Recorder: recorder, Scale: t.scale, Counts: counts}); err != nil {
		return nil, err
	}
	started := time.Now()
	err = t.begin(ctx, c)
	warmup := time.Since(started)
	if err == nil {
		var acts []act
		if t.acts != nil {
			acts = t.acts(c)
		}
		err = c.play(ctx, acts, func(context.Context) error { return nil })
	}
	exit, stopErr := c.stop(ctx)
	if err := errors.Join(err, stopErr); err != nil {
		return nil, err
	}
	after, err := c.serverCPU(ctx)
	if err != nil {
		return nil, err
	}
	run = &recorderRun{Recorder: recorder, ServerCPU: after - before, Warmup: warmup.Seconds(), Exit: exit.duration.Seconds()}
	run.CPU, run.MaxRSS = usage(exit.state)
	return run, c.measureRun(ctx, t, counts, run)
}

// startTrial starts the program.
func (c *cluster) startTrial(ctx context.Context, t trial, recorder recorders.Config) error {
	kubeconfig, err := c.kubeconfig(t.user.Token)
	if err != nil {
		return err
	}
	file := filepath.Join(c.dir, "recorder.json")
	content, err := json.Marshal(recorder)
	if err == nil {
		err = os.WriteFile(file, content, 0o644)
	}
	if err != nil {
		return err
	}
	args, err := t.args(ctx)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(context.Background(), c.binary, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "CASESTUDY_CONFIG="+file, "TMPDIR="+filepath.Join(c.dir, "tmp"))
	return c.start(cmd)
}

// recorderRun is what a program did with a recorder.
type recorderRun struct {
	Recorder     string
	Groups       []*objectGroup
	Lists        int // requests that belong to no group
	Others       int `json:",omitempty"` // occurrences about objects that belong to no group
	Posts        int `json:",omitempty"` // to the webhook of kustomize-controller
	RequestBytes int // of the requests that write Events
	StoredBytes  int // of the Events at the end
	ServerCPU    float64
	CPU          float64
	MaxRSS       int64   // bytes
	Warmup       float64 // seconds before the hour
	Exit         float64 // seconds
}

// objectGroup is a group of objects.
type objectGroup struct {
	Name                     string // the beginning of their names
	Objects                  int
	Emitted                  int
	Recorded, RecordedBefore int // occurrences in Events at the end, and just before SIGTERM
	Events, Ongoing          int // at the end
	FewestEvents, MostEvents int // of an object
	Exact                    int // objects whose occurrences are all counted
	Requests                 map[string]int
	Reasons                  map[string]*tally `json:",omitempty"`
	Example                  example
}

// tally compares occurrences with Events.
type tally struct{ Emitted, Recorded, Events int }

// example is what a user sees of one object just before SIGTERM.
type example struct {
	Name    string
	Emitted int         // until the exit
	Events  []seenEvent // the latest first
}

// seenEvent is what an Event says.
type seenEvent struct {
	Reason string
	State  string // that the Event says
	Count  int
	Note   string
}

// measureRun collects the results of a run.
func (c *cluster) measureRun(ctx context.Context, t trial, counts string, run *recorderRun) error {
	events, bytes, audit, err := c.collect(ctx)
	if err != nil {
		return err
	}
	run.RequestBytes = bytes
	content, err := os.ReadFile(counts)
	if err != nil {
		return err
	}
	var emitted []recorders.Count
	if err := json.Unmarshal(content, &emitted); err != nil {
		return err
	}
	// The API server stores Events of both groups as those of the core group.
	stored, err := c.clients.CoreV1().Events(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range stored.Items {
		if t.group(stored.Items[i].InvolvedObject.Name) != "" {
			run.StoredBytes += stored.Items[i].Size()
		}
	}
	run.compare(t, emitted, c.before, events, audit, c.listed, filepath.Join(c.dir, "tmp"))
	return nil
}

// compare compares what was emitted with the Events just before SIGTERM and at the end,
// and counts the requests. tmp is the directory for the temporary files of the program.
func (r *recorderRun) compare(t trial, emitted []recorders.Count, before, after []eventsv1.Event, audit []byte, listed time.Time, tmp string) {
	groups, objects := map[string]*objectGroup{}, map[string]*tally{}
	for _, name := range t.groups {
		groups[name] = &objectGroup{Name: name, Requests: map[string]int{}, Reasons: map[string]*tally{}}
		r.Groups = append(r.Groups, groups[name])
	}
	for _, count := range emitted {
		group := groups[t.group(count.Name)]
		if group == nil {
			r.Others += count.Count
			continue
		}
		group.Emitted += count.Count
		tallyOf(group.Reasons, count.Reason).Emitted += count.Count
		if objects[count.Name] == nil {
			group.Objects++
			if group.Example.Name == "" || count.Name < group.Example.Name {
				group.Example.Name = count.Name
			}
		}
		tallyOf(objects, count.Name).Emitted += count.Count
	}
	for i := range after {
		name, count := after[i].Regarding.Name, int(query.FromEvent(&after[i], time.Now()).Count)
		group := groups[t.group(name)]
		if group == nil || objects[name] == nil {
			continue // by the API server
		}
		group.Events++
		group.Recorded += count
		if after[i].Labels[series.LabelState] == series.Ongoing.String() {
			group.Ongoing++
		}
		for _, tally := range []*tally{objects[name], tallyOf(group.Reasons, after[i].Reason)} {
			tally.Events++
			tally.Recorded += count
		}
	}
	for name, object := range objects {
		group := groups[t.group(name)]
		group.MostEvents = max(group.MostEvents, object.Events)
		if group.FewestEvents == 0 || object.Events < group.FewestEvents {
			group.FewestEvents = object.Events
		}
		if object.Emitted == object.Recorded {
			group.Exact++
		}
		if name == group.Example.Name {
			group.Example.Emitted = object.Emitted
		}
	}
	slices.SortStableFunc(before, func(a, b eventsv1.Event) int {
		return query.FromEvent(&b, listed).Last.Compare(query.FromEvent(&a, listed).Last)
	})
	for i := range before {
		group, item := groups[t.group(before[i].Regarding.Name)], query.FromEvent(&before[i], listed)
		if group == nil {
			continue
		}
		group.RecordedBefore += int(item.Count)
		if before[i].Regarding.Name == group.Example.Name {
			group.Example.Events = append(group.Example.Events, seenEvent{
				before[i].Reason, before[i].Labels[series.LabelState], int(item.Count), strings.ReplaceAll(before[i].Note, tmp, "/tmp"),
			})
		}
	}
	for entry := range entries(audit) {
		if entry.User.Username != t.user.Name || entry.ObjectRef.Resource != "events" {
			continue
		}
		if group := groups[t.group(entry.ObjectRef.Name)]; group != nil {
			group.Requests[entry.Verb]++
		} else {
			r.Lists++
		}
	}
}

// tallyOf returns a tally of a map, and adds it if necessary.
func tallyOf(all map[string]*tally, name string) *tally {
	if all[name] == nil {
		all[name] = new(tally)
	}
	return all[name]
}

// replaceRun replaces the run with the same recorder, or appends one.
func replaceRun(runs []*recorderRun, run *recorderRun) []*recorderRun {
	if i := slices.IndexFunc(runs, func(old *recorderRun) bool { return old.Recorder == run.Recorder }); i >= 0 {
		runs[i] = run
		return runs
	}
	return append(runs, run)
}

// sum adds up a figure of all groups.
func (r *recorderRun) sum(of func(*objectGroup) int) (n int) {
	for _, g := range r.Groups {
		n += of(g)
	}
	return n
}

// Emitted returns how many occurrences were emitted.
func (r *recorderRun) Emitted() int { return r.sum(func(g *objectGroup) int { return g.Emitted }) }

// Recorded returns how many occurrences the Events contain.
func (r *recorderRun) Recorded() int { return r.sum(func(g *objectGroup) int { return g.Recorded }) }

// RecordedBefore returns how many occurrences the Events contained just before SIGTERM.
func (r *recorderRun) RecordedBefore() int {
	return r.sum(func(g *objectGroup) int { return g.RecordedBefore })
}

// Lost returns how many occurrences the Events do not contain.
func (r *recorderRun) Lost() int { return r.Emitted() - r.Recorded() }

// Events returns the number of Events.
func (r *recorderRun) Events() int { return r.sum(func(g *objectGroup) int { return g.Events }) }

// Requests returns the number of requests for Events.
func (r *recorderRun) Requests() int {
	return r.Lists + r.sum(func(g *objectGroup) int { return sum(g.Requests) })
}

// Lost returns how many occurrences the Events do not contain.
func (g *objectGroup) Lost() int { return g.Emitted - g.Recorded }

// PerOne returns the number of requests for one object.
func (g *objectGroup) PerOne() float64 { return float64(sum(g.Requests)) / float64(g.Objects) }
