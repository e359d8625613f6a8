package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"

	"github.com/eventseries/eventseries/events"
)

const (
	// longShutdown is the timeout of a shutdown that must lose nothing.
	longShutdown = 4 * time.Minute
	// stopTimeout bounds the end of a process after the command to stop: a flush, a
	// shutdown, and a reserve for busy machines.
	stopTimeout = 2*longShutdown + 2*time.Minute
	lastBatches = 20
)

type process struct {
	config emitterConfig
	began  time.Time
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	log    bytes.Buffer
	done   chan struct{} // closed after the process has exited and all reports are read

	mu       sync.Mutex
	account  *account
	requests []request
	reports  []report // all of them, for diagnosis
	err      error    // of reports or exit; valid after done
}

// request is a request that a process has made.
type request struct {
	from, to time.Time
	failed   bool
}

// startProcess starts an emitter. The end of its standard input terminates it, so it
// never outlives this process.
func startProcess(config emitterConfig) (*process, error) {
	variable, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	// The program of this process is the emitter too.
	p := &process{
		config:  config,
		began:   time.Now(),
		cmd:     exec.CommandContext(context.Background(), os.Args[0]),
		done:    make(chan struct{}),
		account: newAccount(keysPerEmitter, config.MaxWindow),
	}
	// Detect connections that do not answer within seconds.
	p.cmd.Env = append(os.Environ(), emitterVariable+"="+string(variable),
		"HTTP2_READ_IDLE_TIMEOUT_SECONDS=3", "HTTP2_PING_TIMEOUT_SECONDS=2")
	p.cmd.Stderr = &p.log
	stdin, inErr := p.cmd.StdinPipe()
	stdout, outErr := p.cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr, p.cmd.Start()); err != nil {
		return nil, fmt.Errorf("chaos: emitter: %w", err)
	}
	p.stdin = stdin
	go func() {
		defer close(p.done)
		err := readReports(stdout, p.add)
		if err != nil {
			_ = p.cmd.Process.Kill() // its writes would block
		}
		p.err = errors.Join(err, p.cmd.Wait())
	}()
	return p, nil
}

func (p *process) add(r report) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.account.add(r)
	p.reports = append(p.reports, r)
	if a := r.Answered; a != nil {
		now := time.Now()
		p.requests = append(p.requests, request{now.Add(-a.After), now, a.Failed})
	}
}

// during returns the number of requests that were in flight during a time, and of those
// that failed.
func (p *process) during(from, to time.Time) (requests, failed int) {
	for _, r := range p.requests {
		if r.from.Before(to) && r.to.After(from) {
			requests++
			if r.failed {
				failed++
			}
		}
	}
	return requests, failed
}

func (p *process) progress() (batches, flushed int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.account.batches, p.account.flushed
}

func (p *process) abandon() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

func (p *process) stop() error {
	if _, err := io.WriteString(p.stdin, stopCommand+"\n"); err != nil {
		<-p.done
		return fmt.Errorf("chaos: emitter exited before the command to stop: %w: %s", p.err, &p.log)
	}
	select {
	case <-p.done:
	case <-time.After(stopTimeout):
		p.abandon()
		return fmt.Errorf("chaos: emitter did not stop within %v: %s", stopTimeout, &p.log)
	}
	if p.err != nil {
		return fmt.Errorf("chaos: emitter: %w: %s", p.err, &p.log)
	}
	if !p.account.ended {
		return errors.New("chaos: emitter exited without its last report")
	}
	return nil
}

// kill kills the process and waits for its end and its last reports.
func (p *process) kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("chaos: kill emitter: %w", err)
	}
	<-p.done
	// The exit code is -1 after a signal. Windows has no signals.
	if exit := new(exec.ExitError); errors.As(p.err, &exit) && (exit.ExitCode() == -1 || runtime.GOOS == "windows") {
		return nil
	}
	return fmt.Errorf("chaos: emitter exited before the kill: %w: %s", p.err, &p.log)
}

// controllerPrefix begins the names of the controllers of all emitters.
const controllerPrefix = "example.com/chaos"

type supervisor struct {
	config    emitterConfig
	note      func(kind, int, time.Time) // faults.note
	processes []*process
}

