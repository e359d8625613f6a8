package faultproxy

import (
	"bytes"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

const (
	// timeout bounds operations that take no time, except on a busy machine.
	timeout = time.Minute
	// idle is how long a test waits for something that must not happen. A slow
	// machine may hide a bug, but does not fail the test.
	idle = 50 * time.Millisecond
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestForwardsUnchanged(t *testing.T) {
	proxy := listen(t, echo(t, io.Discard))
	c := dial(t, proxy)
	big := bytes.Repeat([]byte("0123456789abcdef"), 64<<10)
	var sending sync.WaitGroup
	sending.Go(func() {
		_, err := c.Write(big)
		assert.NoError(t, err)
		assert.NoError(t, c.CloseWrite())
	})
	got, err := io.ReadAll(c)
	sending.Wait()
	require.NoError(t, err, "the proxy closes the connection when the server does")
	assert.Equal(t, big, got)
}

func TestRefuse(t *testing.T) {
	proxy := listen(t, echo(t, io.Discard))
	existing := dial(t, proxy)
	requireEcho(t, existing)

	proxy.Set(Fault{Refuse: true})
	requireRefused(t, proxy)
	requireEcho(t, existing)

	proxy.Set(Fault{})
	requireEcho(t, dial(t, proxy))

	stopped := echo(t, io.Discard)
	require.NoError(t, stopped.Close())
	requireRefused(t, listen(t, stopped))
}

func TestReset(t *testing.T) {
	proxy := listen(t, echo(t, io.Discard))
	conns := []*net.TCPConn{dial(t, proxy), dial(t, proxy)}
	for _, c := range conns {
		requireEcho(t, c)
	}
	proxy.Reset()
	for _, c := range conns {
		requireReset(t, c)
	}
	requireEcho(t, dial(t, proxy))
}

func TestHoldRequests(t *testing.T) {
	received := make(received, 100)
	proxy := listen(t, echo(t, received))
	c := dial(t, proxy)
	send(t, c, "a")
	requireReceived(t, received, "a")

	proxy.Set(Fault{HoldRequests: true})
	send(t, c, "b")
	requireNothing(t, received)
	proxy.Set(Fault{})
	requireReceived(t, received, "b")

	proxy.Set(Fault{HoldRequests: true})
	c = dial(t, proxy)
	send(t, c, "late")
	require.NoError(t, c.Close())
	requireNothing(t, received)
	proxy.Set(Fault{})
	requireReceived(t, received, "late") // after the client has disconnected
}

func TestHoldAnswers(t *testing.T) {
	received := make(received, 100)
	proxy := listen(t, echo(t, received))
	proxy.Set(Fault{HoldAnswers: true})
	c := dial(t, proxy)
	send(t, c, "a")
	requireReceived(t, received, "a")
	require.NoError(t, c.SetReadDeadline(time.Now().Add(idle)))
	_, err := c.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)

	proxy.Set(Fault{})
	requireAnswer(t, c, "a")
}

func TestResetAfter(t *testing.T) {
	proxy := listen(t, echo(t, io.Discard))
	existing := dial(t, proxy)
	requireEcho(t, existing)
	proxy.Set(Fault{ResetAfter: 6})
	for _, c := range []*net.TCPConn{existing, dial(t, proxy)} {
		requireEcho(t, c) // 4 bytes
		send(t, c, "more")
		requireReset(t, c) // which may discard the next 2 bytes
	}
	proxy.Set(Fault{})
	requireEcho(t, dial(t, proxy))
}

func TestDelay(t *testing.T) {
	proxy := listen(t, echo(t, io.Discard))
	c := dial(t, proxy)
	proxy.Set(Fault{Delay: 10 * time.Millisecond})
	begin := time.Now()
	for range 3 {
		requireEcho(t, c)
	}
	assert.GreaterOrEqual(t, time.Since(begin), 60*time.Millisecond, "three round trips")

	proxy.Set(Fault{Delay: 1000 * time.Hour})
	send(t, c, "x")
	proxy.Set(Fault{})
	requireAnswer(t, c, "x") // the delay ends with the fault
}

func TestCloseDiscardsHeldData(t *testing.T) {
	proxy := listen(t, echo(t, io.Discard))
	c := dial(t, proxy)
	requireEcho(t, c)
	proxy.Set(Fault{HoldRequests: true, HoldAnswers: true})
	send(t, c, "x")
	require.NoError(t, proxy.Close())
	requireReset(t, c)
	assert.Error(t, proxy.Close())
}

func listen(t *testing.T, server net.Listener) *Proxy {
	t.Helper()
	proxy, err := Listen(t.Context(), server.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = proxy.Close() })
	return proxy
}

func dial(t *testing.T, proxy *Proxy) *net.TCPConn {
	t.Helper()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", proxy.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c.(*net.TCPConn)
}

// received receives what a server reads.
type received chan string

func (r received) Write(data []byte) (int, error) {
	r <- string(data)
	return len(data), nil
}

// echo starts an echo server that also writes to received. The proxy of the test closes
// all connections.
func echo(t *testing.T, received io.Writer) net.Listener {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var goroutines sync.WaitGroup
	goroutines.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			goroutines.Go(func() {
				defer c.Close()
				_, _ = io.Copy(c, io.TeeReader(c, received))
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		goroutines.Wait()
	})
	return listener
}

func send(t *testing.T, c net.Conn, data string) {
	t.Helper()
	_, err := c.Write([]byte(data))
	require.NoError(t, err)
}

func requireEcho(t *testing.T, c *net.TCPConn) {
	t.Helper()
	send(t, c, "ping")
	requireAnswer(t, c, "ping")
}

func requireAnswer(t *testing.T, c *net.TCPConn, want string) {
	t.Helper()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(timeout)))
	got := make([]byte, len(want))
	_, err := io.ReadFull(c, got)
	require.NoError(t, err)
	require.Equal(t, want, string(got))
}

func requireReset(t *testing.T, c *net.TCPConn) {
	t.Helper()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(timeout)))
	_, err := io.Copy(io.Discard, c)
	require.ErrorIs(t, err, syscall.ECONNRESET)
}

// requireRefused requires the reset of a new connection, which may come before Dial
// returns.
func requireRefused(t *testing.T, proxy *Proxy) {
	t.Helper()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", proxy.Addr())
	if err != nil {
		require.ErrorIs(t, err, syscall.ECONNRESET)
		return
	}
	defer c.Close()
	requireReset(t, c.(*net.TCPConn))
}

func requireReceived(t *testing.T, received received, want string) {
	t.Helper()
	for got := ""; got != want; {
		select {
		case data := <-received:
			got += data
			require.Contains(t, want, got)
		case <-time.After(timeout):
			require.Fail(t, "not received", "%q", want)
		}
	}
}

func requireNothing(t *testing.T, received received) {
	t.Helper()
	select {
	case data := <-received:
		require.Fail(t, "received", "%q", data)
	case <-time.After(idle):
	}
}
