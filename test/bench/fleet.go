package bench

import (
	"container/heap"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"

	"github.com/eventseries/eventseries/events"
)

// Fleet is what an hour of a story costs a large cluster in which each process has a
// recorder.
type Fleet struct {
	Story       string         `json:"story"`
	Nodes       int            `json:"nodes"`
	Recorder    string         `json:"recorder"`
	Processes   int            `json:"processes"`
	Occurrences int            `json:"occurrences"`
	Counted     int            `json:"counted"`  // occurrences that Events account for, also those that have expired
	Dropped     int            `json:"dropped"`  // that the recorders counted as dropped; those of client-go do not
	Requests    map[string]int `json:"requests"` // by verb
	Read        map[string]int `json:"read"`     // Events that the server read, or counted, by verb
	Minutes     []int          `json:"minutes"`  // requests in each minute
	Busiest     int            `json:"busiest"`  // requests in the busiest second
	Within      float64        `json:"within"`   // the mean per second of its minute
	Emitted     int            `json:"emitted"`  // occurrences in their busiest second
	Events      int            `json:"events"`   // that were created
	Most        int            `json:"most"`     // that the server had at a time
	MostBytes   int64          `json:"mostBytes"`
	Written     int64          `json:"written"` // bytes of Events written to etcd
	CPU         time.Duration  `json:"cpu"`     // of the server, by the cost of each request
	Heap        int64          `json:"heap"`    // bytes of all recorders at the end
	Took        time.Duration  `json:"took"`
}

// Total returns the number of requests.
func (f Fleet) Total() (n int) {
	for _, requests := range f.Requests {
		n += requests
	}
	return n
}

// Lost returns how many occurrences neither an Event nor a number of dropped ones accounts for.
func (f Fleet) Lost() int { return f.Occurrences - f.Counted - f.Dropped }

// Ratio returns how much busier the busiest second was than its minute.
func (f Fleet) Ratio() float64 { return float64(f.Busiest) / f.Within }

// BusiestMinute returns the number of requests in the busiest minute.
func (f Fleet) BusiestMinute() int { return slices.Max(append(f.Minutes, 0)) }

// PodsPerNode is the number of Pods on a node.
const PodsPerNode = 30

const (
	fleetTTL = time.Hour
	// fleetQuiet is longer than the longest window, so all series end.
	fleetQuiet = 40 * time.Minute
	// otherWrites is how many objects the cluster writes per second, without Events: each
	// node renews its Lease every ten seconds. resourceVersions count them, too.
	otherWrites = 10
	// manager is the name of a program in metadata.managedFields.
	manager = "kubelet"
)

// registry is a server in memory for one group of Events.
type registry[T registered[T]] struct {
	f             *Fleet
	apiVersion    string
	mu            sync.Mutex
	began         time.Time
	seconds       tally
	down          func(time.Duration) bool
	events        map[string]*kept[T]
	expiry        []expiring // in the order of time
	version, size int64
}

type registered[T any] interface {
	metav1.Object
	Size() int
	DeepCopy() T
}

type kept[T any] struct {
	event   T
	size    int64
	count   int
	changed time.Time
}

type expiring struct {
	name string
	at   time.Time
}

func newRegistry[T registered[T]](f *Fleet, apiVersion string, down func(time.Duration) bool) *registry[T] {
	return &registry[T]{f: f, apiVersion: apiVersion, began: time.Now(), down: down, events: make(map[string]*kept[T])}
}

// request counts a request. It fails during an outage.
func (r *registry[T]) request(verb string) error {
	at := time.Since(r.began)
	if r.down != nil && r.down(at) {
		return context.DeadlineExceeded // no request arrives
	}
	r.f.Requests[verb]++
	r.seconds.add(at)
	for len(r.expiry) > 0 && !r.expiry[0].at.After(time.Now()) {
		if k := r.events[r.expiry[0].name]; k != nil && time.Since(k.changed) >= fleetTTL {
			r.size -= k.size
			delete(r.events, r.expiry[0].name)
		}
		r.expiry = r.expiry[1:]
	}
	return nil
}

