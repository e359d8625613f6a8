package faultproxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Retrying to accept, after an error that is not the end, such as too many open
// files.
const acceptPause = 50 * time.Millisecond

// Proxy forwards the connections that are made to Addr to another address. Its
// methods may be called concurrently.
type Proxy struct {
	target   string
	listener *net.TCPListener
	ctx      context.Context // ends with Close
	cancel   context.CancelFunc

	goroutines sync.WaitGroup
	accepted   atomic.Int64
	reset      atomic.Int64

	mu      sync.Mutex
	fault   Fault
	era     int           // the number of faults so far
	changed chan struct{} // closed when the next begins
	conns   map[*conn]struct{}
}

// Listen starts a proxy on a free port of 127.0.0.1. target is the host and port
// to forward to; nothing need listen there yet. ctx bounds the listening as such
// and not the life of the proxy: the caller has to Close it.
func Listen(ctx context.Context, target string) (*Proxy, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("faultproxy: for %s: %w", target, err)
	}
	p := &Proxy{
		target:   target,
		listener: listener.(*net.TCPListener), // as "tcp4" asks for
		changed:  make(chan struct{}),
		conns:    make(map[*conn]struct{}),
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.goroutines.Go(p.accept)
	return p, nil
}

// Addr returns the host and port that the proxy listens on.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Set begins a fault and ends the one before it.
func (p *Proxy) Set(f Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = f
	p.era++
	close(p.changed)
	p.changed = make(chan struct{})
}

// Reset resets all connections that there are, on both sides. What was held of
// them is lost.
func (p *Proxy) Reset() {
	p.mu.Lock()
	var all []*conn
	for c := range p.conns {
		all = append(all, c)
	}
	p.mu.Unlock()
	for _, c := range all {
		c.reset()
	}
}

// Stats are counters of a Proxy.
type Stats struct {
	// Accepted is the number of connections made to the proxy.
	Accepted int64
	// Reset is the number of those that it has reset, or refused.
	Reset int64
}

// Stats returns the counters.
func (p *Proxy) Stats() Stats {
	return Stats{Accepted: p.accepted.Load(), Reset: p.reset.Load()}
}

// Close ends the proxy, resets its connections and waits for their end. A second
// call returns an error.
func (p *Proxy) Close() error {
	p.cancel()
	err := p.listener.Close()
	p.Reset()
	p.goroutines.Wait()
	if err != nil {
		return fmt.Errorf("faultproxy: close: %w", err)
	}
	return nil
}

// state returns the fault that there is, its number, and a channel that is closed
// when it is over.
func (p *Proxy) state() (f Fault, era int, over <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fault, p.era, p.changed
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.AcceptTCP()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			if !p.wait(acceptPause) {
				return
			}
			continue
		}
		p.accepted.Add(1)
		if f, _, _ := p.state(); f.Refuse {
			p.reset.Add(1)
			abort(client)
			continue
		}
		p.goroutines.Go(func() { p.serve(client) })
	}
}

// serve connects to the target and forwards in both directions until the
// connection ends.
func (p *Proxy) serve(client *net.TCPConn) {
	server, err := new(net.Dialer).DialContext(p.ctx, "tcp4", p.target)
	if err != nil {
		p.reset.Add(1)
		abort(client)
		return
	}
	c := &conn{proxy: p, client: client, server: server.(*net.TCPConn), done: make(chan struct{})}
	p.mu.Lock()
	closed := p.ctx.Err() != nil
	if !closed {
		p.conns[c] = struct{}{}
	}
	p.mu.Unlock()
	if closed {
		c.reset()
		return
	}
	var forwarding sync.WaitGroup
	forwarding.Go(func() { c.forward(requests) })
	forwarding.Go(func() { c.forward(answers) })
	forwarding.Wait()
	c.close()
	p.mu.Lock()
	delete(p.conns, c)
	p.mu.Unlock()
}

// wait returns false if the proxy was closed before the time was over.
func (p *Proxy) wait(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-p.ctx.Done():
		return false
	}
}
