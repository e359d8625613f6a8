package chaos

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	restclient "k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/internal/wallclock"
	"github.com/eventseries/eventseries/internal/wiring"
	"github.com/eventseries/eventseries/internal/workload"
)

// Settings of the recorders. Series must go through all states, both during faults and
// between them.
const (
	heartbeatInterval = 2 * time.Second
	finishAfter       = 3 * time.Second // the mean of events.Options.FinishAfter
	requestTimeout    = 3 * time.Second
	// With the default rate limit, a short-lived process would spend most of its time
	// on adopting series.
	requestsPerSecond = 200
	// shortShutdown is a timeout that is too short to write everything.
	shortShutdown = 300 * time.Millisecond
)

const (
	namespace       = "chaos"
	deniedNamespace = "chaos-denied"

	keysPerEmitter               = 60
	goroutinesPerBatch           = 3
	minFlushPause, maxFlushPause = 200 * time.Millisecond, 2 * time.Second
	// flushTimeout cancels a flush. The next one covers its batches too. On a busy
	// machine, to write all series takes seconds.
	flushTimeout = 10 * time.Second
)

// emitterVariable is the environment variable with the emitterConfig of an emitter
// process.
const emitterVariable = "EVENTSERIES_CHAOS_EMITTER"

type emitterConfig struct {
	Emitter, Process int // numbers
	Seed             uint64
	Servers          []string // the host and port of each
	Token            string
	CAData           []byte
	Balancer         string // the file of the balancer
	Controller       string
	Instance         string
	Scope            events.Scope
	Lists            bool
	FinishAfter      time.Duration
	MaxWindow        time.Duration
	Clock            time.Duration // how far the wall clock is ahead
	Shutdown         time.Duration // events.Options.ShutdownTimeout
	Flush            time.Duration // timeout of a flush before the shutdown; 0 means no flush
}

// shiftedClock is a clock whose wall clock is ahead or behind.
type shiftedClock struct {
	clock.RealClock
	by time.Duration
}

func (c shiftedClock) Now() time.Time { return wallclock.Set(time.Now(), c.by) }

func exitOrphaned() { os.Exit(3) }

// stopCommand is the line on standard input that shuts an emitter down. End of input
// terminates it immediately.
const stopCommand = "stop"

func runEmitter(variable string, in io.Reader, out io.Writer) int {
	r := &reporter{begin: time.Now(), out: out}
	var config emitterConfig
	err := json.Unmarshal([]byte(variable), &config)
	if err == nil {
		err = emit(config, in, r)
	}
	if err != nil {
		r.write(report{Failed: err.Error()})
		return 1
	}
	return 0
}

func emit(config emitterConfig, in io.Reader, r *reporter) error {
	rest := &restclient.Config{Host: "https://" + config.Servers[0], BearerToken: config.Token, Timeout: requestTimeout}
	rest.CAData = config.CAData
	rest.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &balancer{next, config.Servers, config.Balancer}
	})
	clients, err := kubernetes.NewForConfig(rest)
	if err != nil {
		return fmt.Errorf("chaos: clients: %w", err)
	}
	e := &emitter{config: config, reports: r}
	e.broadcaster, err = events.New(&wiring.Sink{
		EventSink: newAccountingSink(&events.EventSinkImpl{Interface: clients.EventsV1()}, r),
		Clock:     shiftedClock{by: config.Clock},
	}, events.Options{
		ReportingInstance: config.Instance,
		Scope:             config.Scope,
		Namespaces:        []string{namespace, deniedNamespace},
		List:              ptr.To(config.Lists), // at once, not in ten minutes
		HeartbeatInterval: heartbeatInterval,
		FinishAfter:       config.FinishAfter,
		MaxWindow:         config.MaxWindow,
		QPS:               requestsPerSecond,
		ShutdownTimeout:   config.Shutdown,
		OnDrop:            e.onDrop,
	})
	if err != nil {
		return err
	}
	e.recorder = e.broadcaster.NewRecorderWithOptions(scheme.Scheme, config.Controller, events.RecorderOptions{})
	if err := e.broadcaster.StartRecordingToSinkWithContext(context.Background()); err != nil {
		return err
	}
	e.run(in)
	return nil
}

type emitter struct {
	config      emitterConfig
	broadcaster *events.Broadcaster
	recorder    events.Recorder
	reports     *reporter

	mu   sync.Mutex
	done int // number of emitted batches
}

func (e *emitter) run(in io.Reader) {
	stop := make(chan struct{})
	go func() {
		for lines := bufio.NewScanner(in); lines.Scan(); {
			if lines.Text() == stopCommand {
				close(stop)
			}
		}
		exitOrphaned()
	}()
	ctx, cancel := context.WithCancel(context.Background())
	var background sync.WaitGroup
	background.Go(func() { e.flushRepeatedly(ctx) })
	e.emitUntil(stop)
	cancel()
	background.Wait()

	if e.config.Flush > 0 {
		if err := e.flush(context.Background(), e.config.Flush); err != nil {
			e.reports.write(report{Failed: err.Error()})
		}
	}
	e.broadcaster.Shutdown()
	e.reports.write(report{Stats: statsOf(e.broadcaster.Stats()), Heap: liveHeap(), Ended: true})
}

func (e *emitter) emitUntil(stop <-chan struct{}) {
	pattern := newPattern(e.config.Seed, e.config.Emitter, e.config.Process, keysPerEmitter)
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for seq := 1; ; {
		select {
		case <-stop:
			return
		case <-ticker.C:
		}
		batch := pattern.next()
		if len(batch) == 0 {
			continue
		}
		e.reports.write(report{Seq: seq, Batch: batch})
		e.emitBatch(seq, batch)
		e.reports.write(report{Seq: seq, Done: true})
		e.mu.Lock()
		e.done = seq
		e.mu.Unlock()
		seq++
	}
}

