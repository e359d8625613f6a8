package main

import (
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestChoosePorts(t *testing.T) {
	p, err := choosePorts(t.Context(), ports{})
	require.NoError(t, err)
	assert.NotEqual(t, p.API, p.Etcd)
	for _, port := range []int{p.API, p.Etcd} {
		assert.GreaterOrEqual(t, port, firstPort)
		assert.Less(t, port, lastPort)
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", loopback(port))
		require.NoError(t, err, "the port is free")
		require.NoError(t, l.Close())
	}
	p, err = choosePorts(t.Context(), ports{API: 7})
	require.NoError(t, err)
	assert.Equal(t, 7, p.API)
	p, err = choosePorts(t.Context(), ports{Etcd: 8})
	require.NoError(t, err)
	assert.Equal(t, 8, p.Etcd)
}
