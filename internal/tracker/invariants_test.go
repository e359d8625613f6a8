package tracker

import (
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/eventseries/eventseries/series"
)

// checkInvariants checks what must hold whatever has happened to a tracker.
// maxInFlight is the largest number of writes that were in flight at a time.
func checkInvariants(t *testing.T, tr *Tracker, maxInFlight int) {
	t.Helper()
	tr.mu.Lock()
	defer tr.mu.Unlock()

	// Which entries there are.
	var tracked []*Entry
	keys := map[series.Key]bool{}
	for i := range tr.shards {
		s := &tr.shards[i]
		s.mu.Lock()
		checkIndex(t, &s.entries, tr.hashOf)
		for _, e := range s.entries.all() {
			if tr.shard(tr.hashOf(e)) != s || e.life >= closing || keys[e.Key()] {
				t.Errorf("%v is in the wrong shard, has ended (life %d), or is there twice: %t", e.Key(), e.life, keys[e.Key()])
			}
			if open, want := e.counter.word.Load() >= counterOpen, e.countsFast() && tr.sealed == ""; open != want {
				t.Errorf("%v is %s, and its counter is open: %t", e.Key(), e.spec.state, open)
			}
			keys[e.Key()] = true
			tracked = append(tracked, e)
		}
		s.mu.Unlock()
	}
	held := len(tracked)
	checkIndex(t, &tr.closed, tr.hashOf)
	for _, e := range tr.closed.all() {
		if e.life != closing || e.counter.word.Load() >= counterOpen {
			t.Errorf("%v is among the closing: life %d, counter %x", e.Key(), e.life, e.counter.word.Load())
		}
		if k := e.Key(); tr.closed.find(tr.hashOf(e), &k) == nil {
			t.Errorf("%v is closing and not found", e.Key())
		}
		tracked = append(tracked, e)
	}
	closing := len(tracked) - held

	// What they have in common.
	assert.Zero(t, noRare)
	uses := map[*interned[words]]int{}
	for _, e := range tracked {
		uses[e.key.shared]++
	}
	for _, words := range tr.words.words {
		if words.uses != uses[words] {
			t.Errorf("%+v are used by %d entries, not %d", words.value, uses[words], words.uses)
		}
	}
	assert.Len(t, tr.words.words, len(uses))

	// How many there are.
	if tr.accepting.Load() != int64(held) || int64(tr.closed.n) != int64(closing) {
		t.Errorf("there are %d accepting and %d closing, not %d and %d", held, closing, tr.accepting.Load(), tr.closed.n)
	}
	if held > tr.opts.Capacity || tr.lists.waitingToClose() > tr.opts.Capacity || closing > tr.opts.Capacity+maxInFlight {
		t.Errorf("%d accepting and %d closing are more than the capacity of %d", held, closing, tr.opts.Capacity)
	}
	if c := tr.tombstones; len(c.new) > c.limit || len(c.old) > c.limit {
		t.Errorf("%d and %d tombstones are more than %d", len(c.new), len(c.old), c.limit)
	}

	// What each is, and where.
	places := placesOf(tr)
	listed, ongoing, inFlight, pending := 0, 0, 0, 0
	for _, e := range tracked {
		if e.spec.state == series.Ongoing && e.life == accepting {
			ongoing++
		}
		if class := e.evictionClass(tr.sched.InFlight(e)); e.class != class {
			t.Errorf("%v has class %d, should have %d", e.Key(), e.class, class)
		}
		if e.class != unevictable {
			listed++
			if at := tr.lists[e.class].At(e); at > e.last() {
				t.Errorf("%v is in list %d at %v, after %v", e.Key(), e.class, at, e.last())
			}
		}
		place := places.of(e)
		waits := e.need() != none
		if waits {
			pending++
		}
		switch tooEarly := e.hold().why != free; {
		case place == "in flight":
			inFlight++
		case place == "waiting" && (!waits || tooEarly), place == "ready" && waits:
		default:
			t.Errorf("%v is %s, and needs %s", e.Key(), place, e.need())
		}
		checkEntry(t, e, place == "in flight")
	}
	assert.Equal(t, ongoing, tr.lists.ongoing())

	// Nothing else is in the lists, and in the schedule.
	for _, list := range tr.lists {
		listed -= list.Len()
	}
	assert.Zero(t, listed, "the lists have entries twice, or entries that are not tracked")
	assert.Zero(t, tr.lists[unevictable].Len())
	assert.Equal(t, len(tracked)-inFlight, places.queued, "entries in the queues of the schedule")
	_, sched, _ := tr.sched.Backlog()
	if sched < pending || sched > len(tracked) {
		t.Errorf("the schedule has %d pending, %d of %d entries are", sched, pending, len(tracked))
	}
}

// checkPlan checks that the schedule knows what is to be done about each entry, and when:
// that the entry was placed after its latest change. now is the latest time that the
// tracker knows. Occurrences and time alone can only make a plan later.
func checkPlan(t *testing.T, tr *Tracker, now time.Time) {
	t.Helper()
	tr.mu.Lock()
	defer tr.mu.Unlock()
	at, places := tr.offset(now), placesOf(tr)
	tracked := tr.closed.all()
	for i := range tr.shards {
		tracked = append(tracked, tr.shards[i].entries.all()...)
	}
	for _, e := range tracked {
		place, plan := places.of(e), e.plan(&tr.rules, at, tr.hurried)
		switch until, waits := places.waiting[e]; {
		case place == "in flight":
		case waits && plan.ready && until > at:
			t.Errorf("%v waits until %v, and is ready to %s at %v", e.Key(), until, e.need(), at)
		case waits && !plan.ready && until > plan.at:
			t.Errorf("%v waits until %v, and should until %v", e.Key(), until, plan.at)
		case !waits && !plan.ready:
			t.Errorf("%v is %s, and must wait until %v", e.Key(), place, plan.at)
		}
	}
}

