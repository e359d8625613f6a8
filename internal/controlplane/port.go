package controlplane

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
)

// FreePort returns a port of 127.0.0.1 on which nothing listens, for a server that starts
// soon. It is below the ephemeral ports, which outgoing connections could occupy before the
// server listens.
func FreePort(ctx context.Context) (port int, err error) {
	for range 100 {
		port = 20000 + rand.IntN(12000)
		var l net.Listener
		if l, err = new(net.ListenConfig).Listen(ctx, "tcp4", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("controlplane: no free port: %w", err)
}
