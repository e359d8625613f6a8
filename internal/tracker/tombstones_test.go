package tracker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// holdName says that the name of the key with a hash is taken.
func holdName(c *tombstones, hash uint64, until time.Duration) {
	n := c.get(hash)
	n.hold(until, ownerUnknown, 0)
	c.put(hash, n)
}

func taken(c *tombstones, hash uint64, now time.Duration) bool {
	n := c.get(hash)
	return n.takenAt(now)
}

func TestTombstones(t *testing.T) {
	c := newTombstones(4, time.Hour)
	hold := func(hash uint64, until time.Duration) { holdName(c, hash, until) }
	assert.False(t, taken(c, 1, 0))
	assert.False(t, taken(c, 1, -time.Hour), "also before the beginning")

	hold(1, time.Minute)
	assert.True(t, taken(c, 1, time.Minute-1))
	assert.False(t, taken(c, 1, time.Minute))

	hold(1, time.Second)
	assert.True(t, taken(c, 1, time.Minute-1), "never free earlier")
	hold(2, -time.Second)
	assert.True(t, taken(c, 2, -time.Minute))
	assert.False(t, taken(c, 2, 0))

	// The older half is forgotten, but not what was renewed.
	hold(3, time.Minute)
	hold(1, 2*time.Minute)
	hold(4, time.Minute)
	assert.True(t, taken(c, 1, time.Minute))
	assert.True(t, taken(c, 3, 0))
	assert.False(t, taken(c, 2, -time.Minute), "forgotten")

	for hash := range uint64(1000) {
		hold(hash, time.Minute)
		assert.LessOrEqual(t, len(c.new)+len(c.old), 4)
	}
	assert.True(t, taken(c, 999, 0))

	// A tracker with room for one series has a tombstone, too.
	c = newTombstones(1, time.Hour)
	for hash := range uint64(2) {
		hold(hash, time.Minute)
		assert.True(t, taken(c, hash, 0))
	}
}

// What is free again is forgotten, so that its memory is returned.
func TestTombstonesExpire(t *testing.T) {
	tr := New(Options{}, start)
	const lifetime = 67*time.Minute + 30*time.Second
	at := func() time.Time { advance, _ := tr.Wake(start); return advance }
	assert.Zero(t, at())
	holdName(tr.tombstones, 1, lifetime)
	for want := start.Add(lifetime); len(tr.tombstones.new)+len(tr.tombstones.old) > 0; want = want.Add(lifetime) {
		assert.WithinDuration(t, want, at(), time.Microsecond)
		tr.Advance(want.Add(-time.Second))
		assert.True(t, taken(tr.tombstones, 1, 0))
		tr.Advance(want)
	}
	assert.Zero(t, at())
}

// The owner of a name is known until another Event can have it.
func TestTombstonesOwner(t *testing.T) {
	var n tombstone
	check := func(want owner, version uint64, now time.Duration) {
		t.Helper()
		is, v := n.ownerAt(now)
		assert.Equal(t, want, is)
		assert.Equal(t, version, v)
	}
	check(ownerUnknown, 0, 0)
	n.release() // nothing
	n.belongs(ownerUs, 7)
	check(ownerUnknown, 0, 0)

	n.hold(time.Minute, ownerUs, 7)
	check(ownerUs, 7, 0)
	check(ownerUnknown, 0, time.Minute)
	n.hold(2*time.Minute, ownerUnknown, 0)
	check(ownerUs, 7, time.Minute)
	n.belongs(ownerOther, 8)
	check(ownerOther, 8, time.Minute)

	n.release()
	assert.False(t, n.takenAt(time.Second))
	check(ownerUnknown, 0, time.Second)
	n.hold(time.Minute, ownerUnknown, 0)
	check(ownerUnknown, 0, time.Second)
}

// A tombstone says that a series has ended, also when the name is free again.
func TestTombstonesEnded(t *testing.T) {
	var n tombstone
	n.hold(time.Minute, ownerUs, 0)
	assert.False(t, n.ended)
	n.ended = true
	assert.True(t, n.ended)
	assert.True(t, n.takenAt(0))
	n.release()
	assert.True(t, n.ended)

	n = tombstone{ended: true}
	assert.False(t, n.takenAt(-time.Minute))
	n.hold(-time.Second, ownerUs, 0)
	assert.True(t, n.takenAt(-time.Minute))
}
