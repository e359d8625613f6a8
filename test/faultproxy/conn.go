package faultproxy

import (
	"net"
	"sync"
	"time"
)

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
