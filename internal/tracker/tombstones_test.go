package tracker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestTombstones(t *testing.T) {
	c := newTombstones(4)
	hold := func(hash uint64, until time.Duration) { c.hold(hash, until, ownerUnknown) }
	assert.False(t, c.taken(1, 0))
	assert.False(t, c.taken(1, -time.Hour), "also before the beginning")

	hold(1, time.Minute)
	assert.True(t, c.taken(1, time.Minute-1))
	assert.False(t, c.taken(1, time.Minute))

	hold(1, time.Second)
	assert.True(t, c.taken(1, time.Minute-1), "never free earlier")
	hold(2, -time.Second)
	assert.True(t, c.taken(2, -time.Minute))
	assert.False(t, c.taken(2, 0))

	// The older half is forgotten, but not what was renewed.
	hold(3, time.Minute)
	hold(1, 2*time.Minute)
	hold(4, time.Minute)
	assert.True(t, c.taken(1, time.Minute))
	assert.True(t, c.taken(3, 0))
	assert.False(t, c.taken(2, -time.Minute), "forgotten")

	for hash := range uint64(1000) {
		hold(hash, time.Minute)
		assert.LessOrEqual(t, len(c.new)+len(c.old), 4)
	}
	assert.True(t, c.taken(999, 0))

	// A tracker with room for one series has a tombstone, too.
	c = newTombstones(1)
	for hash := range uint64(2) {
		hold(hash, time.Minute)
		assert.True(t, c.taken(hash, 0))
	}
}

// The owner of a name is known until another Event can have it.
func TestTombstonesOwner(t *testing.T) {
	c := newTombstones(8)
	assert.Equal(t, ownerUnknown, c.owner(1, 0))
	c.release(1) // nothing
	c.belongs(1, ownerUs)
	assert.Equal(t, ownerUnknown, c.owner(1, 0))

	c.hold(1, time.Minute, ownerUs)
	assert.Equal(t, ownerUs, c.owner(1, 0))
	assert.Equal(t, ownerUnknown, c.owner(1, time.Minute))
	c.hold(1, 2*time.Minute, ownerUnknown)
	assert.Equal(t, ownerUs, c.owner(1, time.Minute), "still known")
	c.belongs(1, ownerOther)
	assert.Equal(t, ownerOther, c.owner(1, time.Minute))

	c.release(1)
	assert.False(t, c.taken(1, time.Second))
	assert.Equal(t, ownerUnknown, c.owner(1, time.Second))
	c.hold(1, time.Minute, ownerUnknown)
	assert.Equal(t, ownerUnknown, c.owner(1, time.Second))
}

// A tombstone says that a series has ended, also when the name is free again.
func TestTombstonesEnded(t *testing.T) {
	c := newTombstones(8)
	c.hold(1, time.Minute, ownerUs)
	assert.False(t, c.ended(1))
	c.end(1)
	assert.True(t, c.ended(1))
	assert.True(t, c.taken(1, 0))
	c.release(1)
	assert.True(t, c.ended(1))

	c.end(2)
	assert.True(t, c.ended(2))
	assert.False(t, c.taken(2, -time.Minute))
	c.hold(2, -time.Second, ownerUs)
	assert.True(t, c.taken(2, -time.Minute))
}
