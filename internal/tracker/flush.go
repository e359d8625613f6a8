package tracker

// Pending is what of an entry the server did not know when Flush was called.
type Pending struct {
	// Entry is the series.
	Entry *Entry

	revision uint64
}

// Flush returns every entry of which the server does not know all, and makes
// each of them one that has something to be written: counts are written that
// would have waited for a heartbeat. Series that the server refuses are left
// out, unless they are just being tried again: that may succeed.
//
// It locks the table for the time of one shard after the other, so it may miss
// what begins meanwhile.
func (t *Table) Flush() []Pending {
	var pending []Pending
	add := func(e *Entry) {
		revision := t.revision(e)
		if e.refusal != nil && !e.inFlight || e.wrote == revision {
			return
		}
		e.flushTo = revision
		t.file(e)
		pending = append(pending, Pending{Entry: e, revision: revision})
	}
	for i := range t.shards {
		t.mu.Lock()
		for _, e := range t.shards[i].all() {
			add(e)
		}
		t.mu.Unlock()
	}
	// Last, because a series may end between two shards: it is found here then,
	// and would be in neither the other way round.
	t.mu.Lock()
	for _, e := range t.detached.all() {
		add(e)
	}
	t.mu.Unlock()
	return pending
}

// Settled reports whether what was pending is on the server now, or lost.
func (t *Table) Settled(p Pending) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return p.Entry.done || p.Entry.wrote >= p.revision
}

// Seal ends the intake: from now on every occurrence is dropped for the given
// reason. When Seal returns, no occurrence is added to a series any more. The
// series are still there to be written.
func (t *Table) Seal(reason DropReason) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		s.sealed = reason
		for _, e := range s.entries.all() {
			e.add(e.tally.close())
		}
		s.mu.Unlock()
	}
}

// Clear forgets every series and returns what the server did not know, as lost
// for the given reason.
func (t *Table) Clear(reason DropReason) (eff Effects) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.shards {
		for _, e := range t.shards[i].all() {
			t.discard(e, reason, &eff)
		}
	}
	for _, e := range t.detached.all() {
		t.lose(e, reason, &eff)
	}
	return eff
}

// all returns the entries of a shard.
func (s *shard) all() []*Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.entries.all()
}

// revision reads how many changes there were.
func (t *Table) revision(e *Entry) uint64 {
	s := t.lock(e)
	defer s.mu.Unlock()
	return e.revision
}
