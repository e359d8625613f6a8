package main

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestChoosePorts(t *testing.T) {
	dir := t.TempDir()
	choose := func(requested ports) ports {
		t.Helper()
		p, err := choosePorts(t.Context(), dir, requested)
		require.NoError(t, err)
		return p
	}
	first := choose(ports{})
	assert.NotEqual(t, first.API, first.Etcd)
	for _, port := range []int{first.API, first.Etcd} {
		assert.GreaterOrEqual(t, port, firstPort)
		assert.Less(t, port, lastPort)
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", loopback(port))
		require.NoError(t, err, "the port is free")
		require.NoError(t, l.Close())
	}
	assert.Equal(t, first, choose(ports{}))

	moved := ports{API: 7, Etcd: first.Etcd}
	assert.Equal(t, moved, choose(ports{API: 7}))
	assert.Equal(t, moved, choose(ports{}))

	choose(ports{API: 7, Etcd: 8})
	swapped := choose(ports{API: 8})
	assert.Equal(t, 8, swapped.API)
	assert.NotEqual(t, 8, swapped.Etcd, "the ports differ")

	file := filepath.Join(dir, "ports.json")
	require.NoError(t, os.WriteFile(file, []byte("{"), 0o600))
	_, err := choosePorts(t.Context(), dir, ports{})
	assert.ErrorContains(t, err, file)
}
