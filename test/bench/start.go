package bench

import (
	"context"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// Start is how a process that is started again comes by the series of the one before,
// on a real API server.
type Start struct {
	// Events is how many there are on the server, all of series that go on.
	Events int `json:"events"`
	// Creating is how long it took to write them, with Workers requests at a time.
	Creating time.Duration `json:"creating"`
	Workers  int           `json:"workers"`
	// Rebuild is by listing, Adoption by name.
	Rebuild  Rebuild  `json:"rebuild"`
	Adoption Adoption `json:"adoption"`
}

// Rebuild is what it takes to list all Events, from the start of the broadcaster until
// it follows all of their series.
type Rebuild struct {
	Restored uint64        `json:"restored"`
	Wall     time.Duration `json:"wall"`
	CPU      time.Duration `json:"cpu"`
	Pages    uint64        `json:"pages"`
	// Allocated is how many bytes were allocated in all, Peak the most that there
	// was more of the heap than before, garbage included, and Heap what was left
	// of that.
	Allocated uint64 `json:"allocated"`
	Peak      int64  `json:"peak"`
	Heap      int64  `json:"heap"`
}

// Adoption is what it takes to go on with series that occur before anything was
// listed, or where nothing may be, until all have been written.
type Adoption struct {
	Series  int           `json:"series"`
	Adopted uint64        `json:"adopted"`
	Wall    time.Duration `json:"wall"`
	// Requests are by what they were for and what became of them.
	Requests map[string]uint64 `json:"requests"`
}

// startWorkers is how many requests are made at a time while Events are created, and
// while they are adopted.
const startWorkers = 8

// MeasureStart creates n Events on the API server of the tests, lists them, and adopts
// some.
func MeasureStart(t *testing.T, n, adopt int) Start {
	t.Helper()
	sink := &events.EventSinkImpl{Interface: apiserver.Clientset(t).EventsV1()}
	namespace := apiserver.Namespace(t)
	subjects := references(n)
	for i := range subjects {
		subjects[i].regarding.Object.(*corev1.ObjectReference).Namespace = namespace
	}
	s := Start{Events: n, Workers: startWorkers}
	opts := events.Options{Capacity: n, Workers: startWorkers, Namespaces: []string{namespace}}
	s.Creating = s.create(sink, opts, subjects)
	s.Rebuild.measure(t, sink, opts)
	s.Adoption.measure(t, sink, opts, subjects[:adopt])
	return s
}

// create writes an Event for a series of each subject and returns how long that took.
func (s *Start) create(sink events.EventSink, opts events.Options, subjects []subject) time.Duration {
	opts.QPS = -1
	opts.SkipList = true
	opts.ShutdownTimeout = time.Second
	b := events.NewBroadcasterWithOptions(sink, opts)
	defer b.Shutdown()
	r := &ours{Broadcaster: b, recorder: b.NewRecorder(scheme.Scheme, controller)}
	for range 2 { // before anything can be written, so that one request says it all
		for i := range subjects {
			r.eventf(&subjects[i])
		}
	}
	begin := time.Now()
	must(b.StartRecordingToSinkWithContext(klog.NewContext(context.Background(), logr.Discard())))
	must(b.Flush(context.Background()))
	return time.Since(begin)
}

// measure lists what is there. opts.Capacity is how much that is.
func (r *Rebuild) measure(t *testing.T, sink events.EventSink, opts events.Options) {
	t.Helper()
	heap := liveHeap()
	before := used()
	b := newOurs(sink, opts)
	defer b.close()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		objects := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		metrics.Read(objects)
		r.Peak = max(r.Peak, int64(objects[0].Value.Uint64())-heap)
		if r.Restored = b.Stats().Restored; r.Restored >= uint64(opts.Capacity) {
			break
		}
		require.True(t, time.Now().Before(deadline), "%d of %d restored after %v", r.Restored, opts.Capacity, patience)
	}
	u := used().since(before)
	r.Wall, r.CPU, r.Allocated = u.wall, u.cpu, u.bytes
	r.Pages = b.Stats().Writes[events.WriteKey{Kind: "list", Outcome: "written"}]
	r.Heap = liveHeap() - heap
}

// measure has subjects occur, each once, that have Events on the server.
func (a *Adoption) measure(t *testing.T, sink events.EventSink, opts events.Options, subjects []subject) {
	t.Helper()
	opts.SkipList = true
	b := newOurs(sink, opts)
	defer b.close()
	begin := time.Now()
	for i := range subjects {
		b.eventf(&subjects[i])
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, b.Flush(ctx))
	a.Wall = time.Since(begin)
	stats := b.Stats()
	a.Series, a.Adopted, a.Requests = len(subjects), stats.Adopted, make(map[string]uint64)
	for key, n := range stats.Writes {
		a.Requests[key.Kind+", "+key.Outcome] = n
	}
}