// resourceVersion returns that of the cluster.
func (r *registry[T]) resourceVersion() string {
	other := int64(time.Since(r.began).Seconds() * float64(r.f.Nodes) / otherWrites)
	return strconv.FormatInt(1+r.version+other, 10)
}

// write stores an Event.
func (r *registry[T]) write(name string, event T, was *kept[T]) {
	r.version++
	event.SetResourceVersion(r.resourceVersion())
	k := &kept[T]{event, int64(event.Size() + len(name)), countIn(event), time.Now()}
	if was != nil {
		r.size -= was.size
		r.f.Counted -= was.count
	} else {
		r.f.Events++
	}
	r.events[name] = k
	r.size += k.size
	r.f.Counted += k.count
	r.f.Written += k.size
	r.f.Most, r.f.MostBytes = max(r.f.Most, len(r.events)), max(r.f.MostBytes, r.size)
	r.expiry = append(r.expiry, expiring{name, k.changed.Add(fleetTTL)})
}

func countIn(event any) int {
	switch event := event.(type) {
	case *eventsv1.Event:
		if event.Series != nil {
			return int(event.Series.Count)
		}
	case *corev1.Event:
		return max(int(event.Count), 1)
	}
	return 1
}

func (r *registry[T]) create(event T) (none T, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.request("create"); err != nil {
		return none, err
	}
	name := event.GetNamespace() + "/" + event.GetName()
	if r.events[name] != nil {
		return none, apierrors.NewAlreadyExists(eventsv1.Resource("events"), name)
	}
	event = event.DeepCopy()
	manage(event, r.apiVersion, manager)
	r.write(name, event, nil)
	return event.DeepCopy(), nil
}

func (r *registry[T]) patch(namespace, name string, data []byte) (none T, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.request("patch"); err != nil {
		return none, err
	}
	name = namespace + "/" + name
	was := r.events[name]
	if was == nil {
		return none, apierrors.NewNotFound(eventsv1.Resource("events"), name)
	}
	event := was.event.DeepCopy()
	event.SetManagedFields(nil)
	// Decoding sets the same fields of structs and maps as a patch, but a null is an empty
	// string then. No recorder writes an empty annotation.
	if err := json.Unmarshal(data, event); err != nil {
		return none, apierrors.NewBadRequest(err.Error())
	}
	maps.DeleteFunc(event.GetAnnotations(), func(_, value string) bool { return value == "" })
	if event.GetResourceVersion() != was.event.GetResourceVersion() {
		return none, apierrors.NewConflict(eventsv1.Resource("events"), name, nil)
	}
	if string(data) == "{}" {
		return was.event.DeepCopy(), nil
	}
	isCleared := len(event.GetManagedFields()) > 0 // by an entry without a manager
	event.SetManagedFields(nil)
	if !isCleared && len(was.event.GetManagedFields()) > 0 {
		manage(event, r.apiVersion, manager)
	}
	r.write(name, event, was)
	return event.DeepCopy(), nil
}

// newEvents is the sink of recorders of events.k8s.io/v1. It answers questions about the
// size of the cluster, which has a hundredth of its Events in kube-system.
type newEvents struct {
	events.EventSink
	*registry[*eventsv1.Event]
}

func (s newEvents) Create(_ context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	return s.create(event)
}

func (s newEvents) Patch(_ context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
	return s.patch(event.Namespace, event.Name, data)
}

func (s newEvents) List(_ context.Context, namespace string, opts metav1.ListOptions) (*eventsv1.EventList, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	verb := "list"
	switch {
	case opts.FieldSelector != "":
	case namespace == metav1.NamespaceAll:
		verb = "count"
	default:
		verb = "ask"
	}
	if err := s.request(verb); err != nil {
		return nil, err
	}
	if verb != "ask" {
		s.f.Read[verb] += len(s.events)
	}
	list := &eventsv1.EventList{}
	list.ResourceVersion = s.resourceVersion()
	if verb == "list" {
		for _, k := range s.events { // in any order: it is one page
			list.Items = append(list.Items, *k.event)
		}
		return list, nil
	}
	n := int64(len(s.events))
	if verb == "ask" {
		n /= 100
	}
	if n > 0 {
		list.Items = make([]eventsv1.Event, 1)
		n--
	}
	if n > 0 {
		list.Continue, list.RemainingItemCount = "more", &n
	}
	return list, nil
}

