package events

import (
	"context"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/eventseries/eventseries/internal/fakeapi"
	"github.com/eventseries/eventseries/internal/workload"
)

var (
	soakDays   = flag.Int("soak.days", 2, "virtual days of TestSoak")
	soakSeries = flag.Int("soak.series", 100, "series of TestSoak")
	soakSeed   = flag.Uint64("soak.seed", 1, "seed for the faults and occurrences of TestSoak")
)

// A day has twelve slots, and each slot has one fault. In the calm after the fault, the
// recorder writes what it could not write before, and the leader may change.
const (
	soakTick = 10 * time.Second
	soakSlot = int(2 * time.Hour / soakTick)
	soakCalm = int(90 * time.Minute / soakTick) // no fault lasts until then
)

// soak runs the leaders of a controller against a server with faults.
type soak struct {
	t       *testing.T
	rng     *rand.Rand // of the goroutine of the test
	api     fakeapi.Server
	audit   *fakeapi.Audit
	clock   *machineClock // is right
	leaders []*replica    // two while they overlap
	replica int           // number of the latest one
	objects []soakObject
	due     map[int][]int // the objects with an occurrence, by tick
	tick    int
	emitted uint64

	mu      sync.Mutex
	fault   fault
	dropped map[DropReason]uint64
	tried   map[string]int
}

// replica is one process of the controller.
type replica struct {
	*Broadcaster
	recorder EventRecorder
	clock    *machineClock
}

// soakObject is an object with one series.
type soakObject struct {
	pod  *corev1.Pod
	next func() time.Duration // the time to the next occurrence of a loop
	left int                  // occurrences of the loop
	wait time.Duration        // from the present tick to its next occurrence
}

// fault is what can happen to requests.
type fault struct {
	name   string
	most   time.Duration
	before hook // returns the error instead of the response
	after  hook // the same, although the request took effect
}

type hook func(context.Context, request) error

// faults returns all faults. Some strike in one namespace only.
func (s *soak) faults(namespace string, begin time.Time) []fault {
	here := func(verb string, err error) hook {
		return func(_ context.Context, r request) error {
			if r.Namespace == namespace && (verb == "" || verb == r.Verb) {
				return err
			}
			return nil
		}
	}
	// delay lets requests take up to so many seconds. The recorder waits for 30.
	delay := func(seconds uint32) hook {
		return func(_ context.Context, r request) error {
			s.try("slow request")
			time.Sleep(time.Duration(dice(r)%seconds) * time.Second)
			return nil
		}
	}
	lose := func(_ context.Context, r request) error {
		if dice(r)%2 == 0 {
			return io.ErrUnexpectedEOF
		}
		return nil
	}
	never := func(context.Context, request) error { time.Sleep(time.Minute); return io.EOF }
	page := apierrors.NewGenericServerResponse(404, "post", eventResource, "", "default backend - 404", 0, true)
	const short, long = 30 * time.Minute, 80 * time.Minute // long is longer than an Event lives
	return []fault{
		{name: "two leaders", most: short},
		{name: "Events deleted", most: short},
		{name: "503", most: long, before: always(statusError(503, 0))},
		{name: "connection refused", most: long, before: always(urlError(syscall.ECONNREFUSED))},
		{name: "push-back", most: long, before: always(statusError(429, 0))},
		{name: "push-back with Retry-After", most: long, before: always(statusError(429, 20))},
		{name: "page of a proxy", most: long, before: always(page)},
		{name: "invalid credentials", most: long, before: always(apierrors.NewUnauthorized("expired"))},
		{name: "no response", most: long, before: never},
		{name: "lost response", most: short, after: lose},
		{name: "late request", most: short, before: delay(60)},
		{name: "slow and lost response", most: short, before: delay(20), after: lose},
		{name: "role taken", most: long, before: here("", statusError(403, 0))},
		{name: "permission to patch taken", most: long, before: here("patch", statusError(403, 0))},
		{name: "quota", most: long, before: here("create", statusError(403, 0))},
		{name: "webhook", most: long, before: here("", statusError(500, 0))},
		{name: "namespace deleted", most: long, before: func(_ context.Context, r request) error {
			if r.Namespace != namespace || r.Verb != "create" {
				return nil
			}
			if r.Time.Sub(begin) < 2*time.Minute {
				return namespaceTerminating()
			}
			return apierrors.NewNotFound(corev1.Resource("namespaces"), r.Namespace)
		}},
	}
}

