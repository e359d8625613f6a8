package events

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/eventseries/eventseries/internal/fakeapi"
	"github.com/eventseries/eventseries/internal/workload"
	"github.com/eventseries/eventseries/series"
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
	replay  *replay
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
	faults  []*fault // that are active
	dropped map[DropReason]uint64
	tried   map[string]int
	salted  map[string]bool // names that were chosen because of a stranger, and are kept
	created map[string]created
	always  *fault         // a webhook that changes Events the whole time; nil if there is none
	denied  map[string]int // looks at names that were denied in a row
	late    int            // occurrences of creates that were handled late, when another name had been chosen
}

// created is what a process has sent to create an Event.
type created struct {
	base, instance string
	first, at      time.Time
	isSingle       bool // a look has found it when it had occurred once
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
	name    string
	most    time.Duration
	before  hook // returns the error instead of the response
	after   hook // the same, although the request took effect
	vague   bool // the recorder cannot know whether requests took effect, or who counted what
	mild    bool // nothing is dropped because of it, and nobody else writes
	refuses bool // requests are refused
	admit   func(verb string, event *eventsv1.Event)
}

type hook func(context.Context, request) error

// allFaults returns all faults. Some strike in one namespace only, or for some objects.
func (s *soak) allFaults(namespace string, begin time.Time) []*fault {
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
	invalid := apierrors.NewInvalid(eventsv1.SchemeGroupVersion.WithKind("Event").GroupKind(), "x", nil)
	page := apierrors.NewGenericServerResponse(404, "post", eventResource, "", "default backend - 404", 0, true)
	// some strikes for a part of the objects, as an admission webhook does.
	part := uint32(2 + s.rng.IntN(5))
	some := func(strike hook) hook {
		return func(ctx context.Context, r request) error {
			h := fnv.New32a()
			fmt.Fprint(h, namespace, r.Namespace, r.Name)
			if r.Verb == "list" || h.Sum32()%part != 0 {
				return nil
			}
			return strike(ctx, r)
		}
	}
	const short, long = 30 * time.Minute, 80 * time.Minute // long is longer than an Event lives
	return []*fault{
		{name: "two leaders", most: short, vague: true},
		{name: "Events deleted", most: short},
		{name: "Events edited", most: short},
		{name: "policy refuses patches", most: long, refuses: true, before: here("patch", invalid)},
		{name: "policy refuses some objects", most: long, refuses: true, before: some(always(invalid))},
		{name: "503", most: long, mild: true, before: always(statusError(503, 0))},
		{name: "connection refused", most: long, mild: true, before: always(urlError(syscall.ECONNREFUSED))},
		{name: "push-back", most: long, mild: true, before: always(statusError(429, 0))},
		{name: "push-back with Retry-After", most: long, mild: true, before: always(statusError(429, 20))},
		{name: "page of a proxy", most: long, mild: true, before: always(page)},
		{name: "invalid credentials", most: long, before: always(apierrors.NewUnauthorized("expired"))},
		{name: "no response", most: long, before: never},
		{name: "lost response", most: short, vague: true, after: lose},
		{name: "late request", most: short, vague: true, before: delay(60)},
		{name: "slow and lost response", most: short, vague: true, before: delay(20), after: lose},
		{name: "role taken", most: long, before: here("", statusError(403, 0))},
		{name: "permission to patch taken", most: long, before: here("patch", statusError(403, 0))},
		{name: "quota", most: long, before: here("create", statusError(403, 0))},
		s.webhook(),
		{name: "webhook", most: long, before: here("", statusError(500, 0))},
		{name: "webhook denies some objects", most: long, before: some(always(statusError(403, 0)))},
		{name: "webhook fails for some objects", most: long, before: some(always(statusError(500, 0)))},
		{name: "webhook hangs for some objects", most: long, before: some(never)},
		{name: "webhook hangs in a namespace", most: long, before: func(ctx context.Context, r request) error {
			if r.Namespace != namespace {
				return nil
			}
			time.Sleep(10 * time.Second)
			return statusError(500, 0)
		}},
		{name: "rate limit of a namespace", most: long, before: here("", statusError(429, 0))},
		{name: "full etcd", most: long, before: func(_ context.Context, r request) error {
			if r.Verb == "list" {
				return nil
			}
			return statusError(500, 0)
		}},
		{name: "namespace deleted", most: long, refuses: true, before: func(_ context.Context, r request) error {
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

// webhook returns a webhook that changes a field of the key in new Events, or their state.
func (s *soak) webhook() *fault {
	fields := slices.Sorted(maps.Keys(fakeapi.Fields))
	field := fields[s.rng.IntN(len(fields))]
	return &fault{name: "webhook changes " + field, most: 80 * time.Minute, mild: true, admit: func(verb string, event *eventsv1.Event) {
		if verb == "create" || field == "state" {
			fakeapi.Fields[field](event)
		}
	}}
}

func (s *soak) admit(verb string, event *eventsv1.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range append(slices.Clone(s.faults), s.always) {
		if f != nil && f.admit != nil {
			f.admit(verb, event)
			s.tried[f.name]++
		}
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
	if r.Verb == "create" {
		s.checkOne(r)
	}
	time.Sleep(5 * time.Millisecond)
	err := s.strike(ctx, r, func(f *fault) hook { return f.before })
	if isLook := r.Body == "{}"; isLook {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.denied[r.Name]++; !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) {
			delete(s.denied, r.Name)
		}
	}
	return err
}

func (s *soak) after(ctx context.Context, r request) error {
	if r.Verb == "create" && r.Err == nil {
		event := &eventsv1.Event{}
		assert.NoError(s.t, json.Unmarshal([]byte(r.Body), event))
		found, err := series.FromEvent(event)
		assert.NoError(s.t, err)
		found.Key.ReportingInstance = ""
		base := found.Key.Name(0)
		s.mu.Lock()
		for name, other := range s.created {
			if name != r.Name && other.base == base && other.first.Equal(found.First) && other.at.After(r.Time) {
				s.late += int(found.Count) // a stranger's Event has expired that a look has found in between
			}
		}
		begun := r.Time // the recorder forgets the Event EventTTL after the attempt that began first
		if seen, ok := s.created[r.Name]; ok && seen.first.Equal(found.First) {
			begun = seen.at
		}
		s.created[r.Name] = created{base, event.ReportingInstance, found.First, begun, false}
		s.mu.Unlock()
	}
	if isLook := r.Body == "{}"; isLook && r.Err == nil {
		isSingle := slices.ContainsFunc(s.api.Events(), func(event eventsv1.Event) bool { return event.Name == r.Name && event.Series == nil })
		s.mu.Lock()
		if seen, ok := s.created[r.Name]; ok && isSingle {
			seen.isSingle = true
			s.created[r.Name] = seen
		}
		s.mu.Unlock()
	}
	err := s.strike(ctx, r, func(f *fault) hook { return f.after })
	if err == nil && apierrors.IsNotFound(r.Err) && strings.Contains(r.Body, `"series"`) {
		s.audit.Missing(r.Namespace, r.Name)
	}
	return err
}

// checkOne checks that an object has no other Event than the one that a leader creates. Each
// has one key. An Event of the future is that of a stranger: a clock was wrong. A name that was
// chosen then does not change. One that was denied three looks chooses a name of its own.
func (s *soak) checkOne(r request) {
	event := &eventsv1.Event{}
	assert.NoError(s.t, json.Unmarshal([]byte(r.Body), event))
	s.audit.Creating(event)
	found, err := series.FromEvent(event)
	assert.NoError(s.t, err)
	found.Key.ReportingInstance = ""
	base := found.Key.Name(0)
	s.mu.Lock()
	isKept := s.salted[r.Name]
	s.salted[r.Name] = r.Name != base
	isBlind := r.Name == found.Key.UniqueName(event.EventTime.Time) && s.denied[base] >= 3
	known := maps.Clone(s.created)
	s.mu.Unlock()
	if isKept || isBlind || slices.ContainsFunc(s.leaders, s.isWrong) { // to one with a wrong clock, times are impossible
		return
	}
	const skew = 10*time.Minute - 5*time.Minute // that of a recorder, whose clock can be late
	for _, other := range s.api.Events() {
		if other.Namespace != r.Namespace || other.Name == r.Name || other.Regarding.Name != event.Regarding.Name {
			continue
		}
		last, has := other.EventTime.Time, known[other.Name]
		if other.Series != nil {
			last = other.Series.LastObservedTime.Time
		}
		// If it has a salt, a stranger had its name, and has expired since. If a webhook has changed an
		// Event that has occurred once, no other process knows it, nor does this one when it has forgotten it.
		isForgotten := has.instance != event.ReportingInstance || r.Time.Sub(has.at) > s.api.TTL-time.Second
		isChanged := (other.Series == nil || has.isSingle) && isForgotten &&
			(other.Reason != event.Reason || other.Type != event.Type || other.Action != event.Action || other.Related != nil ||
				other.Regarding != event.Regarding || other.ReportingController != event.ReportingController)
		isStranger := last.Sub(s.clock.Now()) > skew || other.Name != has.base || isChanged
		s.audit.Check(isStranger, "two Events about %s: %s and %s", other.Regarding.Name, other.Name, r.Name)
	}
}

// isWrong reports whether the wall clock of a leader differs by more than it can from the others.
func (s *soak) isWrong(leader *replica) bool {
	return leader.clock.Now().Round(0).Sub(s.clock.Now().Round(0)).Abs() > 5*time.Minute
}

// strike runs the hooks of the active faults until one fails the request.
func (s *soak) strike(ctx context.Context, r request, which func(*fault) hook) error {
	s.mu.Lock()
	faults := slices.Clone(s.faults)
	s.mu.Unlock()
	for _, f := range faults {
		if run := which(f); run != nil {
			if err := run(ctx, r); err != nil {
				s.try(f.name)
				return err
			}
		}
	}
	return nil
}

// begin begins a fault, which may have a namespace.
func (s *soak) begin(f *fault, namespace string) {
	s.mu.Lock()
	s.faults = append(s.faults, f)
	s.mu.Unlock()
	for i, event := range s.api.Events() {
		if f.name == "Events deleted" && i%3 == 0 || f.name == "namespace deleted" && event.Namespace == namespace {
			require.NoError(s.t, s.api.Delete(event.Namespace, event.Name))
			s.try("Events deleted")
		}
	}
	if f.name == "Events edited" {
		for _, event := range s.api.Events() {
			event.Labels = maps.Clone(event.Labels)
			metav1.SetMetaDataLabel(&event.ObjectMeta, "example.com/edited", fmt.Sprint(s.tick))
			s.api.Put(&event)
		}
	}
	if f.name == "two leaders" {
		s.try(f.name)
		s.audit.Share(true)
		s.start()
	}
}

// end ends a fault.
func (s *soak) end(f *fault) {
	s.mu.Lock()
	s.faults = slices.DeleteFunc(s.faults, func(other *fault) bool { return other == f })
	s.mu.Unlock()
	if f.name == "two leaders" && len(s.leaders) > 1 {
		s.stop()
		time.Sleep(10 * time.Millisecond) // what it canceled reaches the server before the next fault ends
		s.audit.Share(false)
	}
}

// options returns random options. Half of the processes have the default windows, and half
// the other defaults.
func (s *soak) options() Options {
	opts := Options{EventTTL: s.api.TTL}
	if s.rng.IntN(2) == 0 {
		opts.FinishAfter = time.Second + time.Duration(s.rng.Int64N(int64(15*time.Minute)))
		opts.MaxWindow = opts.FinishAfter * time.Duration(1+s.rng.IntN(8))
	}
	if s.rng.IntN(2) == 0 {
		opts.QPS = []float32{-1, 20, 200}[s.rng.IntN(3)]
		opts.workers = 1 + s.rng.IntN(16)
		opts.FirstHeartbeat = time.Duration(1+s.rng.IntN(120)) * time.Second
		opts.ShutdownTimeout = time.Duration(5+s.rng.IntN(60)) * time.Second
	}
	return opts
}

// start starts another replica. Its clock is wrong by minutes.
func (s *soak) start() {
	s.replica++
	r := &replica{clock: &machineClock{boot: s.clock.boot, begin: s.clock.begin}}
	r.clock.setBy(time.Duration(s.rng.IntN(600)-300) * time.Second)
	opts := s.options()
	opts.Scope, opts.listLimit = SameController, listLimit(s.replica%2 != 0)
	opts.ReportingInstance = fmt.Sprint("replica-", s.replica)
	opts.clock = r.clock
	opts.OnDrop = func(d Drop) {
		s.audit.Dropped(d.Key.Regarding.Namespace, d.Key.Regarding.Name)
		s.replay.dropped(d)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.dropped[d.Reason] += uint64(d.Count)
	}
	r.Broadcaster = newBroadcaster(s.replay.sink(soakSink{&s.api}), opts)
	s.replay.fix(r.Broadcaster)
	r.recorder = r.NewRecorder(testScheme(), controller)
	require.NoError(s.t, r.StartRecordingToSinkWithContext(klog.NewContext(context.Background(), logr.Discard())))
	s.leaders = append(s.leaders, r)
	s.replay.settle() // a list has the first token
}

// stop stops the oldest replica. If it is the only one, the books must balance.
func (s *soak) stop() {
	s.leaders[0].Shutdown()
	if s.leaders = s.leaders[1:]; len(s.leaders) == 0 {
		s.balance()
	}
}

// balance fails the test if occurrences are neither on the server nor dropped, or both.
func (s *soak) balance() {
	pending := s.pending()
	s.mu.Lock()
	doubtful := int(s.audit.Doubtful()) + s.late
	s.mu.Unlock()
	require.LessOrEqual(s.t, pending, doubtful, "occurrences that are neither on the server nor dropped")
	require.GreaterOrEqual(s.t, pending, -doubtful, "occurrences that count twice")
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
		s.balance()
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
		s.replay.settle()
		s.emitted++
	}
	return ticks
}

// soakSettles is the bound of liveness: when no fault has struck for half an hour, nothing
// has waited for longer. A series that fails waits for at most 5 minutes, and one that
// probes a closed gate for 2; a Normal gives way to Warnings for 5. One that was refused
// waits for half an hour and the jitter.
const (
	soakSettles              = 15 * time.Minute
	soakSettlesAfterRefusals = 40 * time.Minute
)

// slot lets two hours pass, with one to three faults, which can coincide.
func (s *soak) slot() {
	type episode struct {
		*fault
		namespace  string
		begin, end int
	}
	var episodes []episode
	settles, jump, back := soakSettles, s.rng.IntN(soakSlot), s.rng.IntN(soakSlot)
	for range 1 + s.rng.IntN(3) {
		e := episode{namespace: s.anyNamespace(), begin: s.rng.IntN(60)}
		faults := s.allFaults(e.namespace, time.Now().Add(time.Duration(e.begin)*soakTick))
		e.fault = faults[s.rng.IntN(len(faults))]
		if clash := func(other episode) bool { return other.vague && !e.mild || e.vague && !other.mild }; slices.ContainsFunc(episodes, clash) {
			continue // what is dropped can have reached the server, as the limitations say
		}
		if overlap := e.name == "two leaders"; overlap && slices.ContainsFunc(s.leaders, s.isWrong) {
			continue // each would be a stranger to the other
		} else if overlap {
			jump, back = -1, -1
		}
		if e.refuses {
			settles = soakSettlesAfterRefusals
		}
		e.end = e.begin + 6 + s.rng.IntN(int(e.most/soakTick)-6)
		if e.vague { // or the recorder drops what the server stores
			e.end = min(e.end, e.begin+int(s.api.TTL/2/soakTick))
		}
		episodes = append(episodes, e)
	}
	by := time.Duration(s.rng.IntN(2*3600)-3600) * time.Second
	if s.rng.IntN(4) == 0 {
		by *= 48
	}
	changes := s.rng.IntN(8) == 0
	for tick := range soakSlot {
		for _, e := range episodes {
			switch tick {
			case e.begin:
				s.begin(e.fault, e.namespace)
			case e.end:
				s.end(e.fault)
			}
		}
		switch tick {
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
	require.Empty(s.t, s.faults)
	require.Less(s.t, s.leaders[0].Stats().LongestWait, settles, "something waits although no fault strikes")
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
			replay:  newReplay(t, *soakSeed, fmt.Sprintf("-soak.seed=%d -soak.days=%d -soak.series=%d", *soakSeed, *soakDays, *soakSeries)),
			clock:   newMachineClock(),
			due:     make(map[int][]int),
			dropped: make(map[DropReason]uint64),
			tried:   make(map[string]int),
			salted:  make(map[string]bool),
			denied:  make(map[string]int),
			created: make(map[string]created),
		}
		s.audit = fakeapi.NewAudit(&s.api)
		s.api.TTL = 10*time.Minute + time.Duration(s.rng.Int64N(int64(3*time.Hour)))
		if s.rng.IntN(3) == 0 {
			s.always = s.webhook()
		}
		s.api.Admit = s.admit
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
		var firstCount, firstEvents, mostEvents, mostGone int
		for day := range *soakDays {
			for range 12 {
				s.slot()
			}
			heap, count := s.usage()
			pending, events := s.pending(), len(s.api.Events())
			s.mu.Lock()
			t.Logf("day %d: TTL %v, %d occurrences, %d pending, %d in expired and dropped Events, dropped %v, tried %v, %.1f MB, %d series, %d Events, %d goroutines",
				day+1, s.api.TTL.Round(time.Minute), s.emitted, pending, s.audit.Repeated(), s.dropped, s.tried, float64(heap)/1e6, s.leaders[0].Stats().Tracked, events, count)
			s.mu.Unlock()
			if day == 0 {
				firstHeap, firstCount, firstEvents = heap, count, events
			}
			// The server is in memory, too, and short windows make many Events, which the
			// audit remembers for a day. Its maps do not shrink.
			mostEvents, mostGone = max(mostEvents, events), max(mostGone, s.audit.Gone())
			require.Less(t, float64(heap), 1.25*float64(firstHeap)+4e6+5e3*float64(mostEvents-firstEvents)+500*float64(mostGone))
			require.LessOrEqual(t, count, firstCount+100)
		}
		s.stop()
		t.Logf("seed %d: the server and the drops account for all %d occurrences", *soakSeed, s.emitted)
	})
}
