package bench

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/client-go/kubernetes/scheme"
	clientevents "k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/eventseries/eventseries/events"
)

// Hour is what an hour of a story costs a cluster in which each process has a recorder.
type Hour struct {
	Story       string         `json:"story"`
	Nodes       int            `json:"nodes"`
	Recorder    string         `json:"recorder"`
	Processes   int            `json:"processes"`
	Occurrences int            `json:"occurrences"`
	Counted     int            `json:"counted"`  // occurrences that Events account for, also those that have expired
	Dropped     int            `json:"dropped"`  // that the recorders counted as dropped; those of client-go do not
	Requests    map[string]int `json:"requests"` // by verb
	Events      int            `json:"events"`   // that were created

	// Only for a server in memory.
	Minutes []int   `json:"minutes,omitempty"` // requests in each minute of a hot loop
	Busiest int     `json:"busiest,omitempty"` // requests in the busiest second
	Within  float64 `json:"within,omitempty"`  // the mean per second of its minute
	Emitted int     `json:"emitted,omitempty"` // occurrences in their busiest second
	Heap    int64   `json:"heap,omitempty"`    // bytes of all recorders at the end

	// Only for a real server. The others are those of the round with the median CPU.
	CPU     Spread `json:"cpu,omitzero"`      // of the server in all rounds, in nanoseconds
	Written int64  `json:"written,omitempty"` // bytes of Events written to etcd
	Stored  int64  `json:"stored,omitempty"`  // bytes of the Events in etcd at the end
	Sent    int64  `json:"sent,omitempty"`    // bytes of request bodies
	Refused int    `json:"refused,omitempty"` // of the requests
}

// Total returns the number of requests.
func (h Hour) Total() (n int) {
	for _, requests := range h.Requests {
		n += requests
	}
	return n
}

// Lost returns how many occurrences neither an Event nor a number of dropped ones accounts for.
func (h Hour) Lost() int { return h.Occurrences - h.Counted - h.Dropped }

// Ratio returns how much busier the busiest second was than its minute.
func (h Hour) Ratio() float64 { return float64(h.Busiest) / h.Within }

const (
	storyTime = time.Hour
	// quietTime is longer than the longest window, so all series end.
	quietTime = 40 * time.Minute
)

// story is an hour of a cluster.
type story struct {
	name string
	tell func(f *fleet)
	down func(at time.Duration) bool // whether the API server is unreachable; only in memory
	real bool                        // whether a real server hears it, too
}

// sinks are those of the recorders, for the same server. If listed is true, the processes have
// started earlier, and look for no Events of others.
type sinks struct {
	listed   bool
	ours     events.EventSink
	toolsNew clientevents.EventSink
	toolsOld record.EventSink
}

// occurrence is an event that a component of a cluster emits.
type occurrence struct {
	about     *corev1.ObjectReference
	eventType string
	reason    string
	action    string // tools/record has none
	note      string
	noteArgs  []any
}

// process is a process with a recorder.
type process struct {
	recorder
	report func(o occurrence)
}

// start starts a process of a component. A component without a host has one leader.
func (s sinks) start(name, component, host string) process {
	switch name {
	case Ours:
		opts := events.Options{ReportingInstance: host}
		if s.listed {
			opts.List = ptr.To(false)
		}
		if host == "" {
			opts.Scope = events.SameController
		}
		p := startOurs(s.ours, component, opts)
		return process{p, func(o occurrence) {
			p.recorder.Eventf(o.about, nil, o.eventType, o.reason, o.action, o.note, o.noteArgs...)
		}}
	case ToolsNew:
		p := newToolsEvents(s.toolsNew)
		to := p.NewRecorder(scheme.Scheme, component)
		return process{p, func(o occurrence) { to.Eventf(o.about, nil, o.eventType, o.reason, o.action, o.note, o.noteArgs...) }}
	default:
		p := newToolsRecord(s.toolsOld)
		to := p.NewRecorder(scheme.Scheme, corev1.EventSource{Component: component, Host: host})
		return process{p, func(o occurrence) { to.Eventf(o.about, o.eventType, o.reason, o.note, o.noteArgs...) }}
	}
}

// fleet is a cluster with many processes. One goroutine plays all actors.
type fleet struct {
	*Hour
	began   time.Time
	actors  actors
	to      sinks
	running map[[2]string]process // by component and host
	emitted tally
	random  *rand.Rand
}

// actor does something, and says after which time it does something again. A negative time
// is the end.
type actor struct {
	at  time.Duration
	act func() time.Duration
}

type actors []actor

func (a actors) Len() int           { return len(a) }
func (a actors) Less(i, j int) bool { return a[i].at < a[j].at }
func (a actors) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *actors) Push(x any)        { *a = append(*a, x.(actor)) }
func (a *actors) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

// from adds an actor.
func (f *fleet) from(at time.Duration, act func() time.Duration) {
	heap.Push(&f.actors, actor{at, act})
}

