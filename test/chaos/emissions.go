package chaos

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/eventseries/eventseries/events"
)

// emission is an emitter over all its lives: one process after the other, never
// two at a time.
type emission struct {
	number int
	config emitterConfig

	mu    sync.Mutex
	lives []*life
	kinds map[kind]int // how lives ended
}

// newEmission makes the emitter of a number. They differ in how a life finds what
// the one before it has left: by its name alone or by listing as well, under the
// same instance or, as a new leader does, under another one.
func newEmission(number int, config emitterConfig) *emission {
	config.Emitter = number
	config.SkipList = number%2 == 1
	config.Controller = "example.com/chaos"
	if number%4 >= 2 {
		config.Scope = events.SameController
		// Whoever lists the series of a controller takes all of them for its own.
		config.Controller = fmt.Sprintf("example.com/chaos-%d", number)
	}
	return &emission{number: number, config: config, kinds: make(map[kind]int)}
}

// start begins the next life. end is how it will end.
func (e *emission) start(end kind) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	config := e.config
	config.Life = len(e.lives)
	config.Instance = fmt.Sprintf("emitter-%d", e.number)
	if config.Scope == events.SameController {
		config.Instance += fmt.Sprintf("-life-%d", config.Life)
	}
	config.Shutdown = patientShutdown
	switch end {
	case hurryEmitter:
		config.Shutdown = hurriedShutdown
	case flushEmitter:
		config.Flush, config.Patience = true, patientShutdown
	default: // it has the time that it needs, or none
	}
	l, err := startLife(config)
	if err != nil {
		return err
	}
	e.lives = append(e.lives, l)
	return nil
}

// end ends the life that there is.
func (e *emission) end(how kind) error {
	l := e.latest()
	e.mu.Lock()
	e.kinds[how]++
	e.mu.Unlock()
	var err error
	if how == killEmitter {
		err = l.kill()
	} else {
		err = l.stop()
	}
	if err != nil {
		return fmt.Errorf("emitter %d: %w", e.number, err)
	}
	return nil
}

func (e *emission) latest() *life {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.lives[len(e.lives)-1]
}

// run begins the first life and does what the schedule says. The end of a life may
// have to wait for the end of a fault; what was to come meanwhile is left out, or
// the lives after it would be none. It returns with a life that goes on, and is to
// end as stopEmitter.
func (e *emission) run(ctx context.Context, begin time.Time, steps []step) error {
	for _, s := range steps {
		if time.Since(begin) > s.at {
			continue
		}
		if err := e.start(s.kind); err != nil {
			return err
		}
		if !until(ctx, begin.Add(s.at)) {
			return context.Cause(ctx)
		}
		if err := e.end(s.kind); err != nil {
			return err
		}
		if !until(ctx, time.Now().Add(s.lasts)) {
			return context.Cause(ctx)
		}
	}
	return e.start(stopEmitter)
}

// conclude stops the life that there is, and has one more that emits something,
// flushes it and is shut down. Nothing may be in the way any more.
func (e *emission) conclude(ctx context.Context) error {
	if err := e.end(stopEmitter); err != nil {
		return err
	}
	if err := e.start(flushEmitter); err != nil {
		return err
	}
	last := e.latest()
	for ctx.Err() == nil {
		if batches, flushed := last.progress(); batches >= lastBatches && flushed > 0 {
			return e.end(flushEmitter)
		}
		select {
		case <-last.done:
			return e.end(flushEmitter) // which says why
		default:
			until(ctx, time.Now().Add(tick))
		}
	}
	return context.Cause(ctx)
}

// lastBatches is how many batches the last life emits at least.
const lastBatches = 20

// abandon kills the life that there is, after something went wrong.
func (e *emission) abandon() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.lives) == 0 {
		return
	}
	l := e.lives[len(e.lives)-1]
	_ = l.cmd.Process.Kill()
	<-l.done
}

// accounts returns those of all lives, which must have ended.
func (e *emission) accounts() (accounts []*account) {
	for _, l := range e.lives {
		accounts = append(accounts, l.account)
	}
	return accounts
}

// until waits. It returns false if ctx ended before.
func until(ctx context.Context, then time.Time) bool {
	timer := time.NewTimer(time.Until(then))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