// newSupervisor returns the supervisor of the emitter with the given number. Emitters
// differ in how a process finds the series of the previous one: by name only or by
// listing, and with the same instance or, like a new leader, a new one. Their windows are
// random.
func newSupervisor(number int, config emitterConfig, note func(kind, int, time.Time)) *supervisor {
	rng := rand.New(rand.NewPCG(config.Seed, uint64(1e9+number)))
	config.Emitter = number
	config.FinishAfter = finishAfter*2/3 + time.Duration(rng.Int64N(int64(finishAfter*2/3)))
	config.MaxWindow = config.FinishAfter * time.Duration(1+rng.IntN(6))
	config.Lists = number%2 == 0
	config.Controller = controllerPrefix
	if sharesSeries(number) {
		config.Scope = events.SameController
		// A list adopts all series of its controller, so emitters must not share one.
		config.Controller = fmt.Sprintf("%s-%d", controllerPrefix, number)
	}
	return &supervisor{config: config, note: note}
}

// sharesSeries reports whether the processes of an emitter continue the series of each
// other, as those of a controller under leader election.
func sharesSeries(emitter int) bool { return emitter%4 >= 2 }

func (s *supervisor) start(end kind) error {
	config := s.config
	config.Process = len(s.processes)
	config.Instance = fmt.Sprintf("emitter-%d", config.Emitter)
	if config.Scope == events.SameController {
		config.Instance = config.name()
	}
	config.Clock = clockOf(config.Seed, config.Emitter, config.Process)
	config.Shutdown = longShutdown
	switch end {
	case hurryEmitter:
		config.Shutdown = shortShutdown
	case flushEmitter:
		config.Flush = longShutdown
	default:
	}
	p, err := startProcess(config)
	if err == nil {
		s.processes = append(s.processes, p)
	}
	return err
}

func (c *emitterConfig) name() string {
	return fmt.Sprintf("emitter-%d-process-%d", c.Emitter, c.Process)
}

// clockOf returns how far the clock of a process is ahead. One in three is minutes ahead
// or behind.
func clockOf(seed uint64, emitter, process int) time.Duration {
	rng := rand.New(rand.NewPCG(seed, uint64(1e6*(emitter+1)+process)))
	if rng.IntN(3) > 0 {
		return 0
	}
	return time.Duration(rng.IntN(600)-300) * time.Second
}

func (s *supervisor) latest() *process { return s.processes[len(s.processes)-1] }

func (s *supervisor) end(p *process, how kind) error {
	end := p.stop
	if how == killEmitter {
		end = p.kill
	}
	began := time.Now()
	if err := end(); err != nil {
		return fmt.Errorf("emitter %d: %w", s.config.Emitter, err)
	}
	s.note(how, s.config.Emitter, began)
	if p.config.Clock != 0 {
		s.note(shiftClock, s.config.Emitter, p.began)
	}
	return nil
}

// run executes the steps of a schedule. The end of a process may take until a fault
// ends. run skips the steps that should have started in the meantime. It returns with
// a running process that must end with stopEmitter.
func (s *supervisor) run(ctx context.Context, begin time.Time, steps []step) error {
	finish := func() error { return nil } // ends a process that overlaps with the next one
	for _, next := range steps {
		if time.Since(begin) > next.at {
			continue
		}
		if err := errors.Join(s.start(next.kind), finish()); err != nil {
			return err
		}
		finish = func() error { return nil }
		if !until(ctx, begin.Add(next.at)) {
			return context.Cause(ctx)
		}
		p := s.latest()
		if next.kind == overlapEmitter {
			finish = func() error {
				p.account.overlaps, s.latest().account.overlaps = true, true
				until(ctx, time.Now().Add(next.lasts+2*heartbeatInterval))
				return s.end(p, overlapEmitter)
			}
			continue
		}
		if err := s.end(p, next.kind); err != nil {
			return err
		}
		if !until(ctx, time.Now().Add(next.lasts)) {
			return context.Cause(ctx)
		}
	}
	return errors.Join(s.start(stopEmitter), finish())
}

// conclude stops the running process. Then it runs a last process, which flushes its
// events before it shuts down. There must be no faults.
func (s *supervisor) conclude(ctx context.Context) error {
	if err := errors.Join(s.end(s.latest(), stopEmitter), s.start(flushEmitter)); err != nil {
		return err
	}
	p := s.latest()
	for batches, flushed := 0, 0; batches < lastBatches || flushed == 0; batches, flushed = p.progress() {
		select {
		case <-p.done:
			return s.end(p, flushEmitter) // returns why it exited
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(tick):
		}
	}
	return s.end(p, flushEmitter)
}
