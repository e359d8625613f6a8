package tracker

import (
	"math"
	"testing"

	"github.com/eventseries/eventseries/series"
	"github.com/stretchr/testify/assert"
)

// checkInvariants looks at a table from inside: whatever happened to it, this
// holds. maxInFlight is the largest number of writes that were under way at a
// time.
func checkInvariants(t *testing.T, table *Table, maxInFlight int) {
	t.Helper()
	table.mu.Lock()
	defer table.mu.Unlock()

	// Which entries there are.
	var tracked []*Entry
	keys := map[series.Key]bool{}
	for i := range table.shards {
		s := &table.shards[i]
		s.mu.Lock()
		checkIndex(t, &s.entries)
		for _, e := range s.entries.all() {
			if table.shard(e.hash) != s {
				t.Errorf("%v is in the wrong shard", e.Key())
			}
			if e.detached || e.done {
				t.Errorf("%v has ended and would take occurrences", e.Key())
			}
			if open, want := e.tally.word.Load() >= tallyOpen, e.state == series.Ongoing && s.sealed == ""; open != want {
				t.Errorf("%v is %s, and its tally is open: %t", e.Key(), e.state, open)
			}
			if keys[e.Key()] {
				t.Errorf("two entries take occurrences of %v", e.Key())
			}
			keys[e.Key()] = true
			tracked = append(tracked, e)
		}
		s.mu.Unlock()
	}
	active := len(tracked)
	checkIndex(t, &table.detached)
	detached := table.detached.all()
	for _, e := range detached {
		if e.tally.word.Load() >= tallyOpen {
			t.Errorf("%v is detached and has an open tally", e.Key())
		}
		if !e.detached || e.done {
			t.Errorf("%v is among the detached: detached %t, done %t", e.Key(), e.detached, e.done)
		}
		if k := e.Key(); table.detached.find(e.hash, &k) == nil {
			t.Errorf("%v is detached and not found", e.Key())
		}
		tracked = append(tracked, e)
	}

	// What they have in common.
	uses := map[*sharedWords]int{}
	for _, e := range tracked {
		uses[e.key.shared]++
	}
	for _, words := range table.words {
		if words.uses != uses[words] {
			t.Errorf("%+v are used by %d entries, not %d", words.words, uses[words], words.uses)
		}
	}
	assert.Len(t, table.words, len(uses))

	// When their heartbeats are due.
	beats, slots := 0, make([]int32, len(table.beats.slots))
	for _, e := range tracked {
		if e.beat.slot > 0 {
			beats++
			slots[e.beat.slot-1]++
		}
		canBeat := e.state == series.Ongoing && !e.detached && !e.wantBeat
		knownAsOngoing := e.exists && e.wroteAs == series.Ongoing || e.refusal != nil
		if planned := e.beat.slot > 0; planned && !canBeat || !planned && canBeat && knownAsOngoing {
			t.Errorf("%v has the heartbeat %+v: can have one %t, is known as ongoing %t", e.Key(), e.beat, canBeat, knownAsOngoing)
		}
	}
	assert.Equal(t, slots, table.beats.slots[:])
	assert.Equal(t, beats, table.beats.total)

	// How many there are.
	gotActive, gotClosing := table.Len()
	if gotActive != active || gotClosing != len(detached) {
		t.Errorf("Len says %d active and %d closing, there are %d and %d", gotActive, gotClosing, active, len(detached))
	}
	ongoing := 0
	for _, e := range tracked {
		if !e.detached && e.state == series.Ongoing {
			ongoing++
		}
	}
	if n := len(table.lists[placeOngoing]); n != ongoing {
		t.Errorf("%d series are filed as ongoing, %d are", n, ongoing)
	}
	if active > table.opts.Capacity || len(detached) > max(table.opts.Capacity, maxInFlight) {
		t.Errorf("%d active and %d closing are more than the capacity of %d", active, len(detached), table.opts.Capacity)
	}
	limit := table.closed.limit
	if len(table.closed.new) > limit || len(table.closed.old) > limit {
		t.Errorf("%d and %d closed names are more than %d", len(table.closed.new), len(table.closed.old), limit)
	}

	// What each is.
	listed := 0
	for _, e := range tracked {
		if e.place != e.placeOf() {
			t.Errorf("%v is in list %d and belongs to %d", e.Key(), e.place, e.placeOf())
		}
		if e.place != nowhere {
			listed++
			if list := table.lists[e.place]; int(e.pos) >= len(list) || list[e.pos] != e {
				t.Errorf("%v is not at place %d of list %d", e.Key(), e.pos, e.place)
			}
			if e.stamp > e.last() {
				t.Errorf("%v would be taken to have occurred at %v, but did so at %v", e.Key(), e.stamp, e.last())
			}
		}
		checkEntry(t, e)
	}

	// And nothing else is in the lists, which are heaps.
	for p, list := range table.lists {
		listed -= len(list)
		for i, e := range list {
			if parent := list[max(i-1, 0)/2]; parent.stamp > e.stamp {
				t.Errorf("list %d is no heap at %d", p, i)
			}
		}
	}
	assert.Zero(t, listed, "the lists have entries twice, or entries that are not tracked")
	assert.Empty(t, table.lists[nowhere])
}

