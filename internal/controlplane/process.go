package controlplane

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"strings"
	"sync"
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
	ready    chan string // receives the line that the program prints when it is ready
	log      tail
	done     chan struct{}
	err      error // of the exit; valid after done is closed
}

// startProcess starts the program, and a goroutine that waits for its exit.
func startProcess(binary string, args []string, log io.Writer) (*process, error) {
	p := &process{
		// Only stop and kill end the program, not a context.
		cmd:   exec.CommandContext(context.Background(), binary, args...),
		ready: make(chan string, 1),
		log:   tail{w: log},
		done:  make(chan struct{}),
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
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
			if line, _ := bufio.NewReader(stdout).ReadString('\n'); line != "" { // the only one
				p.ready <- strings.TrimSpace(line)
			}
			p.err = p.cmd.Wait()
		}
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// waitReady returns the line that the program prints when it is ready.
func (p *process) waitReady(ctx context.Context) (string, error) {
	select {
	case line := <-p.ready:
		return line, nil
	case <-p.done:
		return "", p.failed("exited before it was ready: %w", p.err)
	case <-ctx.Done():
		return "", p.failed("not ready: %w", context.Cause(ctx))
	}
}

// stop asks the program to exit and waits. It kills the program after stopGrace.
// An exit code other than 0 is an error.
func (p *process) stop() error {
	_ = terminate(p) // the exit tells whether this worked
	select {
	case <-p.done:
	case <-time.After(stopGrace):
		_ = p.kill()
		return p.failed("killed %v after the stop request: %w", stopGrace, p.err)
	}
	if p.err != nil {
		return p.failed("%w", p.err)
	}
	return nil
}

// kill kills the program and waits for its exit.
func (p *process) kill() error {
	err := p.cmd.Process.Kill()
	<-p.done
	if err != nil {
		return p.failed("%w: %v", err, p.err)
	}
	return nil
}

// failed returns an error with the end of the log.
func (p *process) failed(format string, args ...any) error {
	return fmt.Errorf(format+"; end of its log:\n%s", append(args, &p.log)...)
}

// tailSize is how much of a log a [tail] keeps, in bytes.
const tailSize = 8 << 10

// tail is a writer that keeps the end of a log, and forwards everything to w if w is not
// nil. It ignores errors of w: the server must not fail because of its log.
type tail struct {
	w io.Writer

	mu  sync.Mutex
	buf []byte
}

func (t *tail) Write(p []byte) (int, error) {
	if t.w != nil {
		_, _ = t.w.Write(p)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	t.buf = t.buf[max(len(t.buf)-tailSize, 0):]
	return len(p), nil
}

// String returns the end of the log.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.buf))
}
