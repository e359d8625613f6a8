package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Free ports are in this range. It is below the ephemeral ports of Linux, macOS and
// Windows, so that no outgoing connection takes the port of a server that restarts.
const (
	firstPort = 20000
	lastPort  = 32000
)

// ports are the ports of a control plane.
type ports struct{ API, Etcd int }

// choosePorts returns the requested ports, and free ones for those that are zero.
func choosePorts(ctx context.Context, p ports) (_ ports, err error) {
	if p.API == 0 {
		p.API, err = freePort(ctx, p.Etcd)
	}
	if p.Etcd == 0 && err == nil {
		p.Etcd, err = freePort(ctx, p.API)
	}
	return p, err
}

// freePort returns a free port of 127.0.0.1 other than taken.
func freePort(ctx context.Context, taken int) (int, error) {
	var last error
	for range 100 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		if port == taken {
			continue
		}
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", loopback(port))
		if err != nil {
			last = err
			continue
		}
		return port, l.Close()
	}
	return 0, fmt.Errorf("controlplane: no free port between %d and %d: %w", firstPort, lastPort, last)
}

// loopback returns the address of a port on 127.0.0.1.
func loopback(port int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}
