package chaos

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/eventseries/eventseries/series"
)

// account summarizes the reports of one process. It is not safe for concurrent use.
type account struct {
	keys []keyAccount
	// window is for how long a key must be quiet before its next occurrence begins a
	// series: events.Options.MaxWindow.
	window time.Duration
	stats  map[string]uint64
	ended  bool
	// failures are the failures that the process reported, and invalid reports.
	failures []string
	// batches is the number of emitted batches. flushed is the number of batches that
	// are known to be on the server.
	batches, flushed int
	// lasted is the time of the latest report since the start of the process.
	lasted time.Duration
	// heap is the maximum size of live objects in bytes.
	heap uint64
	// overlaps says that another process of the emitter ran at the same time.
	overlaps bool

	pending []report // batches that are not flushed; the first is flushed+1
}

type keyAccount struct {
	// emitted is the number of occurrences. flushed is the number of those that a Flush
	// has written or dropped.
	emitted, flushed int64
	// sent, acked, and twice are the sums of all additions.
	sent, acked, twice int64
	// dropped is the number of dropped occurrences. maybeWritten is the number of those
	// that the server may have: a shutdown drops them while a request is unanswered.
	dropped, maybeWritten int64
	// begun is the maximum number of series.
	begun int

	lastAt time.Duration // start of the latest batch with the key
}

func newAccount(keys int, window time.Duration) *account {
	return &account{keys: make([]keyAccount, keys), window: window}
}

func (a *account) add(r report) {
	a.lasted = r.At
	a.heap = max(a.heap, r.Heap)
	a.ended = a.ended || r.Ended
	if r.Stats != nil {
		a.stats = r.Stats
	}
	switch {
	case len(r.Batch) > 0:
		a.addBatch(r)
	case r.Done:
		a.addDone(r)
	case r.Flushed:
		for ; a.flushed < r.Seq; a.flushed++ {
			for _, b := range a.pending[0].Batch {
				a.keys[b.Key].flushed += int64(b.Count)
			}
			a.pending = a.pending[1:]
		}
	case r.Added != nil:
		w := *r.Added
		if w.Key < 0 || w.Key >= len(a.keys) || min(w.Sent, w.Acked, w.Twice) < 0 {
			a.failures = append(a.failures, fmt.Sprintf("invalid addition %+v", w))
			break
		}
		k := &a.keys[w.Key]
		k.sent += w.Sent
		k.acked += w.Acked
		k.twice += w.Twice
	case r.Dropped != nil:
		k := &a.keys[r.Dropped.Key]
		k.dropped += int64(r.Dropped.Count)
		if r.Dropped.Reason == "Shutdown" || r.Dropped.Reason == "Denied" {
			k.maybeWritten += int64(r.Dropped.Count)
		}
	case r.Failed != "":
		a.failures = append(a.failures, r.Failed)
	}
}

func (a *account) addBatch(r report) {
	if a.batches++; r.Seq != a.batches {
		a.failures = append(a.failures, fmt.Sprintf("batch %d follows batch %d", r.Seq, a.batches-1))
	}
	a.pending = append(a.pending, r)
	for _, b := range r.Batch {
		k := &a.keys[b.Key]
		k.emitted += int64(b.Count)
		k.begun += b.Count // the maximum, until the duration of the batch is known
	}
}

// addDone corrects begun for the latest batch. A key was quiet at most from the start
// of its previous batch to the end of this one.
func (a *account) addDone(r report) {
	batch := a.pending[len(a.pending)-1]
	for _, b := range batch.Batch {
		k := &a.keys[b.Key]
		if r.At-batch.At < a.window {
			k.begun -= b.Count
			if k.begun == 0 || r.At-k.lastAt >= a.window {
				k.begun++
			}
		}
		k.lastAt = batch.At
	}
}

func (a *account) totals() (emitted, dropped int64) {
	for _, k := range a.keys {
		emitted += k.emitted
		dropped += k.dropped
	}
	return emitted, dropped
}

// bounds are the minimum and the maximum number of occurrences on the server, the
// maximum number of those that the server counts twice, and the maximum number of Events.
type bounds struct {
	low, high, twice int64
	maxEvents        int
}

func (b *bounds) add(other bounds) {
	b.low += other.low
	b.high += other.high
	b.twice += other.twice
	b.maxEvents += other.maxEvents
}