// dice returns a random number for a request.
func dice(r request) uint32 {
	h := fnv.New32a()
	fmt.Fprint(h, *soakSeed, r.Name, r.Time.UnixNano())
	return h.Sum32()
}

// soakSink sends requests like an HTTP client: it returns when the context ends, but the
// server may still handle the request.
type soakSink struct{ *fakeapi.Server }

func send[T any](ctx context.Context, request func(context.Context) (T, error)) (response T, _ error) {
	result := make(chan error, 1)
	var late T
	go func() {
		var err error
		late, err = request(context.WithoutCancel(ctx))
		result <- err
	}()
	select {
	case err := <-result:
		return late, err
	case <-ctx.Done():
		return response, ctx.Err()
	}
}

func (s soakSink) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	return send(ctx, func(ctx context.Context) (*eventsv1.Event, error) { return s.Server.Create(ctx, event) })
}

func (s soakSink) Patch(ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
	return send(ctx, func(ctx context.Context) (*eventsv1.Event, error) { return s.Server.Patch(ctx, event, data) })
}

func (s soakSink) List(ctx context.Context, namespace string, opts metav1.ListOptions) (*eventsv1.EventList, error) {
	return send(ctx, func(ctx context.Context) (*eventsv1.EventList, error) { return s.Server.List(ctx, namespace, opts) })
}

func (s *soak) anyNamespace() string { return fmt.Sprint("ns-", s.rng.IntN(10)) }

// try counts what the soak tries.
func (s *soak) try(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tried[what]++
}

func (s *soak) before(ctx context.Context, r request) error {
	s.try(r.Verb)
	time.Sleep(5 * time.Millisecond)
	return s.strike(ctx, r, func(f fault) hook { return f.before })
}

func (s *soak) after(ctx context.Context, r request) error {
	err := s.strike(ctx, r, func(f fault) hook { return f.after })
	if err == nil && apierrors.IsNotFound(r.Err) && strings.Contains(r.Body, `"series"`) {
		s.audit.Missing(r.Namespace, r.Name)
	}
	return err
}

// strike runs a hook of the current fault.
func (s *soak) strike(ctx context.Context, r request, which func(fault) hook) error {
	s.mu.Lock()
	f := s.fault
	s.mu.Unlock()
	run := which(f)
	if run == nil {
		return nil
	}
	err := run(ctx, r)
	if err != nil {
		s.try(f.name)
	}
	return err
}

// begin begins a fault, which may have a namespace.
func (s *soak) begin(f fault, namespace string) {
	s.mu.Lock()
	s.fault = f
	s.mu.Unlock()
	for i, event := range s.api.Events() {
		if f.name == "Events deleted" && i%3 == 0 || f.name == "namespace deleted" && event.Namespace == namespace {
			require.NoError(s.t, s.api.Delete(event.Namespace, event.Name))
			s.try("Events deleted")
		}
	}
}

// options returns random options, of which half have the default windows.
func (s *soak) options() Options {
	opts := Options{EventTTL: s.api.TTL}
	if s.rng.IntN(2) == 0 {
		opts.FinishAfter = time.Second + time.Duration(s.rng.Int64N(int64(15*time.Minute)))
		opts.MaxWindow = opts.FinishAfter * time.Duration(1+s.rng.IntN(8))
	}
	return opts
}