// schedPlaces tells where entries are in a schedule, which only package heartbeat
// can change.
type schedPlaces struct {
	queues  map[uintptr]string
	waiting map[*Entry]time.Duration // until when entries wait
	queued  int
}

func placesOf(tr *Tracker) schedPlaces {
	p := schedPlaces{queues: map[uintptr]string{0: "idle"}, waiting: map[*Entry]time.Duration{}}
	s := reflect.ValueOf(tr.sched).Elem()
	add := func(q reflect.Value, place string) {
		p.queues[q.Addr().Pointer()] = place
		p.queued += q.FieldByName("nodes").Len()
	}
	waiting := s.FieldByName("waiting")
	add(waiting, "waiting")
	for i := range waiting.FieldByName("nodes").Len() {
		n := waiting.FieldByName("nodes").Index(i)
		p.waiting[(*Entry)(n.FieldByName("item").UnsafePointer())] = time.Duration(n.FieldByName("at").Int())
	}
	add(s.FieldByName("flight"), "in flight")
	lanes := []reflect.Value{s.FieldByName("ready")}
	park := func(parked reflect.Value) {
		lanes = append(lanes, parked.FieldByName("fresh"))
		add(parked.FieldByName("tried"), "ready")
	}
	for gates := s.FieldByName("gates").MapRange(); gates.Next(); {
		park(gates.Value().Elem().FieldByName("parked"))
	}
	for i := range s.FieldByName("draining").Len() {
		park(s.FieldByName("draining").Index(i).Elem())
	}
	for _, l := range lanes {
		add(l.FieldByName("soft"), "ready")
		add(l.FieldByName("hard"), "ready")
	}
	return p
}

// of returns the place of e. Each entry is in exactly one.
func (p schedPlaces) of(e *Entry) string {
	return p.queues[reflect.ValueOf(&e.slot).Elem().FieldByName("in").Pointer()]
}

func checkEntry(t *testing.T, e *Entry, inFlight bool) {
	t.Helper()
	spec, st := &e.spec, &e.status
	switch {
	case spec.state == series.Singleton && e.counted() != 1,
		spec.state != series.Singleton && e.phase != refused && !e.wasRefused() && e.counted() < 2,
		spec.state.Closed() && e.life == accepting, spec.state == series.Ongoing && e.life == resting:
		t.Errorf("%v is %s with a count of %d, life %d", e.Key(), spec.state, e.counted(), e.life)
	}
	x := e.rare
	if x == nil {
		x = &rare{}
	}
	claims := e.phase == claiming || e.phase == conflicted
	switch {
	case !spec.revision.covers(st.revision), int(st.count) > e.counted(), st.count < 0, st.revision == 0 && e.phase == live && e.need() == none:
		t.Errorf("%v: the server knows %d of %d, revision %d of %d", e.Key(), st.count, e.counted(), st.revision, spec.revision)
	case e.exists() && st.names == 0, e.exists() && !e.hasExisted(), claims && st.names == 0:
		t.Errorf("%v is %s: %d names, existed %t", e.Key(), e.phase, st.names, e.hasExisted())
	case claims != (x.claim != claim{}), claims && (x.claim.name == "" || x.claim.step != Look && (x.claim.step != Close || e.phase == conflicted)):
		t.Errorf("%v is %s with the claim %+v", e.Key(), e.phase, x.claim)
	case (e.phase == refused) && x.refusal == "", e.exists() && x.refusal != "":
		t.Errorf("%v is %s because of %q", e.Key(), e.phase, x.refusal)
	case e.hasUniqueName() == (e.name() == e.baseName()) && st.names > 0, e.hasUniqueName() && st.names < 2:
		t.Errorf("%v has the name %q, unique name number %d", e.Key(), e.name(), st.names-1)
	case len(x.attempts) > maxAttempts:
		t.Errorf("%v is %s and has %d attempts", e.Key(), e.phase, len(x.attempts))
	case e.isSilent() && e.phase != refused && (int(st.count) != e.counted() || !e.hasExisted()):
		t.Errorf("%v: the server knows %d of %d, though it has not occurred", e.Key(), st.count, e.counted())
	case e.isDone() && !inFlight:
		t.Errorf("%v is closing, needs nothing, and is not forgotten", e.Key())
	case e.life == forgotten:
		t.Errorf("%v is forgotten and tracked", e.Key())
	}
	for _, a := range x.attempts {
		if int(a.count) > e.counted() {
			t.Errorf("%v has counted %d and attempted to write %d", e.Key(), e.counted(), a.count)
		}
	}
	if word := e.counter.word.Load(); word < counterOpen && countOf(word) != 0 {
		t.Errorf("%v has counted %d occurrences with a closed counter", e.Key(), countOf(word))
	}
}

// counted returns the count of e if nobody changes it at the same time.
func (e *Entry) counted() int {
	return int(min(int64(e.spec.count)+int64(countOf(e.counter.word.Load())), math.MaxInt32))
}

// isSilent reports whether e was restored and has not occurred since.
func (e *Entry) isSilent() bool { return e.silent && countOf(e.counter.word.Load()) == 0 }
