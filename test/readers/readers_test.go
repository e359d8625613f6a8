package readers

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	clientevents "k8s.io/client-go/tools/events"
	clientrecord "k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/eventseries/eventseries/compat"
	"github.com/eventseries/eventseries/compat/record"
	"github.com/eventseries/eventseries/controllerruntime"
	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/series"
)

var update = flag.Bool("update", false, "write the table of docs/consumers.md")

// write is a version of an Event that a server has stored.
type write struct {
	at    time.Time
	event *corev1.Event
}

// The writers are the columns of the table. Each starts a recorder, and returns what emits and what
// stops it.
var writers = map[string]func(clients *fake.Clientset) (emit func(note string), stop func()){
	"EventSinkImpl": func(clients *fake.Clientset) (emit func(note string), stop func()) {
		return startEvents(events.NewBroadcaster(&events.EventSinkImpl{Interface: clients.EventsV1()}))
	},
	"tools/events": func(clients *fake.Clientset) (emit func(note string), stop func()) {
		return startEvents(clientevents.NewBroadcaster(&clientevents.EventSinkImpl{Interface: clients.EventsV1()}))
	},
	"compat/record": func(clients *fake.Clientset) (emit func(note string), stop func()) {
		return startRecord(clients, record.NewBroadcaster())
	},
	"NewBroadcaster": func(clients *fake.Clientset) (emit func(note string), stop func()) {
		return startRecord(clients, compat.NewBroadcaster(compat.NewSink(clients)))
	},
	"NewSink": func(clients *fake.Clientset) (emit func(note string), stop func()) {
		return startEvents(events.NewBroadcaster(compat.NewSink(clients)))
	},
	"Events": func(clients *fake.Clientset) (emit func(note string), stop func()) {
		return startEvents(compat.NewBroadcaster(compat.NewSink(clients)).Events())
	},
	"adapter": func(clients *fake.Clientset) (emit func(note string), stop func()) {
		a := events.NewEventBroadcasterAdapter(clients) //nolint:staticcheck // programs use it
		a.StartRecordingToSink(nil)
		r := a.NewRecorder("tester")
		return func(note string) { r.Eventf(pod, nil, "Warning", "Failed", "Trying", "%s", note) }, a.Shutdown
	},
	"GetEventRecorder": func(clients *fake.Clientset) (emit func(note string), stop func()) {
		return startManager(clients, func(mgr manager.Manager) func(string) {
			r := mgr.GetEventRecorder("tester")
			return func(note string) { r.Eventf(pod, nil, "Warning", "Failed", "Trying", "%s", note) }
		})
	},
	"NewManager": func(clients *fake.Clientset) (emit func(note string), stop func()) {
		return startManager(clients, func(mgr manager.Manager) func(string) {
			r := mgr.GetEventRecorderFor("tester") //nolint:staticcheck // programs use it
			return func(note string) { r.Event(pod, "Warning", "Failed", note) }
		})
	},
	"tools/record": func(clients *fake.Clientset) (emit func(note string), stop func()) {
		return startRecord(clients, clientrecord.NewBroadcaster())
	},
}

// likeRecord are the writers that take the place of tools/record.
var likeRecord = []string{"compat/record", "NewBroadcaster", "NewManager", "GetEventRecorder"}

// likeEvents are those that take the place of tools/events, which begins no Event for another note.
var likeEvents = []string{"Events", "adapter", "GetEventRecorder"}

var pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0"}}

func startRecord(clients *fake.Clientset, b clientrecord.EventBroadcaster) (emit func(note string), stop func()) {
	b.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: clients.CoreV1().Events("")})
	r := b.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "tester"})
	return func(note string) { r.Event(pod, "Warning", "Failed", note) }, b.Shutdown
}

func startEvents(b clientevents.EventBroadcaster) (emit func(note string), stop func()) {
	done := make(chan struct{})
	b.StartRecordingToSink(done)
	r := b.NewRecorder(scheme.Scheme, "tester")
	return func(note string) { r.Eventf(pod, nil, "Warning", "Failed", "Trying", "%s", note) }, func() {
		b.Shutdown()
		close(done)
	}
}

