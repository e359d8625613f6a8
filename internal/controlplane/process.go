package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"time"
)

const (
	// stopGrace is how long the program may take for a clean stop. It bounds
	// the parts of it itself, and mostly needs a second or two.
	stopGrace = 30 * time.Second
	// outputGrace is how long the output may stay open after the program ended.
	outputGrace = 5 * time.Second
)

// process is the program, running or ended.
type process struct {
	cmd *exec.Cmd
	// lifeline is the program's standard input. Nothing is written to it: its
	// end tells the program that this process is gone.
	lifeline io.Closer
	ready    firstLine
	log      tail
	done     chan struct{}
	err      error // of the exit; to be read when done is closed
}

// startProcess starts the program. A goroutine of its own waits for its end.
func startProcess(binary string, args []string, log io.Writer) (*process, error) {
	p := &process{
		// Without a context that ends: it runs until it is stopped or killed.
		cmd:   exec.CommandContext(context.Background(), binary, args...),
		ready: firstLine{line: make(chan string, 1)},
		log:   tail{w: log},
		done:  make(chan struct{}),
	}
	p.cmd.Stdout = &p.ready
	p.cmd.Stderr = &p.log
	p.cmd.WaitDelay = outputGrace
	p.cmd.SysProcAttr = processAttributes()
	lifeline, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	p.lifeline = lifeline

	started := make(chan error, 1)
	go func() {
		// Linux takes the end of the thread that started a process for the end
		// of its parent, so this thread has to stay.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.err = p.cmd.Wait()
		}
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, errors.Join(err, lifeline.Close())
	}
	return p, nil
}

// waitReady returns the line that the program prints when it is ready, or an
// error with the end of its log when it ends before that.
func (p *process) waitReady(ctx context.Context) (string, error) {
	select {
	case line := <-p.ready.line:
		return line, nil
	case <-p.done:
		return "", fmt.Errorf("ended before it was ready: %w", p.failure())
	case <-ctx.Done():
		return "", fmt.Errorf("not ready: %w; its log ends with:\n%s", context.Cause(ctx), &p.log)
	}
}

// stop asks the program to end, waits, and kills it if it does not. Only an
// exit with code 0 is no error.
func (p *process) stop() error {
	// What matters is whether it ends, not whether it could be told.
	_ = terminate(p)
	select {
	case <-p.done:
	case <-time.After(stopGrace):
		return errors.Join(fmt.Errorf("still runs %v after it was told to stop", stopGrace), p.kill())
	}
	if p.err != nil {
		return p.failure()
	}
	return nil
}

// kill ends the program without giving it a chance, and waits.
func (p *process) kill() error {
	select {
	case <-p.done:
		return fmt.Errorf("had ended by itself: %w", p.failure())
	default:
	}
	if err := p.cmd.Process.Kill(); err != nil {
		select {
		case <-p.done: // between the look and the signal
		default:
			return err
		}
	}
	<-p.done
	return nil
}

// failure says how the program ended and what it said last.
func (p *process) failure() error {
	err := p.err
	if err == nil {
		err = errors.New("exit status 0")
	}
	return fmt.Errorf("%w; its log ends with:\n%s", err, &p.log)
}