// emitBatch emits a batch from several goroutines, which share keys.
func (e *emitter) emitBatch(seq int, batch []burst) {
	var goroutines sync.WaitGroup
	for g := range goroutinesPerBatch {
		goroutines.Go(func() {
			for _, b := range batch {
				for n := g; n < b.Count; n += goroutinesPerBatch {
					e.emitOne(b.Key, seq, n)
				}
			}
		})
	}
	goroutines.Wait()
}

// emitOne emits one occurrence. Type, related and annotations depend on the key.
func (e *emitter) emitOne(key, seq, n int) {
	regarding := subjectReference(e.config.Emitter, key)
	eventType := corev1.EventTypeNormal
	if key%5 == 0 {
		eventType = corev1.EventTypeWarning
	}
	const note = "number %d of batch %d"
	switch key % 3 {
	case 0:
		related := &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: "node"}
		e.recorder.Eventf(regarding, related, eventType, "Tested", "Testing", note, n, seq)
	case 1:
		e.recorder.AnnotatedEventf(regarding, nil, map[string]string{"example.com/batch": fmt.Sprint(seq)},
			eventType, "Tested", "Testing", note, n, seq)
	default:
		e.recorder.Eventf(regarding, nil, eventType, "Tested", "Testing", note, n, seq)
	}
}

// flushRepeatedly flushes until ctx is done. Flushes fail during faults.
func (e *emitter) flushRepeatedly(ctx context.Context) {
	for until(ctx, time.Now().Add(minFlushPause+rand.N(maxFlushPause-minFlushPause))) {
		_ = e.flush(ctx, flushTimeout)
	}
}

func (e *emitter) flush(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	e.mu.Lock()
	done := e.done
	e.mu.Unlock()
	err := e.broadcaster.Flush(ctx)
	line := report{Stats: statsOf(e.broadcaster.Stats()), Heap: liveHeap()}
	if err == nil {
		line.Seq, line.Flushed = done, true
	}
	e.reports.write(line)
	return err
}

func (e *emitter) onDrop(drop events.Drop) {
	_, key, ok := parseSubject(drop.Key.Regarding.Name)
	if !ok {
		e.reports.write(report{Failed: fmt.Sprintf("drop of an unknown key: %+v", drop)})
		return
	}
	e.reports.write(report{Dropped: &loss{Key: key, Count: drop.Count, Reason: drop.Reason}})
}

// tick is the time between two batches of an emitter.
const tick = 50 * time.Millisecond

type burst struct {
	Key   int `json:"k"`
	Count int `json:"n"`
}

// pattern generates batches. Each key alternates between loops, slow or hot, and
// quiet phases that are often long enough to finish its series. Some loops are those of
// package workload. A pattern counts batches and reads no clock.
type pattern struct {
	rng  *rand.Rand
	keys []phase
}

type phase struct {
	left  int        // number of batches until the next phase
	next  func() int // number of batches from one burst to the next; nil in a quiet phase
	wait  int        // number of batches until the next burst
	count int        // of a burst
}

// timeScale is how much faster the loops of package workload are here.
const timeScale = 6 * time.Minute / finishAfter

func newPattern(seed uint64, emitter, process, keys int) *pattern {
	p := &pattern{
		rng:  rand.New(rand.NewPCG(seed, uint64(1000*(emitter+1)+process))),
		keys: make([]phase, keys),
	}
	for i := range p.keys {
		// Half of the keys continue the series of the previous process immediately.
		if p.rng.IntN(2) == 0 {
			p.keys[i] = p.draw(true)
		} else {
			p.keys[i] = phase{left: p.rng.IntN(batches(finishAfter))}
		}
	}
	return p
}

func batches(d time.Duration) int { return int(d / tick) }

func (p *pattern) next() []burst {
	var batch []burst
	for key := range p.keys {
		k := &p.keys[key]
		if k.left == 0 {
			*k = p.draw(k.next == nil)
		}
		k.left--
		if k.next == nil {
			continue
		}
		if k.wait == 0 {
			batch = append(batch, burst{Key: key, Count: k.count})
			k.wait = max(k.next(), 1)
		}
		k.wait--
	}
	return batch
}

func (p *pattern) draw(loops bool) phase {
	if !loops {
		return phase{left: 1 + p.rng.IntN(3*batches(finishAfter))}
	}
	every, k := 1, phase{left: 1 + p.rng.IntN(5*batches(finishAfter)), count: 1}
	k.next = func() int { return every }
	switch p.rng.IntN(10) {
	case 0, 1, 2: // a single occurrence
		k.left = 1
	case 3: // a slow loop
		every = 5 + p.rng.IntN(batches(finishAfter))
	case 4, 5: // a loop of a controller
		loops := workload.Loops()
		gap := loops[p.rng.IntN(len(loops))].Gaps(p.rng.Uint64())
		k.left *= 4
		k.next = func() int { return batches(gap() / timeScale) }
	case 6, 7, 8: // a loop
		every = 1 + p.rng.IntN(10)
		k.count = 1 + p.rng.IntN(3)
	default: // a hot loop
		k.count = 1 + p.rng.IntN(10)
	}
	return k
}

// until waits until then. It returns false if ctx is done first.
func until(ctx context.Context, then time.Time) bool {
	select {
	case <-time.After(time.Until(then)):
		return true
	case <-ctx.Done():
		return false
	}
}