// startManager starts a manager. Its clients, which it makes itself, send their requests to the clientset.
func startManager(clients *fake.Clientset, record func(manager.Manager) func(string)) (emit func(note string), stop func()) {
	config := &rest.Config{Host: "https://cluster.invalid", Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		var event corev1.Event
		stored, path := &event, strings.Split(r.URL.Path, "/") // /api/v1/namespaces/shop/events/web-0.hash
		body, err := io.ReadAll(r.Body)
		switch {
		case err != nil:
		case r.Method == http.MethodPost:
			if err = runtime.DecodeInto(scheme.Codecs.UniversalDeserializer(), body, &event); err == nil {
				stored, err = clients.CoreV1().Events(path[4]).Create(r.Context(), &event, metav1.CreateOptions{})
			}
		case r.Method == http.MethodPatch:
			stored, err = clients.CoreV1().Events(path[4]).Patch(r.Context(), path[6], types.MergePatchType, body, metav1.PatchOptions{})
		default: // no role of the legacy recorder permits to list
			return &http.Response{StatusCode: http.StatusForbidden, Body: http.NoBody, Request: r}, nil
		}
		if err == nil {
			body, err = runtime.Encode(scheme.Codecs.LegacyCodec(corev1.SchemeGroupVersion), stored)
		}
		header := http.Header{"Content-Type": {runtime.ContentTypeJSON}}
		return &http.Response{StatusCode: http.StatusOK, Header: header, Body: io.NopCloser(bytes.NewReader(body)), Request: r}, err
	})}
	mgr, err := controllerruntime.NewManager(config, manager.Options{Metrics: server.Options{BindAddress: "0"}}, nil)
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = mgr.Start(ctx) })
	return record(mgr), func() {
		cancel()
		running.Wait()
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

const hours = 4 * time.Hour

// run plays a loop, and returns what the server has stored, and the times of the occurrences.
func run(t *testing.T, start func(*fake.Clientset) (emit func(note string), stop func()), l loop) (writes []write, occurrences []time.Time) {
	synctest.Test(t, func(t *testing.T) {
		clients, created := fake.NewClientset(), map[string]metav1.Time{}
		add := func(event *corev1.Event) {
			if _, ok := created[event.Name]; !ok {
				created[event.Name] = metav1.Now()
			}
			event.CreationTimestamp = created[event.Name]
			writes = append(writes, write{time.Now(), event})
		}
		store := clienttesting.ObjectReaction(clients.Tracker())
		clients.PrependReactor("*", "events", func(action clienttesting.Action) (bool, runtime.Object, error) {
			handled, object, err := store(action)
			if patch, ok := action.(clienttesting.PatchAction); ok {
				require.NotContains(t, string(patch.GetPatch()), "managedFields", "they are the only time that some readers have")
				if string(patch.GetPatch()) == "{}" {
					return handled, object, err
				}
			}
			switch event := object.(type) {
			case *corev1.Event:
				add(event.DeepCopy())
			case *eventsv1.Event:
				add(compat.ToCore(event))
			}
			return handled, object, err
		})
		emit, stop := start(clients)
		for at := time.Duration(0); at < hours; {
			occurrences = append(occurrences, time.Now())
			if l.notes {
				emit(fmt.Sprintf("attempt %d", len(occurrences)))
			} else {
				emit("it fails")
			}
			wait := l.next(at)
			time.Sleep(wait)
			at += wait
		}
		synctest.Wait()
		writes = slices.Clone(writes)
		stop()
	})
	return writes, occurrences
}

// reading is what a reader shows of a loop.
type reading struct {
	records                   int           // of what is written after the start of the reader, with other counts than before
	due                       int           // occurrences after that
	age, countAge, messageAge time.Duration // at worst: how much older than the latest occurrence
	never, noCount            bool
}

// read has a reader start after a time, and looks each minute. An Event that has expired by then is not there.
func read(r reader, l loop, writes []write, occurrences []time.Time, after time.Duration) (got reading) {
	begin := occurrences[0]
	start, known := begin.Add(after), map[string]*corev1.Event{}
	var shown time.Time
	var count int32
	attempt := 1
	take := func(w write, now time.Time) {
		s := sight{Event: w.event, old: known[w.event.Name], now: now, start: start.Add(-time.Second), written: w.at}
		known[w.event.Name] = w.event
		if at, n, ok := r.show(s); ok {
			if !s.isInitial() && (s.isNew() || s.count() != (sight{Event: s.old}).count()) {
				got.records++
			}
			shown, count = at, n
			_, _ = fmt.Sscanf(strings.TrimPrefix(w.event.Message, series.CombinedPrefix), "attempt %d", &attempt)
		}
	}
	var initial []write // the latest version of each Event, in the order of their times
	i := 0
	for ; i < len(writes) && writes[i].at.Before(start.Add(-time.Second)); i++ {
		initial = slices.DeleteFunc(initial, func(w write) bool { return w.event.Name == writes[i].event.Name })
		initial = append(initial, writes[i])
	}
	for _, w := range initial {
		if start.Sub(w.at) < time.Hour {
			take(w, start)
		}
	}
	// A reader that starts in the middle waits for the next writes.
	settled := start.Add(max(10*time.Minute, 2*l.next(after)+time.Minute))
	for now := start; now.Before(begin.Add(hours)); now = now.Add(time.Minute) {
		for ; i < len(writes) && !writes[i].at.After(now); i++ {
			take(writes[i], writes[i].at)
		}
		if now.Before(settled) {
			continue
		}
		last := sort.Search(len(occurrences), func(n int) bool { return occurrences[n].After(now) }) - 1
		got.messageAge = max(got.messageAge, occurrences[last].Sub(occurrences[attempt-1]))
		if shown.IsZero() {
			got.age, got.never = hours, true
		} else {
			got.age = max(got.age, occurrences[last].Sub(shown))
		}
		if count <= 0 || int(count) > len(occurrences) {
			got.countAge, got.noCount = hours, true
		} else {
			got.countAge = max(got.countAge, occurrences[last].Sub(occurrences[count-1]))
		}
	}
	got.due = len(occurrences) - sort.Search(len(occurrences), func(n int) bool { return !occurrences[n].Before(start) })
	return got
}

// probe has a reader look at an update of an Event that was created long before its start.
func probe(r reader, change func(e *corev1.Event, last time.Time)) (last, at time.Time, ok bool) {
	last = time.Now().Truncate(time.Second)
	e := &corev1.Event{Count: 1}
	e.CreationTimestamp = metav1.NewTime(last.Add(-2 * time.Hour))
	old := e.DeepCopy()
	change(e, last)
	at, _, ok = r.show(sight{Event: e, old: old, now: last, start: last.Add(-time.Hour), written: last})
	return last, at, ok
}

// readsUpdates reports whether a reader shows the updates of a legacy Event that it has received before.
func (r reader) readsUpdates() bool {
	_, _, ok := probe(r, func(e *corev1.Event, last time.Time) {
		e.Count, e.LastTimestamp = 2, metav1.NewTime(last)
	})
	return ok
}

// readsEnds reports whether a reader shows an update without an occurrence.
func (r reader) readsEnds() bool {
	_, _, ok := probe(r, func(e *corev1.Event, last time.Time) { e.LastTimestamp = metav1.NewTime(last) })
	return ok
}

// readsLatest reports whether a reader shows the latest time of a series from events.k8s.io/v1.
func (r reader) readsLatest() bool {
	last, at, ok := probe(r, func(e *corev1.Event, last time.Time) {
		e.EventTime, e.Count = metav1.NewMicroTime(last.Add(-2*time.Hour)), 0
		e.Series = &corev1.EventSeries{Count: 2, LastObservedTime: metav1.NewMicroTime(last)}
	})
	return ok && at.Equal(last)
}

// ageText is the age that the table shows, in minutes.
func (r reading) ageText() string {
	const step = 5 * time.Minute // times of a few milliseconds decide about minutes
	switch {
	case r.records == 0:
		return "nothing"
	case r.never:
		return "none"
	case r.age > time.Hour:
		return "first"
	case r.age < time.Minute:
		return "0"
	default:
		return fmt.Sprint(int((r.age + step - 1) / step * 5))
	}
}

// cell is what the table shows of a reader for one loop: the age, and the number of records.
type cell struct{ age, records string }

func newCell(r reader, l loop, writes []write, occurrences []time.Time) cell {
	whole, middle := read(r, l, writes, occurrences, 0), read(r, l, writes, occurrences, hours/2)
	c := cell{whole.ageText(), fmt.Sprint(roughly(whole.records))}
	if middle.records == 0 {
		c.age += "*"
	}
	return c
}

// roughly rounds what jitter changes.
func roughly(n int) int {
	if n > 20 {
		return (n + 2) / 5 * 5
	}
	return n
}

type loop struct {
	name  string
	next  func(time.Duration) time.Duration
	notes bool // each occurrence has another one
}

var loops = []loop{
	{"1 s", every(time.Second), false},
	{"10 s", every(10 * time.Second), false},
	{"2 min", every(2 * time.Minute), false},
	// In other minutes than the timers of tools/events, which would compete for each of its occurrences.
	{"8 min", every(8*time.Minute + time.Second), false},
	{"20 min", every(20 * time.Minute), false},
	{"50 min", every(50 * time.Minute), false},
	{"back-off", func(at time.Duration) time.Duration { return min(max(at, 10*time.Second), 5*time.Minute) }, false},
	{"45 s", every(45 * time.Second), false},
	{"200 s", every(200 * time.Second), false},
	{"irregular", func(at time.Duration) time.Duration { return 20*time.Second + at/time.Second*7919%200*time.Second }, false},
	{"10 s, with notes", every(10 * time.Second), true},
	{"8 min, with notes", every(8*time.Minute + time.Second), true},
}

func every(d time.Duration) func(time.Duration) time.Duration {
	return func(time.Duration) time.Duration { return d }
}

// isSlow reports whether tools/events begins another Event with each occurrence of the loop.
func (l loop) isSlow() bool { return l.next(0) > series.FinishAfter }

// columns are those of the table. The writers of the first one show the same.
var columns = []struct{ title, writer string }{
	{"`compat/record`, `compat.NewBroadcaster`, managers", "compat/record"},
	{"`tools/record`", "tools/record"},
	{"`NewSink`", "NewSink"},
	{"`EventSinkImpl`", "EventSinkImpl"},
	{"`tools/events`", "tools/events"},
}

// table returns the table of the page. Programs that show the same share a row.
func table(cells map[string][]cell) string {
	var rows []string
	programs := map[string][]string{}
	for _, r := range readers {
		row := ""
		for _, c := range columns {
			var ages, records []string
			for _, cell := range cells[r.name+c.writer] {
				ages, records = append(ages, cell.age), append(records, cell.records)
			}
			row += " " + strings.Join(ages, "/")
			if r.exports {
				row += " ×" + strings.Join(records, "/")
			}
			row += " |"
		}
		if programs[row] == nil {
			rows = append(rows, row)
		}
		programs[row] = append(programs[row], r.name)
	}
	var text strings.Builder
	text.WriteString("\n| program |")
	for _, c := range columns {
		fmt.Fprintf(&text, " %s |", c.title)
	}
	text.WriteString("\n|" + strings.Repeat(" --- |", len(columns)+1) + "\n")
	for _, row := range rows {
		fmt.Fprintf(&text, "| %s |%s\n", strings.Join(programs[row], ", "), row)
	}
	return text.String()
}

// No reader shows less, or older times and counts, than it does of the recorder of client-go that ours
// replaces, except for what the page says: EventSinkImpl in place of tools/events, and readers of creations.
func TestReaders(t *testing.T) {
	shown := map[string][]cell{}
	for _, loop := range loops {
		t.Run(loop.name, func(t *testing.T) {
			stored, occurrences := map[string][]write{}, []time.Time(nil)
			for name, start := range writers {
				stored[name], occurrences = run(t, start, loop)
			}
			cells := func(r reader, name string) cell { return newCell(r, loop, stored[name], occurrences) }
			for _, r := range readers {
				if loop.name == "10 s" {
					for _, ours := range likeRecord {
						assert.Equal(t, cells(r, "compat/record"), cells(r, ours), "%s, %s: they share a column", r.name, ours)
					}
					for _, ours := range likeEvents {
						assert.Equal(t, cells(r, "compat/record").age, cells(r, ours).age, "%s, %s: the page says so", r.name, ours)
					}
				}
				for _, after := range []time.Duration{0, hours / 2} {
					compare := func(ours, theirs string, old time.Duration) {
						a, b := read(r, loop, stored[ours], occurrences, after), read(r, loop, stored[theirs], occurrences, after)
						what := fmt.Sprintf("%s, from %v: %s %+v, %s %+v", r.name, after, ours, a, theirs, b)
						if !r.readsUpdates() { // what it finds at its start can be as old
							b.age, b.countAge, b.messageAge = b.age+old, b.countAge+old, b.messageAge+old
						}
						assert.True(t, a.records > 0 || b.records == 0, what)
						assert.LessOrEqual(t, a.age, max(b.age, old), what)
						if !loop.notes { // the first ones have Events of their own
							assert.LessOrEqual(t, a.countAge, max(b.countAge, old), what)
						}
						assert.LessOrEqual(t, a.messageAge, max(b.messageAge, old), what)
						if loop.isSlow() && old < 10*time.Minute {
							assert.GreaterOrEqual(t, a.records, min(b.records, a.due), what)
						}
					}
					const second = time.Second // lastTimestamp is truncated
					for _, ours := range likeRecord {
						if !slices.Contains(likeEvents, ours) || !loop.notes {
							compare(ours, "tools/record", 5*time.Minute+second)
						}
					}
					if loop.isSlow() && !r.readsUpdates() { // tools/events begins another Event for each occurrence
						for _, ours := range likeEvents {
							if !loop.notes {
								compare(ours, "tools/record", 5*time.Minute+second)
							}
						}
						continue
					}
					for _, ours := range likeEvents {
						compare(ours, "tools/events", 5*time.Minute+second)
					}
					old := 30*time.Minute + loop.next(after) + second
					compare("NewSink", "tools/events", old)
					if !loop.isSlow() || r.readsLatest() && !loop.notes {
						compare("EventSinkImpl", "tools/events", old)
						continue
					}
					if age := read(r, loop, stored["EventSinkImpl"], occurrences, after).age; age > max(read(r, loop, stored["tools/events"], occurrences, after).age, old) {
						assert.Regexp(t, `first|none|nothing|\*`, cells(r, "EventSinkImpl").age, "%s: the table says so", r.name)
					}
				}
			}
			if loop.name == "2 min" || loop.name == "200 s" {
				age := read(readers[0], loop, stored["compat/record"], occurrences, 0).age
				assert.InDelta(t, loop.next(0).Seconds(), age.Seconds(), 1, "one that is not written, which the migration page says")
			}
			for _, ours := range likeRecord {
				assert.LessOrEqual(t, len(stored[ours]), len(stored["tools/record"]), ours)
			}
			if slices.Contains([]string{"10 s", "8 min", "50 min"}, loop.name) {
				for _, r := range readers {
					for _, c := range columns {
						shown[r.name+c.writer] = append(shown[r.name+c.writer], cells(r, c.writer))
					}
				}
			}
		})
	}
	var creations, ends []string
	for _, r := range readers {
		if !r.readsUpdates() {
			creations = append(creations, r.name)
		} else if r.exports && !r.readsEnds() {
			ends = append(ends, r.name)
		}
	}
	text := table(shown) + fmt.Sprintf("\nNo updates of older Events: %s. No record of an update without an occurrence: %s.\n", strings.Join(creations, ", "), strings.Join(ends, ", "))

	const begin, end = "<!-- written by test/readers -->\n", "<!-- end -->\n"
	path := filepath.Join("..", "..", "docs", "consumers.md")
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	before, rest, _ := strings.Cut(string(page), begin)
	_, after, found := strings.Cut(rest, end)
	require.True(t, found, "the page has no place for the table")
	want := before + begin + text + "\n" + end + after
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644)) //nolint:gosec // a page
		return
	}
	assert.Equal(t, want, string(page), "run the test with -update")
}

