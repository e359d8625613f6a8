package tracker

import (
	"time"

	"github.com/eventseries/eventseries/series"
)

// calendar knows how many heartbeats are due when, so that those of series which
// began together do not all come together half an hour later, and again half an
// hour after that. A heartbeat goes into the last slot that has room: at the end of
// its interval where there are few, and at most one interval earlier where there are
// many. One that has its slot keeps it, since the interval is a whole number of
// slots.
//
// With 100,000 series that begin within a minute, the busiest minute of the hours
// after has 1.2 times the mean of heartbeats; without it, each 30th minute has all.
type calendar struct {
	width time.Duration // of a slot
	total int
	slots [2 * slotsPerBeat]int32 // by the number of the slot since the epoch, over and over
}

const (
	// slotsPerBeat is into how many slots the time between two heartbeats is divided:
	// of 7 seconds by default.
	slotsPerBeat = 256
	// freePerSlot is how many heartbeats a slot takes in any case: about one in a
	// second is nothing that would have to be spread.
	freePerSlot = 8
)

func newCalendar(heartbeat time.Duration) *calendar {
	return &calendar{width: max(heartbeat/slotsPerBeat, 1)}
}

// booking is the place of a heartbeat in a calendar. The zero value is none.
type booking struct {
	slot  uint16 // its index, and one
	early uint8  // by how many slots it comes before its interval has passed
}

// book finds a place for a heartbeat that has to come at the given time, or up to an
// interval earlier.
func (c *calendar) book(latest time.Duration) booking {
	last := c.number(latest)
	limit := c.limit()
	for early := range int64(slotsPerBeat) {
		if c.slots[slotOf(last-early)] < limit {
			return c.enter(last-early, uint8(early))
		}
	}
	// All are full of heartbeats that are late themselves.
	return c.enter(last, 0)
}

// bookAt takes the place at the given time, whether there is room or not.
func (c *calendar) bookAt(at time.Duration) booking { return c.enter(c.number(at), 0) }

func (c *calendar) enter(number int64, early uint8) booking {
	i := slotOf(number)
	c.slots[i]++
	c.total++
	return booking{slot: i + 1, early: early}
}

// release gives a place back, if b is one.
func (c *calendar) release(b booking) {
	if b.slot > 0 {
		c.slots[b.slot-1]--
		c.total--
	}
}

// limit is how many heartbeats a slot takes: an eighth more than its share, rounded
// up, so that what comes and goes finds a place near the end of its interval.
func (c *calendar) limit() int32 {
	const eighths = 8 * slotsPerBeat
	return int32(max(freePerSlot, ((c.total+1)*9+eighths-1)/eighths))
}

func (c *calendar) number(at time.Duration) int64 { return int64(at / c.width) }

// slotOf is where the slot of a number is. Those of the next interval all differ.
func slotOf(number int64) uint16 { return uint16(number & (2*slotsPerBeat - 1)) }

// lead returns how long before its interval has passed a heartbeat with this booking
// is due.
func (c *calendar) lead(b booking) time.Duration { return time.Duration(b.early) * c.width }

// plan finds a place for the next heartbeat of e, which has just been written, or
// refused. The table is locked.
func (t *Table) plan(e *Entry) {
	t.unplan(e)
	if e.state == series.Ongoing && !e.detached && !e.wantBeat {
		e.beat = t.beats.book(e.wroteAt + t.opts.Heartbeat)
	}
}

// unplan gives the place of e back: its heartbeat has come, or will not. The table is
// locked.
func (t *Table) unplan(e *Entry) {
	t.beats.release(e.beat)
	e.beat = booking{}
}