// oldEvents is the sink of recorders of core/v1.
type oldEvents struct{ *registry[*corev1.Event] }

func (s oldEvents) Create(event *corev1.Event) (*corev1.Event, error) { return s.create(event) }
func (s oldEvents) Update(event *corev1.Event) (*corev1.Event, error) {
	panic("bench: nobody updates " + event.Name)
}

func (s oldEvents) Patch(event *corev1.Event, data []byte) (*corev1.Event, error) {
	return s.patch(event.Namespace, event.Name, data)
}

// fleet is a cluster with many processes. One goroutine plays all actors.
type fleet struct {
	*Fleet
	began     time.Time
	actors    actors
	start     func(component, host string) (recorder, reporter)
	running   map[[2]string]recorder
	reporters map[[2]string]reporter
	emitted   tally
	random    *rand.Rand
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
	time.Sleep(time.Until(f.began.Add(storyTime + fleetQuiet)))
}

// emit emits an event of a component on a host.
func (f *fleet) emit(component, host string, o occurrence) {
	at := [2]string{component, host}
	if f.reporters[at] == nil {
		f.running[at], f.reporters[at] = f.start(component, host)
		f.Processes++
	}
	f.Occurrences++
	f.emitted.add(time.Since(f.began))
	f.reporters[at](o)
}

// restart ends a process. The next one starts with its first event.
func (f *fleet) restart(component, host string) {
	at := [2]string{component, host}
	if p := f.running[at]; p != nil {
		f.end(p)
		delete(f.running, at)
		delete(f.reporters, at)
	}
}

// end ends a process.
func (f *fleet) end(p recorder) {
	p.close()
	if p, ok := p.(*ours); ok {
		for _, n := range p.Stats().Dropped {
			f.Dropped += int(n)
		}
	}
}

// MeasureFleet tells each story to each recorder in a cluster with so many nodes, if only
// matches "story, recorder". Other results remain.
func MeasureFleet(t *testing.T, nodes int, only *regexp.Regexp, costs *Results) (results []Fleet) {
	t.Helper()
	klog.SetLogger(logr.Discard()) // client-go logs each event of an outage
	defer klog.ClearLogger()
	for _, s := range fleetStories {
		for _, name := range []string{Ours, ToolsNew, ToolsOld} {
			if is := func(f Fleet) bool { return f.Story == s.name && f.Recorder == name }; !only.MatchString(s.name + ", " + name) {
				if i := slices.IndexFunc(costs.Fleet, is); i >= 0 {
					results = append(results, costs.Fleet[i])
				}
				continue
			}
			r := tellFleet(t, s, name, nodes)
			r.CPU = costs.costOf(&r)
			t.Logf("%s, %s: %d processes, %d of %d occurrences and %d dropped, %d requests %v, %d in the busiest second of a minute with %.1f, %d Events, took %v",
				r.Story, name, r.Processes, r.Counted, r.Occurrences, r.Dropped, r.Total(), r.Requests, r.Busiest, r.Within, r.Events, r.Took.Round(time.Second))
			results = append(results, r)
		}
	}
	return results
}

