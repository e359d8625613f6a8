package chaos

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/eventseries/eventseries/events"
)

// How the recorders of the emitters are set. Series have to go through all their
// states while a fault lasts and while none does.
const (
	heartbeatInterval = 2 * time.Second
	finishAfter       = 3 * time.Second
	requestTimeout    = 3 * time.Second
	// A life is short. With the default limit it would spend most of it with
	// finding what the one before it has left.
	requestsPerSecond = 200
	// hurriedShutdown is a timeout in which not all can be written.
	hurriedShutdown = 300 * time.Millisecond
)

const (
	// keysPerEmitter is how many series an emitter has.
	keysPerEmitter = 60
	// emitting goroutines of an emitter.
	emittingGoroutines = 3
	// How long an emitter waits from one flush to the next.
	flushAtLeast, flushAtMost = 200 * time.Millisecond, 2 * time.Second
	// flushTimeout is when it gives up a flush, to try again with more.
	flushTimeout = 3 * time.Second
)

// emitterVariable holds the emitterConfig of a process that is to be an emitter.
const emitterVariable = "EVENTSERIES_CHAOS_EMITTER"

// emitterConfig is what an emitter is told.
type emitterConfig struct {
	Emitter, Life int
	Seed          uint64
	Kubeconfig    string
	Host          string // where to find the server, other than in Kubeconfig
	Token         string // of a user other than that in Kubeconfig; empty: that one
	Namespace     string
	Controller    string
	Instance      string
	Scope         events.Scope
	SkipList      bool
	Metrics       bool          // they are wanted
	Shutdown      time.Duration // the timeout
	// Flush says that it is flushed before it is shut down, which must succeed
	// within Patience.
	Flush    bool
	Patience time.Duration
}

// exitOrphaned ends an emitter whose parent is gone.
func exitOrphaned() { os.Exit(3) }

// stopCommand is the line on the standard input that shuts an emitter down. When
// the input ends, it ends at once.
const stopCommand = "stop"

// runEmitter is an emitter, from its start to its end. It returns an exit code.
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

// emit records events until it is told to stop.
func emit(config emitterConfig, in io.Reader, r *reporter) error {
	rest, err := clientcmd.BuildConfigFromFlags("", config.Kubeconfig)
	if err != nil {
		return fmt.Errorf("chaos: kubeconfig %q: %w", config.Kubeconfig, err)
	}
	rest.Host = config.Host
	if config.Token != "" {
		host := rest.Host
		rest = restclient.AnonymousClientConfig(rest)
		rest.Host, rest.BearerToken = host, config.Token
	}
	clients, err := kubernetes.NewForConfig(rest)
	if err != nil {
		return fmt.Errorf("chaos: clients: %w", err)
	}
	e := &emitter{config: config, reports: r}
	e.broadcaster = events.NewBroadcasterWithOptions(newAccountingSink(&events.EventSinkImpl{Interface: clients.EventsV1()}, r), events.Options{
		ReportingInstance: config.Instance,
		Scope:             config.Scope,
		Namespaces:        []string{config.Namespace},
		SkipList:          config.SkipList,
		HeartbeatInterval: heartbeatInterval,
		FinishAfter:       finishAfter,
		NoteInterval:      finishAfter / 10,
		RequestTimeout:    requestTimeout,
		QPS:               requestsPerSecond,
		ShutdownTimeout:   config.Shutdown,
		OnDrop:            e.dropped,
	})
	e.recorder = e.broadcaster.NewRecorder(scheme.Scheme, config.Controller)
	var ok bool
	if e.annotated, ok = e.recorder.(events.AnnotatedEventRecorder); !ok {
		return errors.New("chaos: the recorder is no AnnotatedEventRecorder")
	}
	if err := e.broadcaster.StartRecordingToSinkWithContext(context.Background()); err != nil {
		return err
	}
	return e.run(stopped(in))
}