// start starts another replica. Its clock is wrong by minutes.
func (s *soak) start() {
	s.replica++
	r := &replica{clock: &machineClock{boot: s.clock.boot, begin: s.clock.begin}}
	r.clock.setBy(time.Duration(s.rng.IntN(600)-300) * time.Second)
	opts := s.options()
	opts.Scope, opts.SkipList = SameController, s.replica%2 == 0
	opts.ReportingInstance = fmt.Sprint("replica-", s.replica)
	opts.Clock = r.clock
	opts.OnDrop = func(d Drop) {
		s.audit.Dropped(d.Key.Regarding.Namespace, d.Key.Regarding.Name)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.dropped[d.Reason] += uint64(d.Count)
	}
	r.Broadcaster = NewBroadcasterWithOptions(soakSink{&s.api}, opts)
	r.recorder = r.NewRecorder(testScheme(), controller)
	require.NoError(s.t, r.StartRecordingToSinkWithContext(klog.NewContext(context.Background(), logr.Discard())))
	s.leaders = append(s.leaders, r)
}

// stop stops the oldest replica. If it is the only one, the books must balance.
func (s *soak) stop() {
	s.leaders[0].Shutdown()
	if s.leaders = s.leaders[1:]; len(s.leaders) == 0 {
		require.Zero(s.t, s.pending(), "occurrences that are neither on the server nor dropped, or twice if negative")
	}
}

// pending returns how many occurrences are neither on the server nor dropped.
func (s *soak) pending() int {
	require.Empty(s.t, s.audit.Problems())
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.audit.Delivered() - s.audit.Repeated()
	for _, n := range s.dropped {
		known += n
	}
	return int(s.emitted) - int(known)
}

// change replaces the leader. A leader that is killed has written everything, or the
// books could not balance: Flush does not wait for series that the server rejects.
func (s *soak) change() {
	leader := s.leaders[0]
	if s.rng.IntN(2) == 0 && len(leader.Stats().Dropped) == 0 {
		s.try("leader killed")
		require.NoError(s.t, leader.Flush(s.t.Context()))
		leader.dispatcher.Load().cancel()
		synctest.Wait()
		require.Zero(s.t, s.pending())
		s.leaders = nil
	} else {
		s.try("leader stopped")
		s.stop()
	}
	s.start()
}

// occur emits an event about an object, and returns the ticks until the next one. Of 200
// objects one is in a hot loop, 39 are in others, which end and begin again, and the rest
// has an event now and then.
func (s *soak) occur(i int) (ticks int) {
	o, times, ticks := &s.objects[i], 1, 360+s.rng.IntN(3600)
	switch {
	case i%200 == 0:
		times, ticks = 10, 1
	case i%5 == 0 && o.left > 0:
		for times = 0; o.wait < soakTick && o.left > 0; o.left-- {
			times++
			o.wait += o.next()
		}
		ticks = int(o.wait / soakTick)
		o.wait -= time.Duration(ticks) * soakTick
		ticks = max(ticks, 1) // the loop has ended
	case i%5 == 0:
		loops := workload.Loops()[1:] // without the hot one
		o.next, o.left, o.wait = loops[s.rng.IntN(len(loops))].Gaps(s.rng.Uint64()), 1+s.rng.IntN(200), 0
		times, ticks = 0, 60+s.rng.IntN(2000)
	case i%10 == 1:
		times = 2
	}
	eventtype := []string{"Normal", "Normal", "Warning"}[i%3]
	for range times {
		leader := s.leaders[s.rng.IntN(len(s.leaders))]
		leader.recorder.Eventf(o.pod, nil, eventtype, "Tested", "Testing", "note")
		s.emitted++
	}
	return ticks
}

