package main

import (
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

// Free ports are taken from this range. It lies below the ports that Linux,
// macOS and Windows hand to outgoing connections, so that none of those can
// occupy the port of a server that was stopped and is about to start again.
const (
	firstPort = 20000
	lastPort  = 32000
)

// ports are the two that a control plane listens on.
type ports struct {
	API  int `json:"api"`
	Etcd int `json:"etcd"`
}

// choosePorts returns the ports to serve dir on and remembers them there: those
// that want names, then those that dir was served on before, then free ones.
func choosePorts(ctx context.Context, dir string, want ports) (ports, error) {
	file := filepath.Join(dir, "ports.json")
	var before ports
	switch data, err := os.ReadFile(file); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return ports{}, fmt.Errorf("controlplane: remembered ports: %w", err)
	default:
		if err := json.Unmarshal(data, &before); err != nil {
			return ports{}, fmt.Errorf("controlplane: remembered ports in %s: %w", file, err)
		}
	}

	chosen := want
	for _, p := range []struct{ chosen, before, other *int }{
		{&chosen.API, &before.API, &chosen.Etcd},
		{&chosen.Etcd, &before.Etcd, &chosen.API},
	} {
		if *p.chosen == 0 && *p.before != *p.other {
			*p.chosen = *p.before
		}
		if *p.chosen == 0 {
			free, err := freePort(ctx, *p.other)
			if err != nil {
				return ports{}, err
			}
			*p.chosen = free
		}
	}

	if chosen == before {
		return chosen, nil
	}
	data, err := json.Marshal(chosen)
	if err != nil {
		return ports{}, fmt.Errorf("controlplane: remember ports: %w", err)
	}
	if err := writeFile(file, append(data, '\n')); err != nil {
		return ports{}, fmt.Errorf("controlplane: remember ports: %w", err)
	}
	return chosen, nil
}

// freePort returns a port of 127.0.0.1 that nobody listens on and that is not
// taken.
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
