package integration

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
)

// connectionFaults are what a front can do to connections before there is a
// request. The zero value has no faults.
type connectionFaults struct {
	// Each is how many of the next connections are to fail that way.
	refused, reset, distrusted atomic.Int32
	seen                       atomic.Int32 // how many have failed
}

// attach makes a server, which has not been started, have the faults.
func (c *connectionFaults) attach(server *httptest.Server) {
	server.Listener = &resettingListener{Listener: server.Listener, faults: c}
	server.TLS = &tls.Config{
		MinVersion: tls.VersionTLS12,
		// Not GetCertificate, which is not asked about addresses.
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			if !c.due(&c.distrusted) {
				return nil, nil // that of the server
			}
			other, err := strangersCertificate()
			if err != nil {
				return nil, err
			}
			return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{other}}, nil
		},
	}
}

// due reports whether a connection has to fail, and counts it.
func (c *connectionFaults) due(left *atomic.Int32) bool {
	for {
		n := left.Load()
		if n <= 0 {
			return false
		}
		if left.CompareAndSwap(n, n-1) {
			c.seen.Add(1)
			return true
		}
	}
}

// dial is for clients. A connection that is to be refused goes where nobody
// listens.
func (c *connectionFaults) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if c.due(&c.refused) {
		var config net.ListenConfig
		listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		address = listener.Addr().String()
		if err := listener.Close(); err != nil {
			return nil, err
		}
	}
	var dialer net.Dialer
	return dialer.DialContext(ctx, network, address)
}

// resettingListener resets connections as soon as they are there.
type resettingListener struct {
	net.Listener
	faults *connectionFaults
}

// Accept implements net.Listener.
func (l *resettingListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil || !l.faults.due(&l.faults.reset) {
			return conn, err
		}
		resetConnection(conn.(*net.TCPConn))
	}
}

// resetConnection ends a connection so that the other side is told of a reset.
func resetConnection(conn *net.TCPConn) {
	_ = conn.SetLinger(0) // it may be closed already
	_ = conn.Close()
}

// strangersCertificate is of an authority that no client knows.
var strangersCertificate = sync.OnceValues(func() (tls.Certificate, error) {
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(certificate, key)
})

func discardLog() *log.Logger { return log.New(io.Discard, "", 0) }

// Each fault of a connection is what its name says, as often as it is said.
func TestConnectionFaults(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		set  func(*connectionFaults)
		want string
	}{
		"refused":    {func(c *connectionFaults) { c.refused.Store(2) }, "connection refused"},
		"reset":      {func(c *connectionFaults) { c.reset.Store(2) }, "connection reset"},
		"distrusted": {func(c *connectionFaults) { c.distrusted.Store(2) }, "unknown authority"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFront(t, false)
			test.set(&f.connections)
			// Not a clientset, which would try again.
			client, err := rest.HTTPClientFor(f.config())
			require.NoError(t, err)
			get := func() error {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.server.URL+"/version", nil)
				require.NoError(t, err)
				response, err := client.Do(req)
				if err == nil {
					err = response.Body.Close()
				}
				return err
			}
			for range 2 {
				require.ErrorContains(t, get(), test.want)
			}
			require.NoError(t, get())
			require.EqualValues(t, 2, f.connections.seen.Load())
		})
	}
}
