package heartbeat

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTree: each node but the root is a child of its parent and of no other, and
// the children of a node stand together in one chunk and one cache line.
func TestTree(t *testing.T) {
	assert.Equal(t, root+1, firstChild(root))
	next := root + 1
	for i := root; i < 3*chunk; i++ {
		c := firstChild(i)
		require.Equal(t, next, c, "children of %d", i)
		require.Zero(t, c%arity)
		for ; next < c+arity; next++ {
			require.Equal(t, i, parent(next))
		}
	}
}
