package controlplane

import (
	"bytes"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"sync"
)

// tailSize is how much of a log a [tail] keeps, in bytes.
const tailSize = 8 << 10

// tail is a writer that keeps the last lines of a log, and forwards everything to
// w if w is not nil. It ignores errors of w: the server must not fail because of
// its log.
type tail struct {
	w io.Writer

	mu  sync.Mutex
	buf []byte
	cut bool
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.w != nil {
		_, _ = t.w.Write(p)
	}
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - tailSize; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
		t.cut = true
	}
	return len(p), nil
}

// String returns the last complete lines.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	kept := t.buf
	if t.cut {
		_, kept, _ = bytes.Cut(kept, []byte("\n"))
	}
	return strings.TrimSpace(string(kept))
}

// firstLine is a writer that sends the first line to a channel, without the line
// ending, and discards the rest.
type firstLine struct {
	line chan string // needs a buffer of one
	buf  []byte
	done bool
}

func (f *firstLine) Write(p []byte) (int, error) {
	if f.done {
		return len(p), nil
	}
	f.buf = append(f.buf, p...)
	if line, _, ok := bytes.Cut(f.buf, []byte("\n")); ok {
		f.done = true
		f.line <- strings.TrimSuffix(string(line), "\r")
	}
	return len(p), nil
}

// parseReady parses the line that the program prints when it is ready.
func parseReady(line string) (addr netip.AddrPort, kubeconfig string, err error) {
	rest, ok := strings.CutPrefix(line, "ready https://")
	host, kubeconfig, _ := strings.Cut(rest, " kubeconfig=")
	addr, err = netip.ParseAddrPort(host)
	if !ok || err != nil || kubeconfig == "" {
		return netip.AddrPort{}, "", fmt.Errorf("got %q, want \"ready https://HOST:PORT kubeconfig=FILE\"", line)
	}
	return addr, kubeconfig, nil
}
