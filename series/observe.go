package series

import "time"

// Count takes in an occurrence of a series that is Ongoing, which is what
// happens in a hot loop: it locks one shard, counts, and is done. Nothing is to
// be written then, and nothing is allocated.
//
// counted is false if there is no such series; Observe does the rest then.
// If wantNote is true, the note of this occurrence should be given to Describe.
func (t *Table) Count(k *Key, now time.Time) (e *Entry, counted, wantNote bool) {
	hash := k.FastHash(t.seed)
	at := t.offset(now)
	s := t.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	e = s.find(hash, k)
	if k.Note != "" && (e == nil || at-e.last >= t.opts.Window) {
		rest := k.combined()
		e = s.find(hash, &rest)
	}
	if e == nil || e.state != Ongoing || at-e.last >= t.opts.Window || s.sealed != "" {
		return nil, false, false
	}
	s.taken++
	e.occur(at)
	if at-e.notedAt >= t.opts.NoteInterval {
		// Whoever comes next finds it noted, so that one caller formats it.
		e.notedAt = at
		wantNote = true
	}
	return e, true, wantNote
}

// Describe gives the note or the annotations of the latest occurrence to a
// series, to go out with its next write.
func (t *Table) Describe(e *Entry, o Occurrence, now time.Time) {
	t.shard(e.hash).mu.Lock()
	defer t.shard(e.hash).mu.Unlock()
	e.describe(o, t.offset(now))
}

// Observe takes in an occurrence, whatever is known of its key.
//
// Within the window of the latest occurrence it belongs to the same series,
// which becomes Ongoing if it was a singleton. Otherwise it begins a new one;
// what was there is closed first, and room is made if the table is full.
//
// If k has a note which is one too many (Occurrence.DistinctNotes), the occurrence
// belongs to the series that the rest of the tuple shares.
func (t *Table) Observe(k *Key, o Occurrence, now time.Time) (eff Effects) {
	hash := k.FastHash(t.seed)
	at := t.offset(now)
	t.mu.Lock()
	defer t.mu.Unlock()

	s := t.shard(hash)
	s.mu.Lock()
	s.taken++
	if s.sealed != "" {
		eff.Dropped = append(eff.Dropped, Drop{Reason: s.sealed, Key: *k, Note: o.Note, Count: 1})
		s.mu.Unlock()
		return eff
	}
	own := t.under(s, hash, k, o.DistinctNotes, at)
	k = &own
	e := s.find(hash, k)
	if e != nil && at-e.last < t.opts.Window {
		e.occur(at)
		e.describe(o, at)
		started := e.state == Singleton
		e.state = Ongoing
		s.mu.Unlock()
		if started {
			t.file(e)
			eff.Dirty = append(eff.Dirty, e)
		}
		return eff
	}
	s.mu.Unlock()

	if e != nil {
		t.end(e, Finished, at, &eff)
	}
	if t.active.Load() >= int64(t.opts.Capacity) && !t.makeRoom(k, at, &eff) {
		eff.Dropped = append(eff.Dropped, Drop{Reason: DropTableFull, Key: *k, Note: o.Note, Count: 1})
		return eff
	}
	e = &Entry{
		key:         t.words.compact(k),
		hash:        hash,
		note:        k.noteFor(o.Note),
		annotations: mergeAnnotations(nil, o.Annotations),
		first:       now.UnixMicro(),
		count:       1,
		revision:    1,
		last:        at,
		notedAt:     at,
	}
	if t.opts.ShareInstances {
		e.shared = &shared{instance: o.Instance}
	}
	s.mu.Lock()
	s.insert(e)
	s.mu.Unlock()
	t.active.Add(1)
	t.file(e)
	eff.Dirty = append(eff.Dirty, e)
	return eff
}