// overlapEvents is how many Events a series may have while another process writes to
// them. Each can end the series of the other, because it is quiet there, or because the
// clocks or faults make it look dead.
const overlapEvents = 4

func (a *account) bounds(key int) bounds {
	k := a.keys[key]
	// The drops of a killed process may belong to batches after the last flush.
	low, high := max(k.flushed-k.dropped, 0), k.emitted
	if a.ended {
		low = k.emitted - k.dropped
		high = low + k.maybeWritten
	}
	b := bounds{low: max(low, k.acked), high: min(high, k.sent), twice: k.twice, maxEvents: k.begun}
	if a.overlaps {
		b.maxEvents *= overlapEvents
	}
	return b
}

func (a *account) String() string {
	var all bounds
	for key := range a.keys {
		all.add(a.bounds(key))
	}
	end := "was killed"
	if a.ended {
		end = "was shut down"
	}
	emitted, dropped := a.totals()
	return fmt.Sprintf("%s after %.1fs: flushed %d of %d batches; emitted %d occurrences, dropped %d, wrote %d to %d, at most %d twice",
		end, a.lasted.Seconds(), a.flushed, a.batches, emitted, dropped, all.low, all.high, all.twice)
}

// heapLimit bounds the live objects of an emitter, whose table has few series.
const heapLimit = 16 << 20

func (a *account) check() []string {
	wrong := a.failures
	if a.heap > heapLimit {
		wrong = append(wrong, fmt.Sprintf("the heap has %d bytes, more than %d", a.heap, heapLimit))
	}
	for key := range a.keys {
		if b := a.bounds(key); b.low > b.high {
			wrong = append(wrong, fmt.Sprintf("key %d: the server must have at least %d, but at most %d occurrences: %+v", key, b.low, b.high, a.keys[key]))
		}
	}
	if !a.ended {
		return wrong
	}
	emitted, dropped := a.totals()
	if n := a.stats["occurrences"]; int64(n) != emitted {
		wrong = append(wrong, fmt.Sprintf("emitted %d occurrences, but Stats has %d", emitted, n))
	}
	for name, n := range a.stats {
		if strings.HasPrefix(name, droppedPrefix) {
			dropped -= int64(n)
		}
	}
	if dropped != 0 {
		wrong = append(wrong, fmt.Sprintf("OnDrop got %d occurrences more than Stats has: %v", dropped, a.stats))
	}
	return wrong
}

type ledger [][]*account

type difference struct {
	emitter, key int
	bounds
	sum       int64 // of the counts on the server
	events    []*eventsv1.Event
	processes []string // their accounts of the key
}

// compare returns the differences, and the number of occurrences that the server counts
// twice as documented.
func (l ledger) compare(found []eventsv1.Event) (wrong []difference, twice int64) {
	type id struct{ emitter, key int }
	unknown := id{-1, -1}
	byKey := make(map[id][]*eventsv1.Event)
	for i := range found {
		emitter, key, ok := parseSubject(found[i].Regarding.Name)
		at := id{emitter, key}
		if !ok || emitter >= len(l) || key >= keysPerEmitter {
			at = unknown
		}
		byKey[at] = append(byKey[at], &found[i])
	}
	if strangers := byKey[unknown]; len(strangers) > 0 {
		wrong = append(wrong, difference{emitter: -1, key: -1, events: strangers})
	}
	for emitter, accounts := range l {
		for key := range keysPerEmitter {
			d := difference{emitter: emitter, key: key, events: byKey[id{emitter, key}]}
			for i, a := range accounts {
				b := a.bounds(key)
				d.add(b)
				if b.high > 0 {
					d.processes = append(d.processes, fmt.Sprintf("process %d (ended: %v): %+v", i, a.ended, a.keys[key]))
				}
			}
			for _, event := range d.events {
				d.sum += int64(occurrences(event))
			}
			if d.sum < d.low || d.sum > d.high+d.twice || len(d.events) > d.maxEvents {
				wrong = append(wrong, d)
				continue
			}
			twice += max(0, d.sum-d.high)
		}
	}
	return wrong, twice
}