func checkEntry(t *testing.T, e *Entry) {
	t.Helper()
	switch {
	case e.state == series.Singleton && e.counted() != 1,
		e.state != series.Singleton && e.refusal == nil && e.counted() < 2,
		e.state.Closed() && !e.detached,
		e.state == series.Ongoing && e.detached && e.shared == nil: // or it goes on elsewhere
		t.Errorf("%v is %s with a count of %d, detached %t", e.Key(), e.state, e.counted(), e.detached)
	}
	switch {
	case e.wrote > e.revision, int(e.wroteN) > e.counted(), e.wroteN < 0:
		t.Errorf("%v: the server knows more than there is: %d of %d, revision %d of %d", e.Key(), e.wroteN, e.counted(), e.wrote, e.revision)
	case e.exists && !e.named, e.inFlight && !e.named:
		t.Errorf("%v is written without a name", e.Key())
	case e.exists && !e.existed:
		t.Errorf("%v exists and never did", e.Key())
	case e.exists && e.refusal != nil:
		t.Errorf("%v exists and is refused", e.Key())
	case e.meeting != nil && (e.exists != e.meeting.changed || e.meeting.name == "" || e.meeting.step != WriteLook && e.meeting.step != WriteClose):
		t.Errorf("%v: exists %t and meets %+v", e.Key(), e.exists, e.meeting)
	case e.exists && (e.uniqueNames == 0) != (e.name() == e.baseName()):
		t.Errorf("%v has the name %q, the unique name number %d", e.Key(), e.name(), e.uniqueNames)
	case e.isSilent() && (int(e.wroteN) != e.counted() && e.refusal == nil || !e.existed && e.refusal == nil):
		t.Errorf("%v: the server knows %d of %d, though it has not occurred", e.Key(), e.wroteN, e.counted())
	case e.detached && !e.inFlight && e.refusal == nil && e.need() == writeNothing:
		t.Errorf("%v has ended, is written, and is not forgotten", e.Key())
	}
	if word := e.tally.word.Load(); word < tallyOpen && countOf(word) != 0 {
		t.Errorf("%v has counted %d occurrences with a closed tally", e.Key(), countOf(word))
	}
	if got, want := e.Urgency(), urgencyOf(e.Key().Type, e.news()); got != want {
		t.Errorf("%v has urgency %d, should have %d", e.Key(), got, want)
	}
}

// counted is the count that there is of e, if nobody is just changing it.
func (e *Entry) counted() int {
	return min(int(e.count)+countOf(e.tally.word.Load()), math.MaxInt32)
}

// isSilent reports whether e was restored and has not occurred since.
func (e *Entry) isSilent() bool { return e.silent && countOf(e.tally.word.Load()) == 0 }