// slot lets two hours pass.
func (s *soak) slot() {
	begin, namespace := s.rng.IntN(60), s.anyNamespace()
	faults := s.faults(namespace, time.Now().Add(time.Duration(begin)*soakTick))
	f := faults[s.rng.IntN(len(faults))]
	end := begin + 6 + s.rng.IntN(int(f.most/soakTick)-6)
	jump, back := s.rng.IntN(soakSlot), s.rng.IntN(soakSlot)
	by := time.Duration(s.rng.IntN(2*3600)-3600) * time.Second
	if s.rng.IntN(4) == 0 {
		by *= 48
	}
	changes := s.rng.IntN(8) == 0
	for tick := range soakSlot {
		switch tick {
		case begin:
			s.begin(f, namespace)
			if f.name == "two leaders" {
				s.try(f.name)
				s.start()
				end = begin + 6
			}
		case end:
			s.begin(fault{}, "")
			if len(s.leaders) > 1 {
				s.stop()
			}
		case soakCalm:
			s.api.Forget()
			s.audit.Forget(24 * time.Hour)
		case soakCalm + 60:
			if changes {
				s.change()
			}
		}
		if tick == jump || tick == back {
			s.try("clock set")
			s.leaders[0].clock.setBy(by)
			by = -by
		}
		for _, i := range s.due[s.tick] {
			next := s.tick + s.occur(i)
			s.due[next] = append(s.due[next], i)
		}
		delete(s.due, s.tick)
		s.tick++
		// No two series of an object begin in the same microsecond, whatever the clocks do.
		time.Sleep(soakTick + time.Duration(s.rng.IntN(1000))*time.Microsecond)
	}
}

// usage returns the heap in bytes, and the goroutines. Flush comes first.
func (s *soak) usage() (heap uint64, count int) {
	require.NoError(s.t, s.leaders[0].Flush(s.t.Context()))
	synctest.Wait()
	s.api.Forget()
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc, goroutines(s.t)
}

// A controller runs for days while servers, roles, namespaces, clocks and leaders change.
// No occurrence is lost in silence or counted twice, and memory does not grow.
func TestSoak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &soak{
			t:       t,
			rng:     rand.New(rand.NewPCG(*soakSeed, 0)),
			clock:   newMachineClock(),
			due:     make(map[int][]int),
			dropped: make(map[DropReason]uint64),
			tried:   make(map[string]int),
		}
		s.audit = fakeapi.NewAudit(&s.api)
		s.api.TTL = 10*time.Minute + time.Duration(s.rng.Int64N(int64(3*time.Hour)))
		s.api.Before(s.before)
		s.api.After(s.after)
		for i := range *soakSeries {
			s.objects = append(s.objects, soakObject{pod: testPod(i)})
			s.objects[i].pod.Namespace = s.anyNamespace()
			tick := s.rng.IntN(soakSlot)
			s.due[tick] = append(s.due[tick], i)
		}
		t.Cleanup(func() {
			for _, leader := range s.leaders {
				leader.Shutdown()
			}
			time.Sleep(time.Minute) // late requests end
		})
		s.start()
		var firstHeap uint64
		var firstCount int
		for day := range *soakDays {
			for range 12 {
				s.slot()
			}
			heap, count := s.usage()
			pending := s.pending()
			s.mu.Lock()
			t.Logf("day %d: TTL %v, %d occurrences, %d pending, %d in expired and dropped Events, dropped %v, tried %v, %.1f MB, %d goroutines",
				day+1, s.api.TTL.Round(time.Minute), s.emitted, pending, s.audit.Repeated(), s.dropped, s.tried, float64(heap)/1e6, count)
			s.mu.Unlock()
			if day == 0 {
				firstHeap, firstCount = heap, count
			}
			require.Less(t, float64(heap), 1.25*float64(firstHeap)+4e6)
			require.LessOrEqual(t, count, firstCount+3*defaultWorkers)
		}
		s.stop()
		t.Logf("seed %d: the server and the drops account for all %d occurrences", *soakSeed, s.emitted)
	})
}