func tellFleet(t *testing.T, s fleetStory, name string, nodes int) Fleet {
	t.Helper()
	r := &Fleet{Story: s.name, Nodes: nodes, Recorder: name, Requests: make(map[string]int), Read: make(map[string]int)}
	begin := time.Now()
	var emitted tally
	var seconds func() tally
	synctest.Test(t, func(*testing.T) {
		f := &fleet{
			Fleet: r, began: time.Now(), running: make(map[[2]string]recorder), reporters: make(map[[2]string]reporter),
			random: rand.New(rand.NewPCG(1, uint64(len(s.name)))),
		}
		if name == ToolsOld {
			to := newRegistry[*corev1.Event](r, "v1", s.down)
			seconds = func() tally { return to.seconds }
			f.start = func(component, host string) (recorder, reporter) {
				p := newToolsRecord(oldEvents{to})
				return p, p.reporter(component, host)
			}
		} else {
			to := newEvents{registry: newRegistry[*eventsv1.Event](r, "events.k8s.io/v1", s.down)}
			seconds = func() tally { return to.seconds }
			f.start = func(component, host string) (recorder, reporter) {
				if name == ToolsNew {
					p := newToolsEvents(to)
					return p, p.reporter(component, host)
				}
				opts := events.Options{ShutdownTimeout: time.Second}
				if host != "" {
					opts.ReportingInstance = host
				} else {
					opts.Scope = events.SameController
				}
				b := events.NewBroadcasterWithOptions(to, opts)
				must(b.StartRecordingToSinkWithContext(klog.NewContext(context.Background(), logr.Discard())))
				p := &ours{Broadcaster: b, recorder: b.NewRecorder(scheme.Scheme, component)}
				return p, p.reporter(component, host)
			}
		}
		s.tell(f)
		f.play()
		withRecorders := liveHeap()
		for _, p := range f.running {
			f.end(p)
		}
		emitted = f.emitted
		f.running, f.reporters, f.start = nil, nil, nil
		r.Heap = withRecorders - liveHeap()
	})
	requests := seconds() // client-go's recorders write until the bubble ends
	r.Minutes = requests.minutes()
	r.Busiest, r.Within = requests.busiest()
	r.Emitted, _ = emitted.busiest()
	r.Took = time.Since(begin)
	return *r
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

// fleetStory is an hour of a large cluster.
type fleetStory struct {
	name string
	tell func(f *fleet)
	down func(at time.Duration) bool // whether the API server is unreachable
}

var fleetStories = []fleetStory{
	{name: "Agents start", tell: (*fleet).agents},
	{name: "Rollouts", tell: (*fleet).rollouts},
	{name: "Crash loops", tell: (*fleet).crashLoops},
	{name: "CronJobs", tell: (*fleet).cronJobs},
	{name: "Failing reconciliations", tell: (*fleet).failures},
	{name: "A zone fails", tell: (*fleet).zone},
	{name: "The control plane restarts", tell: (*fleet).crashLoops, down: func(at time.Duration) bool { return at >= 20*time.Minute && at < 22*time.Minute }},
	{name: "All kubelets restart", tell: (*fleet).kubelets},
}

func hostOf(node int) string { return fmt.Sprintf("node-%04d", node) }

func aboutNode(node int) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: hostOf(node), UID: "uid-of-node"}
}

// aboutPod returns a reference with a namespace: one of 200.
func aboutPod(apiVersion, kind string, i, version int) *corev1.ObjectReference {
	about := refer(apiVersion, kind, i, version)
	about.Namespace = podNames(i).namespace
	return about
}

func (f *fleet) normal(component, host string, about *corev1.ObjectReference, reason, action, note string, args ...any) {
	f.emit(component, host, occurrence{about, corev1.EventTypeNormal, reason, action, note, args})
}

// inTurn emits events about an object, 100 milliseconds apart, because client-go's recorders
// name Events after their time.
func (f *fleet) inTurn(component, host string, about *corev1.ObjectReference, reasons []string, note string) {
	for i, reason := range reasons {
		f.once(time.Since(f.began)+time.Duration(i)*100*time.Millisecond, func() {
			f.normal(component, host, about, reason, "Starting", note)
		})
	}
}

func (f *fleet) warning(component, host string, about *corev1.ObjectReference, reason, action, note string, args ...any) {
	f.emit(component, host, occurrence{about, corev1.EventTypeWarning, reason, action, note, args})
}

// agents starts two agents on each node within a minute. Each reconciles its Node every ten
// minutes, and one of a hundred fails every ten seconds.
func (f *fleet) agents() {
	for i := range 2 * f.Nodes {
		component, host, about := fmt.Sprintf("example.com/agent-%d", i%2), hostOf(i/2), aboutNode(i/2)
		f.from(f.within(time.Minute), func() time.Duration {
			f.normal(component, host, about, "Synced", "Reconcile", "Synced the routes of the node")
			return 10 * time.Minute
		})
		if i%100 == 0 {
			f.from(time.Minute+f.within(time.Minute), func() time.Duration {
				f.warning(component, host, about, "SyncFailed", "Reconcile", "Cannot sync the routes: timeout")
				return 10 * time.Second
			})
		}
	}
}

