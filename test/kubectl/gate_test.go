package kubectl

import (
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// gate is a TCP proxy that closes all connections while it is closed.
type gate struct {
	listener net.Listener
	to       string

	mu          sync.Mutex
	closed      bool
	connections map[net.Conn]bool
	running     sync.WaitGroup
}

func newGate(t *testing.T, to string) *gate {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	g := &gate{listener: l, to: to, connections: make(map[net.Conn]bool)}
	g.running.Go(g.serve)
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		g.close()
		g.running.Wait()
	})
	return g
}

func (g *gate) addr() string { return g.listener.Addr().String() }

func (g *gate) serve() {
	for {
		client, err := g.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp4", g.to) //nolint:noctx // close ends it
		if err != nil || !g.add(client, server) {
			_ = client.Close()
			continue
		}
		for _, pair := range [][2]net.Conn{{client, server}, {server, client}} {
			g.running.Go(func() {
				_, _ = io.Copy(pair[0], pair[1])
				_, _ = pair[0].Close(), pair[1].Close()
			})
		}
	}
}

// add returns false if the gate is closed.
func (g *gate) add(client, server net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		_ = server.Close()
		return false
	}
	g.connections[client], g.connections[server] = true, true
	return true
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for c := range g.connections {
		_ = c.Close()
	}
	clear(g.connections)
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = false
}
