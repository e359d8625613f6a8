package main

import (
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestChoosePorts(t *testing.T) {
	for _, cfg := range []config{{}, {port: 7}, {etcdPort: 8}} {
		requested := cfg
		require.NoError(t, cfg.choosePorts(t.Context()))
		assert.NotEqual(t, cfg.port, cfg.etcdPort)
		for _, p := range []struct{ requested, chosen int }{{requested.port, cfg.port}, {requested.etcdPort, cfg.etcdPort}} {
			if p.requested != 0 {
				assert.Equal(t, p.requested, p.chosen)
				continue
			}
			assert.GreaterOrEqual(t, p.chosen, firstPort)
			assert.Less(t, p.chosen, lastPort)
			l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", loopback(p.chosen))
			require.NoError(t, err, "the port is free")
			require.NoError(t, l.Close())
		}
	}
}
