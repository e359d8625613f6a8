package faultproxy

import (
	"net"
	"sync"
	"time"
)

// pieceSize is how much is forwarded at a time.
const pieceSize = 32 << 10

// conn is a connection of a client, and the one to the server that belongs to
// it.
type conn struct {
	proxy          *Proxy
	client, server *net.TCPConn

	once sync.Once
	done chan struct{} // closed when it was reset or closed
}

// forward copies in one direction until the source ends, and passes the end on.
func (c *conn) forward(d direction) {
	from, to := c.client, c.server
	if d == answers {
		from, to = to, from
	}
	piece := make([]byte, pieceSize)
	sent, era := 0, 0 // sent since the fault of that number began
	for {
		n, err := from.Read(piece)
		if n > 0 {
			fault, now, ok := c.pass(d)
			if !ok {
				return
			}
			if now != era {
				sent, era = 0, now
			}
			data := piece[:n]
			cut := d == answers && fault.ResetAfter > 0 && sent+n >= fault.ResetAfter
			if cut {
				data = data[:max(fault.ResetAfter-sent, 0)]
			}
			sent += n
			if _, err := to.Write(data); err != nil {
				c.reset()
				return
			}
			if cut {
				c.reset()
				return
			}
		}
		if err != nil {
			break
		}
	}
	// The end is held like everything else, or the other side would learn of it.
	if _, _, ok := c.pass(d); !ok {
		return
	}
	if to.CloseWrite() != nil {
		c.reset()
	}
}

// pass waits until data may go on in that direction, and returns the fault at
// that time and its number. ok is false if the connection has ended before.
func (c *conn) pass(d direction) (f Fault, era int, ok bool) {
	delayed := false
	for {
		fault, era, over := c.proxy.state()
		if !fault.holds(d) && (delayed || fault.Delay == 0) {
			return fault, era, true
		}
		if fault.holds(d) {
			select {
			case <-over:
				continue
			case <-c.done:
				return fault, era, false
			}
		}
		timer := time.NewTimer(fault.Delay)
		select {
		case <-timer.C:
			delayed = true
		case <-over:
			timer.Stop()
		case <-c.done:
			timer.Stop()
			return fault, era, false
		}
	}
}

// reset ends both connections with a reset.
func (c *conn) reset() {
	c.once.Do(func() {
		c.proxy.reset.Add(1)
		close(c.done)
		abort(c.client)
		abort(c.server)
	})
}

// close ends both connections after all was forwarded.
func (c *conn) close() {
	c.once.Do(func() {
		close(c.done)
		// Whatever they say, there is nothing left to be done.
		_ = c.client.Close()
		_ = c.server.Close()
	})
}

// abort closes a connection with a reset instead of an orderly end.
func abort(c *net.TCPConn) {
	_ = c.SetLinger(0) // fails on a connection that has ended already
	_ = c.Close()
}