// once adds an actor that acts once.
func (f *fleet) once(at time.Duration, act func()) {
	f.from(at, func() time.Duration { act(); return -1 })
}

// within returns a random time.
func (f *fleet) within(d time.Duration) time.Duration {
	return time.Duration(f.random.Int64N(int64(d)))
}

// play plays the actors until the end of the story.
func (f *fleet) play() {
	for len(f.actors) > 0 && f.actors[0].at < storyTime {
		next := heap.Pop(&f.actors).(actor)
		time.Sleep(time.Until(f.began.Add(next.at)))
		if delay := next.act(); delay >= 0 {
			f.from(next.at+max(delay, time.Microsecond), next.act)
		}
	}
	time.Sleep(time.Until(f.began.Add(storyTime + quietTime)))
}

// emit emits an event of a component on a host, which may be empty. Events about the same
// object must differ in time, since client-go names Events by their time.
func (f *fleet) emit(component, host string, o occurrence) {
	at := [2]string{component, host}
	p, ok := f.running[at]
	if !ok {
		p = f.to.start(f.Recorder, component, host)
		f.running[at] = p
		f.Processes++
	}
	f.Occurrences++
	f.emitted.add(time.Since(f.began))
	p.report(o)
}

// restart ends a process. The next one starts with its first event.
func (f *fleet) restart(component, host string) {
	at := [2]string{component, host}
	if p, ok := f.running[at]; ok {
		f.end(p)
		delete(f.running, at)
	}
}

// end ends a process.
func (f *fleet) end(p process) {
	p.close()
	if p, ok := p.recorder.(*ours); ok {
		for _, n := range p.Stats().Dropped {
			f.Dropped += int(n)
		}
	}
}

// play tells the story to a recorder in each process, in virtual time. It returns when the
// story is over, with the occurrences in each second. The caller must be in a bubble.
func (s story) play(h *Hour, to sinks) tally {
	f := &fleet{
		Hour: h, began: time.Now(), to: to, running: make(map[[2]string]process),
		random: rand.New(rand.NewPCG(1, uint64(len(s.name)))),
	}
	s.tell(f)
	f.play()
	withRecorders := liveHeap()
	for _, p := range f.running {
		f.end(p)
	}
	emitted := f.emitted
	f.running = nil
	h.Heap = withRecorders - liveHeap()
	return emitted
}

// MeasureFleet tells each story to each recorder in a cluster with so many nodes, and with
// a server in memory.
func MeasureFleet(t *testing.T, nodes int) (results []Hour) {
	t.Helper()
	klog.SetLogger(logr.Discard()) // client-go logs each event of an outage
	defer klog.ClearLogger()
	for _, s := range stories {
		for _, name := range Recorders {
			begin := time.Now()
			h := tellFleet(t, s, name, nodes)
			t.Logf("%s, %s: %d processes, %d of %d occurrences and %d dropped, %d requests %v, %d Events, took %v",
				h.Story, name, h.Processes, h.Counted, h.Occurrences, h.Dropped, h.Total(), h.Requests, h.Events, time.Since(begin).Round(time.Second))
			results = append(results, h)
		}
	}
	return results
}

func tellFleet(t *testing.T, s story, name string, nodes int) Hour {
	t.Helper()
	h := &Hour{Story: s.name, Nodes: nodes, Recorder: name, Requests: make(map[string]int)}
	var emitted tally
	var requests *tally
	synctest.Test(t, func(*testing.T) {
		var to sinks
		if name == ToolsOld {
			server := newRegistry[*corev1.Event](h, s.down)
			requests, to.toolsOld = &server.seconds, oldEvents{server}
		} else {
			server := newRegistry[*eventsv1.Event](h, s.down)
			requests, to.ours, to.toolsNew = &server.seconds, newEvents{registry: server}, newEvents{registry: server}
		}
		emitted = s.play(h, to)
	})
	// client-go's recorders write until the bubble ends.
	h.Busiest, h.Within = requests.busiest()
	h.Emitted, _ = emitted.busiest()
	if s.name == HotLoop {
		h.Minutes = requests.minutes()
	}
	return *h
}

// tally counts something in each second.
type tally []int

func (t *tally) add(at time.Duration) {
	for len(*t) <= int(at/time.Second) {
		*t = append(*t, 0)
	}
	(*t)[at/time.Second]++
}

// minutes returns the number in each minute.
func (t tally) minutes() (all []int) {
	for minute := range slices.Chunk(t, 60) {
		n := 0
		for _, second := range minute {
			n += second
		}
		all = append(all, n)
	}
	return all
}

// busiest returns the number in the busiest second, and the mean of its minute.
func (t tally) busiest() (n int, mean float64) {
	minutes := t.minutes()
	for second, m := range t {
		if m > n {
			n, mean = m, float64(minutes[second/60])/60
		}
	}
	return n, mean
}