// startPod emits the events of a Pod that starts on a node.
func (f *fleet) startPod(at time.Duration, i, node int) {
	host := hostOf(node)
	f.once(at, func() {
		f.normal("default-scheduler", "", aboutPod("v1", "Pod", i, 0), "Scheduled", "Binding", "Successfully assigned %v to %v", podNames(i).name, host)
	})
	at += time.Second + f.within(time.Second)
	for step, what := range [][3]string{
		{"Pulling", "Pulling", "Pulling image \"" + image + "\""}, {"Pulled", "Pulling", "Successfully pulled image \"" + image + "\" in 1.42s"},
		{"Created", "Creating", "Container created"}, {"Started", "Starting", "Container started"},
	} {
		f.once(at+time.Duration(step)*700*time.Millisecond, func() {
			f.normal("kubelet", host, aboutContainer(i), what[0], what[1], what[2])
		})
	}
}

func aboutContainer(i int) *corev1.ObjectReference {
	about := aboutPod("v1", "Pod", i, 1)
	about.FieldPath = "spec.containers{" + container + "}"
	return about
}

// rollouts replaces a tenth of all Pods in half an hour: Deployments of 50 Pods, each Pod in
// a step of its own, every two seconds.
func (f *fleet) rollouts() {
	const size = 50
	for d := range max(f.Nodes*PodsPerNode/10/size, 1) {
		begin := f.within(30 * time.Minute)
		for step := range size {
			i, at := d*size+step, begin+time.Duration(step)*2*time.Second
			f.once(at, func() {
				f.normal("deployment-controller", "", aboutPod("apps/v1", "Deployment", d, 2*step), "ScalingReplicaSet", "Scale", "Scaled up replica set from %d to %d", step, step+1)
				f.normal("replicaset-controller", "", aboutPod("apps/v1", "ReplicaSet", 2*d, step), "SuccessfulCreate", "CreatePod", "Created pod: %v", podNames(i).name)
			})
			f.startPod(at+100*time.Millisecond, i, f.random.IntN(f.Nodes))
			f.once(at+10300*time.Millisecond, func() { // not at the time of another step
				f.normal("deployment-controller", "", aboutPod("apps/v1", "Deployment", d, 2*step+1), "ScalingReplicaSet", "Scale", "Scaled down replica set from %d to %d", size-step, size-step-1)
				f.normal("replicaset-controller", "", aboutPod("apps/v1", "ReplicaSet", 2*d+1, step), "SuccessfulDelete", "DeletePod", "Deleted pod: %v", i)
			})
			host := hostOf(f.random.IntN(f.Nodes))
			f.once(at+11*time.Second, func() {
				f.normal("kubelet", host, aboutContainer(1<<20+i), "Killing", "Killing", "Stopping container %s", container)
			})
		}
	}
}

// crashLoops runs the hundredth of all Pods that crashes, as the kubelet restarts them: with a
// back-off from 10 seconds to 5 minutes, and BackOff about once per minute.
func (f *fleet) crashLoops() {
	for i := range max(f.Nodes*PodsPerNode/100, 1) {
		host, backOff, left, version := hostOf(i%f.Nodes), 10*time.Second, time.Duration(0), 0
		f.from(f.within(time.Minute), func() time.Duration {
			about := aboutContainer(i)
			about.ResourceVersion = strconv.Itoa(100_000_000 + version)
			if left <= 0 {
				f.inTurn("kubelet", host, about, []string{"Pulled", "Created", "Started"}, "Container is there")
				left, backOff = backOff, min(2*backOff, 5*time.Minute)
				version++ // the kubelet has written that the container runs, and then that it does not
				return 5 * time.Second
			}
			f.warning("kubelet", host, about, "BackOff", "Restarting", "Back-off restarting failed container %s in pod %s", container, podNames(i).name)
			wait := min(left, 40*time.Second+f.within(40*time.Second))
			left -= wait
			return wait
		})
	}
}

