package bench

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// Start is the cost of a restart: how a process continues the series of an earlier
// one on a real API server.
type Start struct {
	Events   int           `json:"events"`   // on the server, all of ongoing series
	Creating time.Duration `json:"creating"` // time to write them
	Workers  int           `json:"workers"`  // concurrent requests for creates and adoptions
	Rebuild  Rebuild       `json:"rebuild"`  // by listing
	Adoption Adoption      `json:"adoption"` // by name
}

// Rebuild is the cost of listing all Events, until the recorder tracks their series.
type Rebuild struct {
	Restored  uint64        `json:"restored"`
	Wall      time.Duration `json:"wall"`
	CPU       time.Duration `json:"cpu"`
	Pages     uint64        `json:"pages"`
	Allocated uint64        `json:"allocated"` // bytes in total
	Peak      int64         `json:"peak"`      // maximum heap growth in bytes, including garbage
	Heap      int64         `json:"heap"`      // final heap growth in bytes
}

// Adoption is the cost of continuing series that occur before a list, or without one,
// until all of them are written.
type Adoption struct {
	Series   int               `json:"series"`
	Adopted  uint64            `json:"adopted"`
	Wall     time.Duration     `json:"wall"`
	Requests map[string]uint64 `json:"requests"` // by kind and outcome
}

// MeasureStart creates n Events on the API server of the tests, lists them, and adopts
// some of them.
func MeasureStart(t *testing.T, n, adopt int) Start {
	t.Helper()
	sink := &events.EventSinkImpl{Interface: apiserver.Clientset(t).EventsV1()}
	namespace := apiserver.Namespace(t)
	subjects := references(n)
	for i := range subjects {
		subjects[i].regarding.Object.(*corev1.ObjectReference).Namespace = namespace
	}
	s := Start{Events: n, Workers: 8}
	// A list fills at most half of the table.
	opts := events.Options{Capacity: 2 * (n + 1), Workers: s.Workers, Namespaces: []string{namespace}}
	skipList := opts
	skipList.SkipList = true

	b := prepareOurs(sink, skipList)
	for range 2 { // before the start, so that a single request writes both
		for i := range subjects {
			b.eventf(&subjects[i])
		}
	}
	begin := time.Now()
	b.start()
	must(b.Flush(context.Background()))
	s.Creating = time.Since(begin)
	b.close()

	s.Rebuild.measure(t, sink, opts, uint64(n))
	s.Adoption.measure(t, sink, skipList, subjects[:adopt])
	return s
}

// measure lists n Events.
func (r *Rebuild) measure(t *testing.T, sink events.EventSink, opts events.Options, n uint64) {
	t.Helper()
	heap := liveHeap()
	before := used()
	b := newOurs(sink, opts)
	defer b.close()
	b.list()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		r.Peak = max(r.Peak, int64(heapNow())-heap)
		if r.Restored = b.Stats().Restored; r.Restored >= n {
			break
		}
		require.True(t, time.Now().Before(deadline), "restored %d of %d series after %v", r.Restored, n, patience)
	}
	u := used().since(before)
	r.Wall, r.CPU, r.Allocated = u.wall, u.cpu, u.bytes
	r.Pages = b.Stats().Writes[events.WriteKey{Kind: "list", Outcome: "written"}]
	r.Heap = liveHeap() - heap
}

// measure emits one event about each subject. All of them have Events on the server.
func (a *Adoption) measure(t *testing.T, sink events.EventSink, opts events.Options, subjects []subject) {
	t.Helper()
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
