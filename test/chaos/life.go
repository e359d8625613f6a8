package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"
)

const (
	// patientShutdown is the timeout of a shutdown that is to lose nothing.
	patientShutdown = 4 * time.Minute
	// lifeEnd bounds the end of an emitter that was told to stop: a flush and a
	// shutdown, and what a busy machine adds.
	lifeEnd = 2*patientShutdown + 2*time.Minute
	// logTail is how much of an emitter's log is kept.
	logTail = 64 << 10
)

// life is a process that emits, seen from outside.
type life struct {
	begin time.Time
	cmd   *exec.Cmd
	stdin io.WriteCloser
	log   tail
	done  chan struct{} // closed when the process has ended and all is read

	mu      sync.Mutex
	account *account
	lines   []report // all that came, for a look when something is wrong
	err     error    // of reading or of the end; to be read when done is closed
}

// startLife starts the emitter of a configuration. It never outlives this
// process: its standard input ends with it.
func startLife(config emitterConfig) (*life, error) {
	variable, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("chaos: emitter: %w", err)
	}
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("chaos: emitter: %w", err)
	}
	l := &life{
		// It is told to end, or killed.
		cmd:     exec.CommandContext(context.Background(), program),
		done:    make(chan struct{}),
		account: newAccount(keysPerEmitter),
	}
	// Connections that do not answer are found out within seconds.
	l.cmd.Env = append(os.Environ(), emitterVariable+"="+string(variable),
		"HTTP2_READ_IDLE_TIMEOUT_SECONDS=3", "HTTP2_PING_TIMEOUT_SECONDS=2")
	l.cmd.Stderr = &l.log
	if l.stdin, err = l.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("chaos: emitter: %w", err)
	}
	out, err := l.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("chaos: emitter: %w", err)
	}
	l.begin = time.Now()
	if err := l.cmd.Start(); err != nil {
		return nil, fmt.Errorf("chaos: emitter: %w", err)
	}
	go func() {
		defer close(l.done)
		err := readReports(out, l.report)
		if err != nil {
			_ = l.cmd.Process.Kill() // or it would wait for a reader
		}
		err = errors.Join(err, l.cmd.Wait())
		l.mu.Lock()
		defer l.mu.Unlock()
		l.err = err
	}()
	return l, nil
}

func (l *life) report(line report) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.account.add(line)
	l.lines = append(l.lines, line)
}

// progress returns how many batches have been emitted, and how many of them are
// known to be on the server.
func (l *life) progress() (batches, flushed int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.account.batches, l.account.flushed
}

// stop shuts the emitter down and waits for its end.
func (l *life) stop() error {
	if _, err := io.WriteString(l.stdin, stopCommand+"\n"); err != nil {
		<-l.done
		return fmt.Errorf("chaos: emitter had ended: %w: %s", l.err, &l.log)
	}
	select {
	case <-l.done:
	case <-time.After(lifeEnd):
		_ = l.cmd.Process.Kill()
		<-l.done
		return fmt.Errorf("chaos: emitter had not ended after %v: %s", lifeEnd, &l.log)
	}
	if l.err != nil {
		return fmt.Errorf("chaos: emitter: %w: %s", l.err, &l.log)
	}
	if !l.account.ended {
		return errors.New("chaos: emitter ended without having said all")
	}
	return nil
}

// kill kills the emitter, waits for its end and for the last that it said.
func (l *life) kill() error {
	select {
	case <-l.done:
		return fmt.Errorf("chaos: emitter had ended: %w: %s", l.err, &l.log)
	default:
	}
	if err := l.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("chaos: kill emitter: %w", err)
	}
	<-l.done
	// By a signal, where there are signals.
	if exit := new(exec.ExitError); errors.As(l.err, &exit) && (exit.ExitCode() == -1 || runtime.GOOS == "windows") {
		return nil
	}
	return fmt.Errorf("chaos: emitter ended by itself: %w: %s", l.err, &l.log)
}

// broken returns what the log has that no log may have.
func (l *life) broken() error {
	text := l.log.String()
	for _, bad := range []string{"DATA RACE", "panic:", "panicked"} {
		if strings.Contains(text, bad) {
			return fmt.Errorf("chaos: emitter: %s", text)
		}
	}
	return nil
}

// tail is a writer that keeps the beginning and the end of what is written.
type tail struct {
	mu   sync.Mutex
	head bytes.Buffer
	last []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(p)
	if room := logTail - t.head.Len(); room > 0 {
		t.head.Write(p[:min(room, len(p))])
		p = p[min(room, len(p)):]
	}
	t.last = append(t.last, p...)
	if over := len(t.last) - logTail; over > 0 {
		t.last = append(t.last[:0], t.last[over:]...)
	}
	return n, nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.head.String() + string(t.last)
}
