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

// chunkSize is the maximum number of bytes to forward at once.
const chunkSize = 32 << 10

// conn is a connection of a client and the corresponding one to the server.
type conn struct {
	proxy          *Proxy
	client, server *net.TCPConn

	once sync.Once
	done chan struct{} // closed by reset and close
}

// forward forwards the answers of the server, or the requests of the client, until the
// sender closes its connection. Then it closes the other one for writing.
func (c *conn) forward(answers bool) {
	from, to := c.client, c.server
	if answers {
		from, to = to, from
	}
	buf := make([]byte, chunkSize)
	sent, last := 0, 0 // bytes sent since the fault with this number began
	for {
		n, readErr := from.Read(buf)
		// This holds and delays the end of the stream too.
		fault, number, ok := c.await(answers)
		if !ok {
			return
		}
		if number != last {
			sent, last = 0, number
		}
		limited := answers && fault.ResetAfter > 0 && n > 0 && sent+n >= fault.ResetAfter
		data := buf[:n]
		if limited {
			data = data[:max(fault.ResetAfter-sent, 0)]
		}
		sent += n
		if _, err := to.Write(data); err != nil || limited {
			c.reset()
			return
		}
		if readErr != nil {
			if to.CloseWrite() != nil {
				c.reset()
			}
			return
		}
	}
}

// await waits until the current fault lets data pass, and returns that fault and its
// number. It returns false if the connection closes first.
func (c *conn) await(answers bool) (f Fault, number int, ok bool) {
	delayed := false
	for {
		fault, number, ended := c.proxy.state()
		held := fault.HoldRequests
		if answers {
			held = fault.HoldAnswers
		}
		if !held && (delayed || fault.Delay == 0) {
			return fault, number, true
		}
		var delay <-chan time.Time // never, if held
		if !held {
			delay = time.After(fault.Delay)
		}
		select {
		case <-delay:
			delayed = true
		case <-ended:
		case <-c.done:
			return fault, number, false
		}
	}
}

func (c *conn) reset() {
	c.once.Do(func() {
		c.proxy.reset.Add(1)
		close(c.done)
		reset(c.client)
		reset(c.server)
	})
}

// close closes both connections after everything is forwarded.
func (c *conn) close() {
	c.once.Do(func() {
		close(c.done)
		_ = c.client.Close()
		_ = c.server.Close()
	})
}

func reset(c *net.TCPConn) {
	_ = c.SetLinger(0) // fails if the connection has already closed
	_ = c.Close()
}
