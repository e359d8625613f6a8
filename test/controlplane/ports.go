package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
)

// Free ports are in this range. It is below the ephemeral ports of Linux, macOS and
// Windows, so that no outgoing connection takes the port of a server that restarts.
const (
	firstPort = 20000
	lastPort  = 32000
)

// ports are the ports of a control plane.
type ports struct {
	API  int `json:"api"`
	Etcd int `json:"etcd"`
}

// choosePorts returns the ports for a data directory, and stores them there. It takes
// the requested ports first, then those of the last start, then free ones.
func choosePorts(ctx context.Context, dir string, requested ports) (ports, error) {
	file := filepath.Join(dir, "ports.json")
	var last ports
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &last)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return ports{}, fmt.Errorf("controlplane: ports in %s: %w", file, err)
	}

	chosen := ports{API: cmp.Or(requested.API, last.API), Etcd: cmp.Or(requested.Etcd, last.Etcd)}
	if chosen.API == chosen.Etcd { // one is requested, the other is from the last start
		chosen = requested
	}
	for _, p := range []struct{ port, other *int }{{&chosen.API, &chosen.Etcd}, {&chosen.Etcd, &chosen.API}} {
		if *p.port != 0 {
			continue
		}
		if *p.port, err = freePort(ctx, *p.other); err != nil {
			return ports{}, err
		}
	}

	data, err = json.Marshal(chosen)
	if err == nil {
		err = writeFile(file, append(data, '\n'))
	}
	if err != nil {
		return ports{}, fmt.Errorf("controlplane: ports in %s: %w", file, err)
	}
	return chosen, nil
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
