package chaos

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/eventseries/eventseries/events"
)

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
		report{Seq: 2, Batch: []burst{{0, 4}}},
		report{Seq: 2, Done: true},
		report{Seq: 1, Flushed: true},
		report{Seq: 3, Batch: []burst{{0, 5}}},
	)
	low, high, _ := a.bounds(0)
	assert.EqualValues(t, 3, low)
	assert.EqualValues(t, 12, high)
	low, high, _ = a.bounds(1)
	assert.EqualValues(t, 1, low)
	assert.EqualValues(t, 1, high)
	assert.Empty(t, a.check(), "its last stats are old")
	assert.Equal(t, "was killed after 0.0s: 1 of 3 batches flushed; of 13 occurrences 0 dropped, 4 to 13 on the server", a.String())

	a.add(report{Seq: 3, Flushed: true})
	low, _, _ = a.bounds(0)
	assert.EqualValues(t, 12, low)
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
	soon := append(first,
		report{At: second(window - 1), Seq: 2, Batch: []burst{{0, 2}}},
		report{At: second(window), Seq: 2, Done: true})
	assert.Equal(t, 1, begun(soon...))
	late := append(first,
		report{At: second(window), Seq: 2, Batch: []burst{{0, 2}}},
		report{At: second(window + 1), Seq: 2, Done: true})
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
