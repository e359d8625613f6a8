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

// likeRecord are the writers that take the place of tools/record. The last one takes that of
// tools/events, which begins no Event for another note.
var likeRecord = []string{"compat/record", "NewBroadcaster", "NewManager", "GetEventRecorder"}

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
	records                   int
	age, countAge, messageAge time.Duration // at worst: how much older than the latest occurrence
	never, noCount            bool
}

// read has a reader start after a time, and looks each minute.
func read(r reader, writes []write, occurrences []time.Time, after time.Duration) (got reading) {
	begin := occurrences[0]
	start, known := begin.Add(after), map[string]bool{}
	var shown time.Time
	var count int32
	attempt := 1
	take := func(w write, now time.Time, created bool) {
		at, n, ok := r.show(sight{Event: w.event, now: now, start: start.Add(-time.Second), created: created, written: w.at})
		if ok {
			got.records++
			shown, count = at, n
			_, _ = fmt.Sscanf(strings.TrimPrefix(w.event.Message, series.CombinedPrefix), "attempt %d", &attempt)
		}
	}
	initial := map[string]write{}
	i := 0
	for ; i < len(writes) && writes[i].at.Before(start); i++ {
		initial[writes[i].event.Name] = writes[i]
	}
	for name, w := range initial {
		known[name] = true
		take(w, start, true)
	}
	// A reader that starts in the middle waits for the next write.
	for now := start.Add(10 * time.Minute); now.Before(begin.Add(hours)); now = now.Add(time.Minute) {
		for ; i < len(writes) && !writes[i].at.After(now); i++ {
			name := writes[i].event.Name
			take(writes[i], writes[i].at, !known[name])
			known[name] = true
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
	return got
}

// readsLatest reports whether a reader shows the latest time of a series from events.k8s.io/v1.
func readsLatest(r reader) bool {
	last := time.Now()
	at, _, _ := r.show(sight{now: last, written: last, Event: &corev1.Event{
		EventTime: metav1.NewMicroTime(last.Add(-time.Minute)),
		Series:    &corev1.EventSeries{Count: 2, LastObservedTime: metav1.NewMicroTime(last)},
	}})
	return at.Equal(last)
}

// cell is what the table says of a reading.
func (r reading) cell() string {
	switch {
	case r.records == 0:
		return "nothing"
	case r.never:
		return "no time"
	case r.age > time.Hour:
		return "first time"
	}
	const step = 5 * time.Minute // times of a few milliseconds decide about minutes
	text := fmt.Sprintf("%d min", (r.age+step-1)/step*5)
	if r.noCount {
		text += ", no count"
	}
	return text
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
	{"8 min", every(8 * time.Minute), false},
	{"back-off", func(at time.Duration) time.Duration { return min(max(at, 10*time.Second), 5*time.Minute) }, false},
	{"45 s", every(45 * time.Second), false},
	{"200 s", every(200 * time.Second), false},
	{"irregular", func(at time.Duration) time.Duration { return 20*time.Second + at/time.Second*7919%200*time.Second }, false},
	{"10 s, with notes", every(10 * time.Second), true},
	{"8 min, with notes", every(8 * time.Minute), true},
}

func every(d time.Duration) func(time.Duration) time.Duration {
	return func(time.Duration) time.Duration { return d }
}

// No reader shows less, or older times and counts, than it does of the recorder of client-go that ours
// replaces.
func TestReaders(t *testing.T) {
	var table strings.Builder
	table.WriteString("| program | `compat/record`, `compat.NewBroadcaster`, `NewManager` | `tools/record` | `EventSinkImpl` | `tools/events` |\n| --- | --- | --- | --- | --- |\n")
	for _, loop := range loops {
		t.Run(loop.name, func(t *testing.T) {
			stored, occurrences := map[string][]write{}, []time.Time(nil)
			for name, start := range writers {
				stored[name], occurrences = run(t, start, loop)
			}
			cells := func(r reader, name string) string {
				whole, middle := read(r, stored[name], occurrences, 0).cell(), read(r, stored[name], occurrences, hours/2).cell()
				if whole == middle {
					return whole
				}
				return whole + "; " + middle
			}
			for _, r := range readers {
				if loop.name == "10 s" {
					for _, ours := range likeRecord {
						assert.Equal(t, cells(r, "compat/record"), cells(r, ours), "%s, %s: they share a column", r.name, ours)
					}
					assert.Equal(t, strings.ReplaceAll(cells(r, "compat/record"), "5 min", "30 min"), cells(r, "NewSink"), "%s: the page says so", r.name)
					fmt.Fprintf(&table, "| %s | %s | %s | %s | %s |\n", r.name, cells(r, "compat/record"), cells(r, "tools/record"), cells(r, "EventSinkImpl"), cells(r, "tools/events"))
				}
				for _, after := range []time.Duration{0, hours / 2} {
					compare := func(ours, theirs string, old time.Duration) {
						a, b := read(r, stored[ours], occurrences, after), read(r, stored[theirs], occurrences, after)
						what := fmt.Sprintf("%s, from %v: %s %+v, %s %+v", r.name, after, ours, a, theirs, b)
						assert.True(t, a.records > 0 || b.records == 0, what)
						assert.LessOrEqual(t, a.age, max(b.age, old), what)
						if !loop.notes { // the first ones have Events of their own
							assert.LessOrEqual(t, a.countAge, max(b.countAge, old), what)
						}
						assert.LessOrEqual(t, a.messageAge, max(b.messageAge, old), what)
					}
					const second = time.Second // lastTimestamp is truncated
					for _, ours := range likeRecord {
						if ours != "GetEventRecorder" || !loop.notes {
							compare(ours, "tools/record", 5*time.Minute+second)
						}
					}
					// After 6 minutes, tools/events begins another Event, with another first time and note.
					if !strings.HasPrefix(loop.name, "8 min") || readsLatest(r) && !loop.notes {
						compare("EventSinkImpl", "tools/events", 30*time.Minute+second)
						compare("NewSink", "tools/events", 30*time.Minute+second)
						compare("GetEventRecorder", "tools/events", 5*time.Minute+second)
					}
				}
			}
			for _, ours := range likeRecord {
				assert.LessOrEqual(t, len(stored[ours]), len(stored["tools/record"]), ours)
			}
			for name, writes := range stored {
				t.Logf("%s: %d writes", name, len(writes))
			}
		})
	}

	const begin, end = "<!-- written by test/readers -->\n", "<!-- end -->\n"
	path := filepath.Join("..", "..", "docs", "consumers.md")
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	before, rest, _ := strings.Cut(string(page), begin)
	_, after, found := strings.Cut(rest, end)
	require.True(t, found, "the page has no place for the table")
	table.WriteString("\nWith `compat.NewSink`, a broadcaster of package `events` has 30 min where the first column has 5.\n")
	want := before + begin + "\n" + table.String() + "\n" + end + after
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
