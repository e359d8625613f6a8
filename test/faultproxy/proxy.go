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
	target     string
	listener   *net.TCPListener
	goroutines sync.WaitGroup
	current    atomic.Pointer[current]
	ctx        context.Context // ends on Close
	stop       context.CancelFunc

	mu     sync.Mutex
	conns  context.Context // of the connections since the latest Reset
	cancel context.CancelFunc
}

// current is the current fault.
type current struct {
	Fault
	ended chan struct{}
}

// Listen starts a proxy on a free port of 127.0.0.1 for the server at target, a host
// and port. The server may start later. The caller must call [Proxy.Close]; ctx only
// applies to the call of Listen.
func Listen(ctx context.Context, target string) (*Proxy, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("faultproxy: for %s: %w", target, err)
	}
	p := &Proxy{target: target, listener: listener.(*net.TCPListener)}
	p.current.Store(&current{ended: make(chan struct{})})
	p.ctx, p.stop = context.WithCancel(context.Background())
	p.conns, p.cancel = context.WithCancel(p.ctx)
	p.goroutines.Go(p.accept)
	return p, nil
}

// Addr returns the host and port on which the proxy listens.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Set replaces the current fault.
func (p *Proxy) Set(f Fault) {
	before := p.current.Swap(&current{f, make(chan struct{})})
	close(before.ended)
}

// Reset resets all connections of clients and to the server. Data that the proxy holds
// are lost.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cancel()
	p.conns, p.cancel = context.WithCancel(p.ctx)
}

// Close resets all connections and stops the proxy. It waits until all goroutines have
// exited. A second call returns an error.
func (p *Proxy) Close() error {
	p.stop()
	err := p.listener.Close()
	p.goroutines.Wait()
	if err != nil {
		return fmt.Errorf("faultproxy: close: %w", err)
	}
	return nil
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.AcceptTCP()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			time.Sleep(acceptBackoff)
		case p.current.Load().Refuse:
			reset(client)
		default:
			p.goroutines.Go(func() { p.serve(client) })
		}
	}
}

// serve connects to the server and forwards in both directions until the connections
// close.
func (p *Proxy) serve(client *net.TCPConn) {
	p.mu.Lock()
	ctx, cancel := context.WithCancel(p.conns)
	p.mu.Unlock()
	defer cancel()
	server, err := new(net.Dialer).DialContext(ctx, "tcp4", p.target)
	if err != nil {
		reset(client)
		return
	}
	c := &conn{proxy: p, client: client, server: server.(*net.TCPConn), ctx: ctx, cancel: cancel}
	var forwarding sync.WaitGroup
	forwarding.Go(func() { c.forward(false) })
	forwarding.Go(func() { c.forward(true) })
	// A reset unblocks both.
	stop := context.AfterFunc(ctx, func() {
		reset(client)
		reset(c.server)
	})
	forwarding.Wait()
	if stop() { // everything is forwarded
		_ = client.Close()
		_ = server.Close()
	}
}

// chunkSize is the maximum number of bytes to forward at once.
const chunkSize = 32 << 10

// conn is a connection of a client and the corresponding one to the server. The end of
// its context resets both.
type conn struct {
	proxy          *Proxy
	client, server *net.TCPConn
	ctx            context.Context
	cancel         context.CancelFunc
}

// forward forwards the answers of the server, or the requests of the client, until the
// sender closes its connection. Then it closes the other one for writing.
func (c *conn) forward(answers bool) {
	from, to := c.client, c.server
	if answers {
		from, to = to, from
	}
	buf := make([]byte, chunkSize)
	var last *current
	sent := 0 // bytes since the last fault began
	for {
		n, readErr := from.Read(buf)
		// This holds and delays the end of the stream too.
		fault, ok := c.await(answers)
		if !ok {
			return
		}
		if fault != last {
			sent, last = 0, fault
		}
		limited := answers && fault.ResetAfter > 0 && n > 0 && sent+n >= fault.ResetAfter
		data := buf[:n]
		if limited {
			data = data[:max(fault.ResetAfter-sent, 0)]
		}
		sent += n
		_, err := to.Write(data)
		if err == nil && readErr != nil {
			err = to.CloseWrite()
		}
		if err != nil || limited {
			c.cancel()
		}
		if err != nil || limited || readErr != nil {
			return
		}
	}
}

// await waits until the current fault lets data pass, and returns that fault. It returns
// false if the connection closes first.
func (c *conn) await(answers bool) (fault *current, ok bool) {
	delayed := false
	for {
		fault := c.proxy.current.Load()
		held := fault.HoldRequests
		if answers {
			held = fault.HoldAnswers
		}
		if !held && (delayed || fault.Delay == 0) {
			return fault, true
		}
		var delay <-chan time.Time // never, if held
		if !held {
			delay = time.After(fault.Delay)
		}
		select {
		case <-delay:
			delayed = true
		case <-fault.ended:
		case <-c.ctx.Done():
			return nil, false
		}
	}
}

func reset(c *net.TCPConn) {
	_ = c.SetLinger(0) // fails if the connection has already closed
	_ = c.Close()
}
