package series

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestClosedNames(t *testing.T) {
	c := newClosedNames(4)
	assert.False(t, c.taken(1, 0))
	assert.False(t, c.taken(1, -time.Hour), "nothing is known of it, before the beginning as well")

	c.add(1, time.Minute)
	assert.True(t, c.taken(1, time.Minute-1))
	assert.False(t, c.taken(1, time.Minute))

	c.add(1, time.Second)
	assert.True(t, c.taken(1, time.Minute-1), "it never becomes free earlier")
	c.add(2, -time.Second)
	assert.True(t, c.taken(2, -time.Minute))
	assert.False(t, c.taken(2, 0))

	// The older half is forgotten, but not what was renewed.
	c.add(3, time.Minute)
	c.add(1, 2*time.Minute)
	c.add(4, time.Minute)
	assert.True(t, c.taken(1, time.Minute))
	assert.True(t, c.taken(3, 0))
	assert.False(t, c.taken(2, -time.Minute), "forgotten")

	for hash := range uint64(1000) {
		c.add(hash, time.Minute)
		assert.LessOrEqual(t, len(c.new)+len(c.old), 4)
	}
	assert.True(t, c.taken(999, 0))
}

// A table of one series still remembers something.
func TestClosedNamesOfOne(t *testing.T) {
	c := newClosedNames(1)
	c.add(1, time.Minute)
	assert.True(t, c.taken(1, 0))
	c.add(2, time.Minute)
	assert.True(t, c.taken(2, 0))
}
