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
	// stopGrace bounds a clean stop. The program usually needs a second or two.
	stopGrace = 30 * time.Second
	// outputGrace is how long the output may stay open after the program exits.
	outputGrace = 5 * time.Second
)

// process is one run of the program.
type process struct {
	cmd *exec.Cmd
	// lifeline is the program's standard input. Nothing writes to it. When it
	// closes, the program knows that its parent has exited.
	lifeline io.Closer
	ready    firstLine
	log      tail
	done     chan struct{}
	err      error // of the exit; valid after done is closed
}

// startProcess starts the program, and a goroutine that waits for its exit.
func startProcess(binary string, args []string, log io.Writer) (*process, error) {
	p := &process{
		// Only stop and kill end the program, not a context.
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
		// Linux sends Pdeathsig when the thread that started the process exits, so
		// this thread must live as long as the process.
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
		return nil, err
	}
	return p, nil
}

// waitReady returns the line that the program prints when it is ready. If the
// program exits or ctx ends first, the error contains the end of the log.
func (p *process) waitReady(ctx context.Context) (string, error) {
	select {
	case line := <-p.ready.line:
		return line, nil
	case <-p.done:
		return "", fmt.Errorf("exited before it was ready: %w", p.failure())
	case <-ctx.Done():
		return "", fmt.Errorf("not ready: %w; end of its log:\n%s", context.Cause(ctx), &p.log)
	}
}

// stop asks the program to exit and waits. It kills the program after stopGrace.
// An exit code other than 0 is an error.
func (p *process) stop() error {
	_ = terminate(p) // the exit tells whether this worked
	select {
	case <-p.done:
	case <-time.After(stopGrace):
		return errors.Join(fmt.Errorf("still running %v after the stop request", stopGrace), p.kill())
	}
	if p.err != nil {
		return p.failure()
	}
	return nil
}

// kill kills the program and waits for its exit.
func (p *process) kill() error {
	select {
	case <-p.done:
		return fmt.Errorf("already exited: %w", p.failure())
	default:
	}
	if err := p.cmd.Process.Kill(); err != nil {
		select {
		case <-p.done: // it exited in the meantime
		default:
			return err
		}
	}
	<-p.done
	return nil
}

// failure returns the exit error and the end of the log.
func (p *process) failure() error {
	err := p.err
	if err == nil {
		err = errors.New("exit status 0")
	}
	return fmt.Errorf("%w; end of its log:\n%s", err, &p.log)
}
