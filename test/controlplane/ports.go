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

// choosePorts sets ports that are zero to free ones.
func (c *config) choosePorts(ctx context.Context) (err error) {
	if c.port == 0 {
		c.port, err = freePort(ctx, c.etcdPort)
	}
	if c.etcdPort == 0 && err == nil {
		c.etcdPort, err = freePort(ctx, c.port)
	}
	return err
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
