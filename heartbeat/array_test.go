package heartbeat

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestArray takes an array to each size up to three chunks and back.
func TestArray(t *testing.T) {
	const n = 3*chunk + 1
	var a array[*int]
	values := make([]int, n)
	for i := range n {
		a.push(&values[i])
		require.Equal(t, i+1, a.size)
	}
	for i := range n {
		require.Same(t, &values[i], *a.at(i))
	}
	for i := n - 1; i >= 0; i-- {
		require.Same(t, &values[i], a.pop())
		require.Equal(t, i, a.size)
		require.Less(t, capacity(a), i+3*chunk/2, "at size %d", i)
	}
	requireClean(t, a)
	assert.Len(t, a.chunks, 1)
}

// TestArraySmall: most queues have a few items.
func TestArraySmall(t *testing.T) {
	var a array[*int]
	for i := range chunk {
		a.push(nil)
		require.LessOrEqual(t, capacity(a), max(firstRoom, 2*i))
	}
	assert.Equal(t, chunk, capacity(a))
}

// TestArrayDoesNotMove: elements keep their addresses as the array grows, those
// of the first chunk excepted.
func TestArrayDoesNotMove(t *testing.T) {
	var a array[int]
	var addresses []*int
	for i := range 5 * chunk {
		a.push(i)
		if i >= chunk {
			addresses = append(addresses, a.at(i))
		}
	}
	for i, address := range addresses {
		require.Same(t, address, a.at(chunk+i))
	}
}

// TestArrayAtBorder: going to and fro between two chunks allocates nothing.
func TestArrayAtBorder(t *testing.T) {
	var a array[int]
	for i := range 2*chunk + 1 {
		a.push(i)
	}
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		for range chunk / 4 {
			a.pop()
		}
		for i := range chunk / 4 {
			a.push(i)
		}
	}))
}

func capacity[E any](a array[E]) (n int) {
	for _, c := range a.chunks {
		n += cap(c)
	}
	return n
}

// requireClean requires that nothing beyond the size of a is kept alive.
func requireClean[E comparable](t *testing.T, a array[E]) {
	t.Helper()
	var zero E
	for _, c := range a.chunks[:cap(a.chunks)][len(a.chunks):] {
		require.Nil(t, c)
	}
	n := 0
	for _, c := range a.chunks {
		n += len(c)
		for _, e := range c[len(c):cap(c)] {
			if e != zero {
				require.Fail(t, "kept alive", "%v", e)
			}
		}
	}
	require.Equal(t, a.size, n)
}
