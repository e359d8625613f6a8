package tracker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestTombstones(t *testing.T) {
	c := newTombstones(4, time.Hour)
	hold := func(hash uint64, until time.Duration) { c.hold(hash, until, ownerUnknown, 0) }
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
	c = newTombstones(1, time.Hour)
	for hash := range uint64(2) {
		hold(hash, time.Minute)
		assert.True(t, c.taken(hash, 0))
	}
}

// What is free again is forgotten, so that its memory is returned.
func TestTombstonesExpire(t *testing.T) {
	tr := New(Options{}, start)
	const lifetime = 67*time.Minute + 30*time.Second
	at := func() time.Time { advance, _ := tr.Wake(start, false); return advance }
	assert.Zero(t, at())
	tr.tombstones.hold(1, lifetime, ownerUs, 0)
	for want := start.Add(lifetime); len(tr.tombstones.new)+len(tr.tombstones.old) > 0; want = want.Add(lifetime) {
		assert.WithinDuration(t, want, at(), time.Microsecond)
		tr.Advance(want.Add(-time.Second))
		assert.True(t, tr.tombstones.taken(1, 0))
		tr.Advance(want)
	}
	assert.Zero(t, at())
}

// The owner of a name is known until another Event can have it.
func TestTombstonesOwner(t *testing.T) {
	c := newTombstones(8, time.Hour)
	check := func(want owner, version uint64, now time.Duration) {
		t.Helper()
		is, v := c.owner(1, now)
		assert.Equal(t, want, is)
		assert.Equal(t, version, v)
	}
	check(ownerUnknown, 0, 0)
	c.release(1) // nothing
	c.belongs(1, ownerUs, 7)
	check(ownerUnknown, 0, 0)

	c.hold(1, time.Minute, ownerUs, 7)
	check(ownerUs, 7, 0)
	check(ownerUnknown, 0, time.Minute)
	c.hold(1, 2*time.Minute, ownerUnknown, 0)
	check(ownerUs, 7, time.Minute)
	c.belongs(1, ownerOther, 8)
	check(ownerOther, 8, time.Minute)

	c.release(1)
	assert.False(t, c.taken(1, time.Second))
	check(ownerUnknown, 0, time.Second)
	c.hold(1, time.Minute, ownerUnknown, 0)
	check(ownerUnknown, 0, time.Second)
}

// A tombstone says that a series has ended, also when the name is free again.
func TestTombstonesEnded(t *testing.T) {
	c := newTombstones(8, time.Hour)
	c.hold(1, time.Minute, ownerUs, 0)
	assert.False(t, c.ended(1))
	c.end(1)
	assert.True(t, c.ended(1))
	assert.True(t, c.taken(1, 0))
	c.release(1)
	assert.True(t, c.ended(1))

	c.end(2)
	assert.True(t, c.ended(2))
	assert.False(t, c.taken(2, -time.Minute))
	c.hold(2, -time.Second, ownerUs, 0)
	assert.True(t, c.taken(2, -time.Minute))
}