// cronJobs runs one CronJob for each 25 nodes every minute, at second 0.
func (f *fleet) cronJobs() {
	for i := range max(f.Nodes/25, 1) {
		minute := 0
		f.from(f.within(200*time.Millisecond), func() time.Duration {
			job, pod, at := 1<<20+minute*f.Nodes+i, 1<<24+minute*f.Nodes+i, time.Since(f.began)
			f.normal("cronjob-controller", "", aboutPod("batch/v1", "CronJob", i, 2*minute), "SuccessfulCreate", "CreateJob", "Created job %v", job)
			f.once(at+time.Second, func() {
				f.normal("job-controller", "", aboutPod("batch/v1", "Job", job, 0), "SuccessfulCreate", "CreatePod", "Created pod: %v", pod)
			})
			f.startPod(at+time.Second+f.within(time.Second), pod, f.random.IntN(f.Nodes))
			f.once(at+20*time.Second+f.within(10*time.Second), func() {
				f.normal("job-controller", "", aboutPod("batch/v1", "Job", job, 1), "Completed", "CompleteJob", "Job completed")
				f.normal("cronjob-controller", "", aboutPod("batch/v1", "CronJob", i, 2*minute+1), "SawCompletedJob", "SyncStatus", "Saw completed job: %v", job)
			})
			minute++
			return time.Minute
		})
	}
}

// failures has 200 controllers retry 50 objects each with the back-off of workqueue, from a
// minute in which something that all need breaks.
func (f *fleet) failures() {
	const controllers = 200
	for i := range max(50*controllers*f.Nodes/5000, controllers) {
		component, delay := fmt.Sprintf("example.com/controller-%03d", i%controllers), 5*time.Millisecond
		f.from(f.within(time.Minute), func() time.Duration {
			f.warning(component, "", aboutPod("example.com/v1", "Database", i, 0), "ReconcileFailed", "Reconcile", "Cannot connect: timeout")
			delay = min(2*delay, 1000*time.Second)
			return delay
		})
	}
}

// zone fails a third of all nodes. Their Pods are evicted after five minutes, and start on
// other nodes.
func (f *fleet) zone() {
	const reporter = "node-controller"
	for node := range max(f.Nodes/3, 1) {
		failed := time.Minute + f.within(40*time.Second)
		f.once(failed, func() {
			f.normal(reporter, "", aboutNode(node), "NodeNotReady", "UpdateStatus", "Node %s status is now: NodeNotReady", hostOf(node))
		})
		for p := range PodsPerNode {
			i := node*PodsPerNode + p
			f.once(failed+time.Duration(p)*10*time.Millisecond, func() {
				f.warning(reporter, "", aboutPod("v1", "Pod", i, 0), "NodeNotReady", "UpdateStatus", "Node is not ready")
			})
			evicted := failed + 5*time.Minute + f.within(10*time.Minute) // the controller evicts at a limited rate
			f.once(evicted, func() {
				f.normal("taint-eviction-controller", "", aboutPod("v1", "Pod", i, 0), "TaintManagerEviction", "Delete", "Marking for deletion Pod %s", podNames(i).name)
				f.normal("replicaset-controller", "", aboutPod("apps/v1", "ReplicaSet", i/10, i), "SuccessfulCreate", "CreatePod", "Created pod: %v", 1<<24+i)
			})
			// The other nodes have no room at first.
			tries := 1 + f.random.IntN(5)
			at := evicted + time.Second
			for range tries {
				f.once(at, func() {
					f.warning("default-scheduler", "", aboutPod("v1", "Pod", 1<<24+i, 0), "FailedScheduling", "Scheduling", "0/%d nodes are available", f.Nodes)
				})
				at += 30*time.Second + f.within(30*time.Second)
			}
			f.startPod(at, 1<<24+i, f.Nodes/3+f.random.IntN(f.Nodes-f.Nodes/3))
		}
	}
}

// kubelets restarts each kubelet once in half an hour, while Pods crash.
func (f *fleet) kubelets() {
	f.crashLoops()
	for node := range f.Nodes {
		f.once(10*time.Minute+f.within(30*time.Minute), func() {
			host := hostOf(node)
			f.restart("kubelet", host)
			reasons := []string{"Starting", "NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID", "NodeAllocatableEnforced"}
			f.inTurn("kubelet", host, aboutNode(node), reasons, "Status of the node")
		})
	}
}
