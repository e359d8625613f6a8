package chaos

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/eventseries/eventseries/events"
)

func sends(key int, event string, count int64) report {
	return report{Sent: &addition{Key: key, Event: event, Count: count}}
}

func acks(key int, event string, count int64) report {
	return report{Acked: &addition{Key: key, Event: event, Count: count}}
}

// accountOf takes in reports about two keys.
func accountOf(reports ...report) *account {
	a := newAccount(2)
	for _, r := range reports {
		a.add(r)
	}
	return a
}

func TestBoundsOfAShutdown(t *testing.T) {
	a := accountOf(
		report{Seq: 1, Batch: []burst{{0, 3}, {1, 1}}},
		report{Seq: 1, Done: true},
		report{Seq: 2, Batch: []burst{{0, 4}}},
		report{Seq: 2, Done: true},
		sends(0, "first", 3), acks(0, "first", 3), sends(0, "first", 4), acks(0, "first", 4), sends(0, "second", 1), acks(0, "second", 1),
		sends(1, "third", 1),
		report{Dropped: &loss{Key: 1, Count: 1, Reason: events.DropShutdown}},
		report{Dropped: &loss{Key: 0, Count: 2, Reason: events.DropRejected}},
		report{Stats: &stats{Occurrences: 8, Dropped: map[string]uint64{"Shutdown": 1, "Rejected": 2}}},
		report{Ended: true},
	)
	low, high, _ := a.bounds(0)
	assert.EqualValues(t, 5, low)
	assert.EqualValues(t, 5, high)
	low, high, _ = a.bounds(1)
	assert.EqualValues(t, 0, low)
	assert.EqualValues(t, 1, high, "the request that was cut off may have been done")
	assert.Empty(t, a.check())

	a.stats.Occurrences++
	a.stats.Dropped["Shutdown"]++
	assert.Equal(t, []string{
		"8 occurrences were emitted, but Stats has 9",
		"3 occurrences were offered to OnDrop, but Stats has map[Rejected:2 Shutdown:2]",
	}, a.check())
}

func TestBoundsOfAKill(t *testing.T) {
	a := accountOf(
		report{Seq: 1, Batch: []burst{{0, 3}, {1, 1}}},
		report{Seq: 1, Done: true},
		sends(0, "first", 1), acks(0, "first", 1),
		sends(1, "other", 1),
		report{Seq: 2, Batch: []burst{{0, 4}}},
		report{Seq: 2, Done: true},
		report{Seq: 1, Flushed: true},
		sends(0, "first", 7),
		report{Seq: 3, Batch: []burst{{0, 5}}},
	)
	bounds := func(key int) (all [2]int64) {
		all[0], all[1], _ = a.bounds(key)
		return all
	}
	assert.Equal(t, [2]int64{3, 7}, bounds(0), "flushed, and sent")
	assert.Equal(t, [2]int64{1, 1}, bounds(1))
	assert.Equal(t, "was killed after 0.0s: 1 of 3 batches flushed; of 13 occurrences 0 dropped, 4 to 8 on the server", a.String())
	assert.Empty(t, a.check(), "its last stats are old")

	a.add(acks(0, "first", 7))
	assert.Equal(t, [2]int64{7, 7}, bounds(0), "acknowledged, and sent")
	a.add(sends(0, "second", 9))
	assert.Equal(t, [2]int64{7, 12}, bounds(0), "acknowledged, and emitted")
	assert.Empty(t, a.check())
	a.add(report{Seq: 3, Flushed: true})
	assert.Equal(t, [2]int64{12, 12}, bounds(0))
	a.add(acks(1, "other", 2))
	assert.Len(t, a.check(), 1, "more was acknowledged than there was")
}

func TestWritesThatCannotBe(t *testing.T) {
	assert.Len(t, accountOf(sends(-1, "e", 1), sends(2, "e", 1), acks(0, "e", -1)).check(), 3)
}

func TestSeriesThatCanHaveBegun(t *testing.T) {
	begun := func(reports ...report) int {
		_, _, n := accountOf(reports...).bounds(0)
		return n
	}
	second := func(n int) time.Duration { return time.Duration(n) * time.Second }
	window := int(finishAfter / time.Second)
	assert.Equal(t, 0, begun())
	assert.Equal(t, 3, begun(report{At: second(1), Seq: 1, Batch: []burst{{0, 3}}}),
		"it was killed, perhaps after a long time in which nothing came from it")
	first := []report{
		{At: second(1), Seq: 1, Batch: []burst{{0, 3}}},
		{At: second(2), Seq: 1, Done: true},
	}
	assert.Equal(t, 1, begun(first...))
	soon := slices.Concat(first, []report{
		{At: second(window - 1), Seq: 2, Batch: []burst{{0, 2}}},
		{At: second(window), Seq: 2, Done: true}})
	assert.Equal(t, 1, begun(soon...))
	late := slices.Concat(first, []report{
		{At: second(window), Seq: 2, Batch: []burst{{0, 2}}},
		{At: second(window + 1), Seq: 2, Done: true}})
	assert.Equal(t, 2, begun(late...), "from the begin of the one to the end of the other it was long enough")
	slow := []report{
		{At: second(1), Seq: 1, Batch: []burst{{0, 3}}},
		{At: second(1 + window), Seq: 1, Done: true},
	}
	assert.Equal(t, 3, begun(slow...), "the machine was too slow to say")
}

func TestFailuresAreKept(t *testing.T) {
	a := accountOf(report{Failed: "boom"}, report{Seq: 2, Batch: []burst{{0, 1}}})
	assert.Equal(t, []string{"boom", "batch 2 is reported as the next after 0"}, a.check())
}
