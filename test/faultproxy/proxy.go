package faultproxy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// acceptBackoff is the time until the next attempt to accept a connection after an
// error, such as too many open files.
const acceptBackoff = 50 * time.Millisecond

// Fault is a set of network faults. The zero value is a network without faults.
type Fault struct {
	// Refuse resets new connections at once. It does not affect existing ones; see
	// [Proxy.Reset].
	Refuse bool
	// HoldRequests holds what clients send until the fault ends.
	HoldRequests bool
	// HoldAnswers holds what the server sends until the fault ends.
	HoldAnswers bool
	// ResetAfter resets each connection, new or existing, after this number of bytes
	// from the server since the fault began. If zero, there is no limit.
	ResetAfter int
	// Delay delays each chunk in both directions. A chunk has at most 32 KiB.
	Delay time.Duration
}

// Proxy forwards connections from its address to a server. Its methods are safe for
// concurrent use.
type Proxy struct {
	target   string
	listener *net.TCPListener
	ctx      context.Context // ends on Close
	cancel   context.CancelFunc

	goroutines sync.WaitGroup
	accepted   atomic.Int64
	reset      atomic.Int64

	mu     sync.Mutex
	fault  Fault
	number int           // number of faults so far
	ended  chan struct{} // closed when the current fault ends
	conns  map[*conn]struct{}
}

// Listen starts a proxy on a free port of 127.0.0.1 for the server at target, a host
// and port. The server may start later. The caller must call [Proxy.Close]; ctx only
// applies to the call of Listen.
func Listen(ctx context.Context, target string) (*Proxy, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("faultproxy: for %s: %w", target, err)
	}
	p := &Proxy{
		target:   target,
		listener: listener.(*net.TCPListener),
		ended:    make(chan struct{}),
		conns:    make(map[*conn]struct{}),
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.goroutines.Go(p.accept)
	return p, nil
}

// Addr returns the host and port on which the proxy listens.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Set replaces the current fault.
func (p *Proxy) Set(f Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = f
	p.number++
	close(p.ended)
	p.ended = make(chan struct{})
}

// Reset resets all connections of clients and to the server. Data that the proxy holds
// are lost.
func (p *Proxy) Reset() {
	p.mu.Lock()
	conns := slices.Collect(maps.Keys(p.conns))
	p.mu.Unlock()
	for _, c := range conns {
		c.reset()
	}
}

// Stats are the counters of a [Proxy].
type Stats struct {
	// Accepted is the number of connections of clients.
	Accepted int64
	// Reset is the number of those that the proxy has reset or refused.
	Reset int64
}

// Stats returns the counters.
func (p *Proxy) Stats() Stats {
	return Stats{Accepted: p.accepted.Load(), Reset: p.reset.Load()}
}

// Close resets all connections and stops the proxy. It waits until all goroutines have
// exited. A second call returns an error.
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

// state returns the current fault, its number, and a channel that closes when the
// fault ends.
func (p *Proxy) state() (f Fault, number int, ended <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fault, p.number, p.ended
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.AcceptTCP()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			select {
			case <-time.After(acceptBackoff):
			case <-p.ctx.Done():
				return
			}
			continue
		}
		p.accepted.Add(1)
		if f, _, _ := p.state(); f.Refuse {
			p.refuse(client)
			continue
		}
		p.goroutines.Go(func() { p.serve(client) })
	}
}

func (p *Proxy) refuse(client *net.TCPConn) {
	p.reset.Add(1)
	reset(client)
}

// serve connects to the server and forwards in both directions until the connections
// close.
func (p *Proxy) serve(client *net.TCPConn) {
	server, err := new(net.Dialer).DialContext(p.ctx, "tcp4", p.target)
	if err != nil {
		p.refuse(client)
		return
	}
	c := &conn{proxy: p, client: client, server: server.(*net.TCPConn), done: make(chan struct{})}
	p.mu.Lock()
	p.conns[c] = struct{}{}
	p.mu.Unlock()
	if p.ctx.Err() != nil { // Close may have missed it
		c.reset()
	}
	var forwarding sync.WaitGroup
	forwarding.Go(func() { c.forward(false) })
	forwarding.Go(func() { c.forward(true) })
	forwarding.Wait()
	c.close()
	p.mu.Lock()
	delete(p.conns, c)
	p.mu.Unlock()
}
