package tracker

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/eventseries/eventseries/series"
)

// checkInvariants checks what must hold whatever has happened to a tracker: the invariants of
// Entry, of table, and of its schedule. now is the latest time that the tracker was told, and
// maxInFlight the largest number of writes that were in flight at a time.
func checkInvariants(t *testing.T, tr *Tracker, now time.Time, maxInFlight int) {
	t.Helper()
	tr.mu.Lock()
	defer tr.mu.Unlock()
	all, at := tr.all(), tr.offset(now)
	keys, ongoing := map[series.Key]bool{}, map[*Tally]int{}
	pending, inFlight := 0, 0
	waits := waitsOf(tr)
	for _, e := range all {
		k := e.Key()
		if keys[k] || tr.find(hashOf(tr.seed, &k), &k) != e {
			t.Errorf("%v is there twice, or not found", k)
		}
		keys[k] = true
		if e.isOngoing() {
			ongoing[e.key.shared.row]++
		}
		if e.class != tr.classOf(e) {
			t.Errorf("%v has class %d, and not %d", k, e.class, tr.classOf(e))
		}
		if tr.lists[e.class][e.index] != e {
			t.Errorf("%v is not where it should be in its list", k)
		}
		isPending := reflect.ValueOf(&e.slot).Elem().FieldByName("pending").Int() != 0
		if isPending {
			pending++
		}
		until, isWaiting := waits[e]
		need := e.need(at)
		switch {
		case tr.sched.InFlight(e):
			inFlight++
		case isPending == isWaiting:
			t.Errorf("%v waits: %t, and has something to write: %t", k, isWaiting, isPending)
		case isWaiting && need != none && until > at:
			t.Errorf("%v waits until %v, and needs a %s at %v", k, until, need, at)
		case isWaiting && until > max(e.deadline(&tr.rules, at), at):
			t.Errorf("%v waits until %v, and should until %v", k, until, e.deadline(&tr.rules, at))
		case isPending && need == none && e.life != closing && e.beatAt <= at:
			t.Errorf("%v is ready, and has nothing to write", k)
		}
		checkEntry(t, e, tr.sched.InFlight(e))
	}

	closing := len(tr.lists[classClosingNormal]) + len(tr.lists[classClosingWarning]) + len(tr.lists[classInFlight])
	if held := len(all) - closing; held > tr.opts.Capacity || closing > tr.opts.Capacity+maxInFlight {
		t.Errorf("%d entries and %d that are closing are more than the capacity of %d", held, closing, tr.opts.Capacity)
	}
	entries := 0
	for _, e := range tr.entries {
		for ; e != nil; e = e.next {
			entries++
		}
	}
	assert.Equal(t, len(all), entries, "entries that can be found")
	assert.Equal(t, len(all), tr.size)
	assert.Equal(t, len(all)-inFlight-len(waits), pendingNotInFlight(tr, all, pending), "entries in the schedule")
	sum := 0
	for _, r := range tr.tallies.rows {
		sum += r.Ongoing
		assert.Equal(t, ongoing[r], r.Ongoing, "%v", r.TallyKey)
	}
	assert.Equal(t, tr.ongoing, sum)
	assert.Empty(t, tr.lists[classNone])
	assert.Empty(t, tr.drops)
	for f := range tr.flushes {
		for e := range f.left {
			assert.NotEqual(t, classNone, e.class, "a flush waits for an entry that is forgotten")
		}
	}
}

func pendingNotInFlight(tr *Tracker, all []*Entry, pending int) int {
	for _, e := range all {
		if tr.sched.InFlight(e) && reflect.ValueOf(&e.slot).Elem().FieldByName("pending").Int() != 0 {
			pending--
		}
	}
	return pending
}

// waitsOf returns until when entries wait in the schedule, which only its package can change.
func waitsOf(tr *Tracker) map[*Entry]time.Duration {
	waits := map[*Entry]time.Duration{}
	nodes := reflect.ValueOf(tr.sched).Elem().FieldByName("waiting").FieldByName("nodes")
	for i := range nodes.Len() {
		n := nodes.Index(i)
		waits[(*Entry)(n.FieldByName("item").UnsafePointer())] = time.Duration(n.FieldByName("at").Int())
	}
	return waits
}

func checkEntry(t *testing.T, e *Entry, inFlight bool) {
	t.Helper()
	switch st := &e.stored; {
	case st.count < 0, st.count > e.count:
		t.Errorf("%v: the server stores %d of %d", e.Key(), st.count, e.count)
	case (e.state == series.Singleton) != (e.count < 2):
		t.Errorf("%v is %s x%d", e.Key(), e.state, e.count)
	case e.phase == live && (st.count == 0 || st.last == 0 || e.attempts != nil && st.version != 0 && e.attempts.first.count < st.count):
		t.Errorf("%v is live, stored %+v", e.Key(), st)
	case e.phase == unwritten && st.count != 0:
		t.Errorf("%v is unwritten, stored %+v", e.Key(), st)
	case e.salt > series.Salts:
		t.Errorf("%v has salt %d and %d looks", e.Key(), e.salt, e.looks)
	case e.life == closing && e.need(1<<60) == none && !inFlight:
		t.Errorf("%v is closing, needs nothing, and is not forgotten", e.Key())
	case e.first > 0 && st.last > 0 && st.last < e.first && e.phase == live:
		t.Errorf("%v: the time that is stored is before the first one", e.Key())
	}
	if a := e.attempts; a != nil && (a.first.count > a.latest.count || a.first.last > a.latest.last) {
		t.Errorf("%v has counted %d, and attempted %+v", e.Key(), e.count, *a)
	}
}
