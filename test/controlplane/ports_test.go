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
	first, err := choosePorts(t.Context(), dir, ports{})
	require.NoError(t, err)
	assert.NotEqual(t, first.API, first.Etcd)
	for _, port := range []int{first.API, first.Etcd} {
		assert.GreaterOrEqual(t, port, firstPort)
		assert.Less(t, port, lastPort)
	}

	again, err := choosePorts(t.Context(), dir, ports{})
	require.NoError(t, err)
	assert.Equal(t, first, again, "the ports of a directory stay")

	moved, err := choosePorts(t.Context(), dir, ports{API: 7})
	require.NoError(t, err)
	assert.Equal(t, ports{API: 7, Etcd: first.Etcd}, moved)
	again, err = choosePorts(t.Context(), dir, ports{})
	require.NoError(t, err)
	assert.Equal(t, moved, again)
}

func TestChoosePortsNeverTakesOneTwice(t *testing.T) {
	dir := t.TempDir()
	_, err := choosePorts(t.Context(), dir, ports{API: 7, Etcd: 8})
	require.NoError(t, err)
	p, err := choosePorts(t.Context(), dir, ports{API: 8})
	require.NoError(t, err)
	assert.Equal(t, 8, p.API)
	assert.NotEqual(t, 8, p.Etcd)
}

func TestChoosePortsReadsNoNonsense(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "ports.json")
	require.NoError(t, os.WriteFile(file, []byte("{"), 0o600))
	_, err := choosePorts(t.Context(), dir, ports{})
	assert.ErrorContains(t, err, file)
}

func TestFreePortIsFree(t *testing.T) {
	port, err := freePort(t.Context(), 0)
	require.NoError(t, err)
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", loopback(port))
	require.NoError(t, err)
	require.NoError(t, l.Close())
}
