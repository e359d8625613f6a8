package faultproxy

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// patience bounds what should take no time, on a machine that is busy.
const patience = time.Minute

// aWhile is long enough for something to go wrong that must not happen. A slow
// machine makes such a test weaker, but never makes it fail.
const aWhile = 50 * time.Millisecond

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPassesOn(t *testing.T) {
	proxy := listen(t, echo(t))
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
	require.NoError(t, err, "the end is passed on as an end")
	assert.Equal(t, big, got)
	assert.Equal(t, Stats{Accepted: 1}, proxy.Stats())
}

func TestRefuse(t *testing.T) {
	proxy := listen(t, echo(t))
	running := dial(t, proxy)
	requireEcho(t, running)

	proxy.Set(Fault{Refuse: true})
	requireRefused(t, proxy)
	requireEcho(t, running)

	proxy.Set(Fault{})
	requireEcho(t, dial(t, proxy))
}

func TestReset(t *testing.T) {
	proxy := listen(t, echo(t))
	one, other := dial(t, proxy), dial(t, proxy)
	requireEcho(t, one)
	requireEcho(t, other)
	proxy.Reset()
	requireReset(t, one)
	requireReset(t, other)
	requireEcho(t, dial(t, proxy))
	assert.Equal(t, Stats{Accepted: 3, Reset: 2}, proxy.Stats())
}

func TestServerThatIsAway(t *testing.T) {
	server := echo(t)
	require.NoError(t, server.Close())
	requireRefused(t, listen(t, server))
}

func TestHoldRequests(t *testing.T) {
	server, arrived := sink(t)
	proxy := listen(t, server)
	c := dial(t, proxy)
	send(t, c, "a")
	requireArrives(t, arrived, "a")

	proxy.Set(Fault{HoldRequests: true})
	send(t, c, "b")
	requireNothing(t, arrived)
	proxy.Set(Fault{})
	requireArrives(t, arrived, "b")
}

// A request can arrive after its sender has gone.
func TestWhatIsHeldOutlivesItsSender(t *testing.T) {
	server, arrived := sink(t)
	proxy := listen(t, server)
	proxy.Set(Fault{HoldRequests: true})
	c := dial(t, proxy)
	send(t, c, "late")
	require.NoError(t, c.Close())
	requireNothing(t, arrived)
	proxy.Set(Fault{})
	requireArrives(t, arrived, "late")
}

func TestHoldAnswers(t *testing.T) {
	server, arrived := sink(t)
	proxy := listen(t, server)
	proxy.Set(Fault{HoldAnswers: true})
	c := dial(t, proxy)
	send(t, c, "a")
	requireArrives(t, arrived, "a") // and is answered
	require.NoError(t, c.SetReadDeadline(time.Now().Add(aWhile)))
	_, err := c.Read(make([]byte, 1))
	var timeout net.Error
	require.ErrorAs(t, err, &timeout)
	assert.True(t, timeout.Timeout())

	proxy.Set(Fault{})
	require.NoError(t, c.SetReadDeadline(time.Now().Add(patience)))
	got := make([]byte, 1)
	_, err = io.ReadFull(c, got)
	require.NoError(t, err)
	assert.Equal(t, "a", string(got))
}

func TestResetAfter(t *testing.T) {
	proxy := listen(t, echo(t))
	old := dial(t, proxy)
	requireEcho(t, old)
	proxy.Set(Fault{ResetAfter: 6})
	for _, c := range []*net.TCPConn{old, dial(t, proxy)} {
		requireEcho(t, c) // 4 bytes
		send(t, c, "more")
		// What came before the reset may get lost with it.
		requireReset(t, c)
	}
	proxy.Set(Fault{})
	requireEcho(t, dial(t, proxy))
}

func TestDelay(t *testing.T) {
	proxy := listen(t, echo(t))
	c := dial(t, proxy)
	proxy.Set(Fault{Delay: 10 * time.Millisecond})
	begin := time.Now()
	for range 3 {
		requireEcho(t, c)
	}
	assert.GreaterOrEqual(t, time.Since(begin), 60*time.Millisecond, "three times there and back")

	proxy.Set(Fault{Delay: 1000 * time.Hour})
	send(t, c, "x")
	proxy.Set(Fault{})
	require.NoError(t, c.SetReadDeadline(time.Now().Add(patience)))
	got := make([]byte, 1)
	_, err := io.ReadFull(c, got)
	require.NoError(t, err, "a delay ends with its fault")
}

func TestCloseEndsWhatIsHeld(t *testing.T) {
	proxy := listen(t, echo(t))
	c := dial(t, proxy)
	requireEcho(t, c)
	proxy.Set(Fault{HoldRequests: true, HoldAnswers: true})
	send(t, c, "x")
	require.NoError(t, proxy.Close())
	requireReset(t, c)
	assert.Error(t, proxy.Close())
}

func TestFaultString(t *testing.T) {
	assert.Equal(t, "none", Fault{}.String())
	assert.Equal(t, "refuse hold-requests hold-answers reset-after=7 delay=1s",
		Fault{Refuse: true, HoldRequests: true, HoldAnswers: true, ResetAfter: 7, Delay: time.Second}.String())
}

// listen starts a proxy in front of a server.
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

// echo starts a server that sends back what it gets.
func echo(t *testing.T) net.Listener {
	t.Helper()
	return serve(t, func(c net.Conn) { _, _ = io.Copy(c, c) })
}

// sink starts an echo server that also tells what arrives, byte by byte.
func sink(t *testing.T) (server net.Listener, arrived <-chan byte) {
	t.Helper()
	bytes := make(chan byte, 100)
	server = serve(t, func(c net.Conn) {
		b := make([]byte, 1)
		for {
			if _, err := io.ReadFull(c, b); err != nil {
				return
			}
			bytes <- b[0]
			if _, err := c.Write(b); err != nil && !gone(err) {
				t.Errorf("answer: %v", err)
			}
		}
	})
	return server, bytes
}

// gone reports whether err says that the other side has gone.
func gone(err error) bool {
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, net.ErrClosed)
}

// serve calls handle for each connection, and ends with the test.
func serve(t *testing.T, handle func(net.Conn)) net.Listener {
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
			stop := make(chan struct{})
			closing := sync.OnceFunc(func() { _ = c.Close(); close(stop) })
			goroutines.Go(func() {
				defer closing()
				handle(c)
			})
			goroutines.Go(func() {
				select {
				case <-t.Context().Done():
					closing()
				case <-stop:
				}
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
	require.NoError(t, c.SetReadDeadline(time.Now().Add(patience)))
	got := make([]byte, 4)
	_, err := io.ReadFull(c, got)
	require.NoError(t, err)
	require.Equal(t, "ping", string(got))
}

// requireReset reads until the connection ends, which must be by a reset.
func requireReset(t *testing.T, c *net.TCPConn) {
	t.Helper()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(patience)))
	_, err := io.Copy(io.Discard, c)
	require.ErrorIs(t, err, syscall.ECONNRESET)
}

// requireRefused makes a connection, which must be reset. That can be so early
// that it is not made at all.
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

func requireArrives(t *testing.T, arrived <-chan byte, want string) {
	t.Helper()
	var got []byte
	for len(got) < len(want) {
		select {
		case b := <-arrived:
			got = append(got, b)
		case <-time.After(patience):
			require.Equal(t, want, string(got))
		}
	}
	require.Equal(t, want, string(got))
}

func requireNothing(t *testing.T, arrived <-chan byte) {
	t.Helper()
	select {
	case b := <-arrived:
		require.Fail(t, "arrived", "%q", b)
	case <-time.After(aWhile):
	}
}