func (d difference) String() string {
	lines := []string{fmt.Sprintf("emitter %d, key %d: %d occurrences in %d Events; expected %d to %d occurrences in at most %d Events, and at most %d occurrences twice",
		d.emitter, d.key, d.sum, len(d.events), d.low, d.high, d.maxEvents, d.twice)}
	lines = append(lines, d.processes...)
	slices.SortFunc(d.events, func(a, b *eventsv1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
	for _, event := range d.events {
		lines = append(lines, describe(event))
	}
	return strings.Join(lines, "\n\t")
}

// subjectReference returns the object of a key. Half of the emitters have a few of them
// in deniedNamespace. A Flush fails while one cannot be written, so the bounds of
// processes that are killed then are wide.
func subjectReference(emitter, key int) *corev1.ObjectReference {
	name := fmt.Sprintf("emitter-%d-key-%d", emitter, key)
	namespace := namespace
	if emitter%2 == 1 && key%6 == 5 {
		namespace = deniedNamespace
	}
	return &corev1.ObjectReference{
		APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: name, UID: types.UID("uid-of-" + name),
	}
}

func parseSubject(name string) (emitter, key int, ok bool) {
	n, err := fmt.Sscanf(name, "emitter-%d-key-%d", &emitter, &key)
	return emitter, key, err == nil && n == 2 && emitter >= 0 && key >= 0
}

func occurrences(event *eventsv1.Event) int {
	if event.Series == nil {
		return 1
	}
	return int(event.Series.Count)
}

func describe(event *eventsv1.Event) string {
	line := fmt.Sprintf("%s (resourceVersion %s) count %d, first %s", event.Name, event.ResourceVersion, occurrences(event),
		event.EventTime.Format(time.StampMicro))
	if event.Series != nil {
		line += ", last " + event.Series.LastObservedTime.Format(time.StampMicro)
	}
	return line + fmt.Sprintf(", state %q, by %s", event.Labels[series.LabelState], event.ReportingInstance)
}

// watch observes each change of each Event and collects forbidden ones.
type watch struct {
	store cache.Store
	stop  func() // waits until the watch has stopped

	mu        sync.Mutex
	changes   int
	forbidden []string
}

// startWatch watches all Events. clients must not use a proxy. After an outage of the
// server, the watch resumes without missing changes.
func startWatch(clients kubernetes.Interface) *watch {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	w := &watch{stop: func() { cancel(); running.Wait() }}
	var controller cache.Controller
	w.store, controller = cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(clients.EventsV1().RESTClient(), "events", metav1.NamespaceAll, fields.Everything()),
		ObjectType:    &eventsv1.Event{},
		Handler: cache.ResourceEventHandlerFuncs{
			UpdateFunc: func(before, now any) { w.update(before.(*eventsv1.Event), now.(*eventsv1.Event)) },
			DeleteFunc: func(object any) { w.forbid("deleted: %v", object) },
		},
	})
	running.Go(func() { controller.RunWithContext(ctx) })
	return w
}

func (w *watch) update(before, now *eventsv1.Event) {
	w.mu.Lock()
	w.changes++
	w.mu.Unlock()
	if what := regression(before, now); what != "" {
		w.forbid("%s:\n\t%s\n\t%s", what, describe(before), describe(now))
	}
}

func (w *watch) forbid(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forbidden = append(w.forbidden, fmt.Sprintf(format, args...))
}

func regression(before, now *eventsv1.Event) string {
	state := func(event *eventsv1.Event) string { return event.Labels[series.LabelState] }
	finished := series.Finished.String()
	// If another process has ended a series that goes on here, a process corrects it.
	emitter, _, _ := parseSubject(now.Regarding.Name)
	switch {
	case occurrences(now) < occurrences(before):
		return "the count decreased"
	case before.Series != nil && now.Series.LastObservedTime.Before(&before.Series.LastObservedTime):
		return "the time decreased"
	case state(before) == finished && state(now) != finished && occurrences(now) == occurrences(before) && !sharesSeries(emitter):
		return "a finished series changed without an occurrence"
	default:
		return ""
	}
}

// versions returns the resourceVersions of the Events that the watch has observed.
func (w *watch) versions() map[string]string {
	var all []eventsv1.Event
	for _, event := range w.store.List() {
		all = append(all, *event.(*eventsv1.Event))
	}
	return versionsOf(all)
}

func versionsOf(events []eventsv1.Event) map[string]string {
	versions := make(map[string]string)
	for _, event := range events {
		versions[event.Name] = event.ResourceVersion
	}
	return versions
}
