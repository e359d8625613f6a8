package tracker

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// loops is a table with series that go on for ever, whose writes are made at once.
type loops struct {
	t       *testing.T
	table   *Table
	now     time.Time
	entries []*Entry
	away    bool // the server is
}

// begin has n series begin, one after the other, within a minute.
func (l *loops) begin(n int) {
	step := time.Minute / time.Duration(n)
	for i := range n {
		k := testKey(fmt.Sprint("pod-", len(l.entries)))
		for range 2 {
			e := l.table.Observe(k, Occurrence{}, l.now).Dirty[0]
			l.write(e)
			if i == len(l.entries) {
				l.entries = append(l.entries, e)
			}
		}
		l.now = l.now.Add(step)
	}
}

func (l *loops) write(e *Entry) bool {
	w, _, ok := l.table.Begin(e, l.now)
	if !ok {
		return false
	}
	if l.away {
		l.table.Failed(e, w)
		return false
	}
	l.table.Written(e, w, l.now)
	return true
}

// run lets so many minutes pass, in steps of ten seconds, and returns how many
// heartbeats were written in each.
func (l *loops) run(minutes int) []int {
	l.t.Helper()
	written := make([]int, minutes)
	for step := range minutes * 6 {
		l.now = l.now.Add(10 * time.Second)
		for _, e := range l.entries {
			status, ok := l.table.Status(e, l.now)
			require.True(l.t, ok)
			if step%6 == 0 {
				k := e.Key()
				l.table.Count(&k, l.now)
			}
			due := !status.Waiting && l.now.Sub(status.Written) >= DefaultHeartbeat-status.Lead
			if due {
				l.table.Beat(e)
			}
			if (due || status.Waiting) && l.write(e) {
				written[step/6]++
			}
		}
	}
	checkInvariants(l.t, l.table, 1)
	return written
}

func newLoops(t *testing.T) *loops {
	return &loops{t: t, table: NewTable(Options{}, start), now: start}
}

func sum(counts []int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

// peak returns how many times the mean the largest count is.
func peak(counts []int) float64 {
	most := 0
	for _, c := range counts {
		most = max(most, c)
	}
	return float64(most) * float64(len(counts)) / float64(sum(counts))
}

// The heartbeats of many series that begin together are spread, and stay so.
func TestHeartbeatsAreSpread(t *testing.T) {
	const n = 3000
	l := newLoops(t)
	l.begin(n)
	first := l.run(30)
	assert.InDelta(t, n, sum(first), n/100, "each has one in the first half hour, or just after it")
	assert.Less(t, peak(first), 1.5)
	for range 2 {
		beats := l.run(30)
		assert.InDelta(t, n, sum(beats), n/100, "each has one in half an hour")
		assert.Less(t, peak(beats), 1.5)
	}
}

// After the server was away, all are written as soon as it is back, and the next
// heartbeats are spread anew.
func TestHeartbeatsAreSpreadAfterAnOutage(t *testing.T) {
	const n = 3000
	l := newLoops(t)
	l.begin(n)
	l.run(30)
	l.away = true
	assert.Zero(t, sum(l.run(40)))
	l.away = false
	assert.Equal(t, n, l.run(1)[0])
	assert.Less(t, peak(l.run(30)), 1.5)
}

// Where there are few, each heartbeat comes after a full interval.
func TestFewHeartbeatsAreNotSpread(t *testing.T) {
	l := newLoops(t)
	l.begin(60)
	for _, e := range l.entries {
		status, _ := l.table.Status(e, l.now)
		assert.Zero(t, status.Lead)
	}
	assert.Zero(t, sum(l.run(28)))
	assert.Equal(t, 60, sum(l.run(2)))
}

// A heartbeat never comes later than its interval, and never before the write.
func TestCalendarBooks(t *testing.T) {
	c := newCalendar(DefaultHeartbeat)
	var booked []booking
	for i := range 10 * freePerSlot * slotsPerBeat {
		at := time.Duration(i) * time.Millisecond
		b := c.book(at + DefaultHeartbeat)
		lead := c.lead(b)
		require.GreaterOrEqual(t, lead, time.Duration(0))
		require.Less(t, lead, DefaultHeartbeat)
		booked = append(booked, b)
	}
	assert.Equal(t, len(booked), c.total)
	for _, b := range booked {
		c.release(b)
	}
	c.release(booking{})
	assert.Equal(t, newCalendar(DefaultHeartbeat), c)
}

// Heartbeats that are late themselves can take all the room there is.
func TestCalendarIsFull(t *testing.T) {
	c := newCalendar(time.Nanosecond) // shorter than any that can be divided
	for i := range c.slots {
		c.slots[i] = 1000
	}
	assert.Equal(t, booking{slot: 8}, c.book(7))
}