// occurrences become known soon: the third and later ones of slow loops within a minute, or half of the
// time since the first one.
func TestSlowLoopsAreKnownSoon(t *testing.T) {
	irregular := []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute}
	for name, tt := range map[string]struct {
		next  func(time.Duration) time.Duration
		limit time.Duration
	}{
		"at 0, 1, 3, 7 min": {func(at time.Duration) time.Duration {
			for sum, i := time.Duration(0), 0; i < len(irregular); i++ {
				if sum == at {
					return irregular[i]
				}
				sum += irregular[i]
			}
			return hours
		}, time.Minute},
		"every 4 min": {every(4 * time.Minute), time.Minute},
		"every 8 min": {every(8 * time.Minute), time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			writes, occurrences := run(t, writers["compat/record"], loop{next: tt.next})
			for i, at := range occurrences {
				if i < 2 {
					continue
				}
				known := slices.IndexFunc(writes, func(w write) bool { return int(w.event.Count) > i })
				require.GreaterOrEqual(t, known, 0, "occurrence %d", i+1)
				assert.LessOrEqual(t, writes[known].at.Sub(at), min(tt.limit, at.Sub(occurrences[0])/2), "occurrence %d", i+1)
			}
		})
	}
}

// Different messages of one object and reason, one a second. A watcher sees the first ones, and then those that
// the writes of the combined series contain.
func TestDifferentMessages(t *testing.T) {
	for n, want := range map[int]struct{ ours, theirs int }{20: {17, 20}, 30: {18, 25}} {
		for name, seen := range map[string]int{"compat/record": want.ours, "tools/record": want.theirs} {
			writes, _ := run(t, writers[name], loop{notes: true, next: func(at time.Duration) time.Duration {
				if at == time.Duration(n-1)*time.Second {
					return hours
				}
				return time.Second
			}})
			messages := map[string]bool{}
			for _, w := range writes {
				messages[strings.TrimPrefix(w.event.Message, series.CombinedPrefix)] = true
			}
			assert.Len(t, messages, seen, "%s, %d messages", name, n)
		}
	}
}