// stopped returns a channel that is closed when the command to stop comes.
func stopped(in io.Reader) <-chan struct{} {
	stop := make(chan struct{})
	go func() {
		lines := bufio.NewScanner(in)
		for lines.Scan() {
			if lines.Text() == stopCommand {
				close(stop)
			}
		}
		exitOrphaned()
	}()
	return stop
}

// emitter is a process that records events and accounts for them.
type emitter struct {
	config      emitterConfig
	broadcaster *events.Broadcaster
	recorder    events.EventRecorder
	annotated   events.AnnotatedEventRecorder // the same one
	reports     *reporter

	mu   sync.Mutex
	done int // batches that have been emitted
}

func (e *emitter) run(stop <-chan struct{}) error {
	flushing, cancel := context.WithCancel(context.Background())
	var flusher sync.WaitGroup
	flusher.Go(func() { e.flushNowAndThen(flushing) })
	if e.config.Metrics {
		flusher.Go(func() { scrapes(flushing, e.broadcaster, e.reports) })
	}
	e.emitUntil(stop)
	cancel()
	flusher.Wait()

	if e.config.Flush {
		ctx, cancel := context.WithTimeout(context.Background(), e.config.Patience)
		defer cancel()
		if err := e.flush(ctx); err != nil {
			e.reports.write(report{Failed: err.Error()})
		}
	}
	e.broadcaster.Shutdown()
	e.reports.write(report{Stats: statsOf(e.broadcaster.Stats())})
	e.reports.write(report{Ended: true})
	return nil
}

// emitUntil emits one batch after the other.
func (e *emitter) emitUntil(stop <-chan struct{}) {
	pattern := newPattern(e.config.Seed, e.config.Emitter, e.config.Life, keysPerEmitter)
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

// emitBatch emits a batch from several goroutines. They have keys in common.
func (e *emitter) emitBatch(seq int, batch []burst) {
	var goroutines sync.WaitGroup
	for g := range emittingGoroutines {
		goroutines.Go(func() {
			for _, b := range batch {
				for n := g; n < b.Count; n += emittingGoroutines {
					e.emitOne(b.Key, seq, n)
				}
			}
		})
	}
	goroutines.Wait()
}

// emitOne emits one occurrence of a key. The keys differ in what they use.
func (e *emitter) emitOne(key, seq, n int) {
	regarding := subjectReference(e.config.Namespace, e.config.Emitter, key)
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
		e.annotated.AnnotatedEventf(regarding, nil, map[string]string{"example.com/batch": fmt.Sprint(seq)},
			eventType, "Tested", "Testing", note, n, seq)
	default:
		e.recorder.Eventf(regarding, nil, eventType, "Tested", "Testing", note, n, seq)
	}
}

// flushNowAndThen flushes and says so, until ctx ends.
func (e *emitter) flushNowAndThen(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(flushAtLeast + rand.N(flushAtMost-flushAtLeast))
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		flushing, cancel := context.WithTimeout(ctx, flushTimeout)
		// During a fault it fails. The next one makes up for it.
		_ = e.flush(flushing)
		cancel()
	}
}

// flush flushes what has been emitted, and reports it.
func (e *emitter) flush(ctx context.Context) error {
	e.mu.Lock()
	done := e.done
	e.mu.Unlock()
	err := e.broadcaster.Flush(ctx)
	line := report{Stats: statsOf(e.broadcaster.Stats())}
	if err == nil {
		line.Seq, line.Flushed = done, true
	}
	e.reports.write(line)
	return err
}

// dropped is called by the recorder.
func (e *emitter) dropped(drop events.Drop) {
	_, key, ok := parseSubject(drop.Key.Regarding.Name)
	if !ok {
		e.reports.write(report{Failed: fmt.Sprintf("dropped of an unknown key: %+v", drop)})
		return
	}
	e.reports.write(report{Dropped: &loss{Key: key, Count: drop.Count, Reason: drop.Reason}})
}
