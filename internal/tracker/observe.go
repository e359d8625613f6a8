package tracker

import (
	"time"

	"github.com/eventseries/eventseries/series"
)

// Count takes in an occurrence of a series that is Ongoing, which is what
// happens in a hot loop: it finds the series, counts, and is done. Nothing is to be
// written then, and nothing is allocated.
//
// It takes no lock: two goroutines that emit the same event would wait for each
// other so much that they counted 0.8 times as many as one of them alone. Without,
// they count 1.3 times as many.
//
// counted is false if there is no such series; Observe does the rest then.
// If wantNote is true, the note of this occurrence should be given to Describe.
func (t *Table) Count(k *series.Key, now time.Time) (e *Entry, counted, wantNote bool) {
	hash := k.FastHash(t.seed)
	at := t.offset(now)
	s := t.shard(hash)
	if k.Note == "" {
		e = s.find(hash, k)
	} else {
		e = s.findWithNote(hash, k, at, t.opts.Window)
	}
	if e == nil {
		return nil, false, false
	}
	n, counted := e.tally.count(at, t.opts.Window)
	if !counted {
		return nil, false, false
	}
	s.taken.Add(1)
	if n == tallyEnough {
		t.lock(e).mu.Unlock() // which takes them over
	}
	if noted := e.notedAt.Load(); int64(at)-noted >= int64(t.opts.NoteInterval) {
		// Whoever comes next finds it noted, so that one caller formats it.
		wantNote = e.notedAt.CompareAndSwap(noted, int64(at))
	}
	return e, true, wantNote
}

// findWithNote returns the entry in which an occurrence of k, which has a note, may
// count: its own, or that which it shares with the rest of its tuple. It takes the
// lock, so that its own is not overlooked while the index changes.
func (s *shard) findWithNote(hash uint64, k *series.Key, at, window time.Duration) *Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.find(hash, k)
	if e != nil && at-e.last() < window {
		return e
	}
	rest := combined(k)
	return s.find(hash, &rest)
}

// Describe gives the note or the annotations of the latest occurrence to a
// series, to go out with its next write.
func (t *Table) Describe(e *Entry, o Occurrence, now time.Time) {
	s := t.lock(e)
	defer s.mu.Unlock()
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
func (t *Table) Observe(k *series.Key, o Occurrence, now time.Time) (eff Effects) {
	hash := k.FastHash(t.seed)
	at := t.offset(now)
	t.mu.Lock()
	defer t.mu.Unlock()

	s := t.shard(hash)
	s.mu.Lock()
	s.taken.Add(1)
	if s.sealed != "" {
		eff.Dropped = append(eff.Dropped, Drop{Reason: s.sealed, Key: *k, Note: o.Note, Count: 1})
		s.mu.Unlock()
		return eff
	}
	own := t.under(s, hash, k, o.DistinctNotes, at)
	k = &own
	e := s.find(hash, k)
	if e != nil && at-e.last() < t.opts.Window {
		e.occur(at)
		e.describe(o, at)
		started := e.state == series.Singleton
		e.state = series.Ongoing
		s.open(e)
		s.mu.Unlock()
		if started {
			t.file(e)
			eff.Dirty = append(eff.Dirty, e)
		}
		return eff
	}
	s.mu.Unlock()

	if e != nil {
		t.end(e, series.Finished, at, &eff)
	}
	if t.active.Load() >= int64(t.opts.Capacity) && !t.makeRoom(k, at, &eff) {
		eff.Dropped = append(eff.Dropped, Drop{Reason: DropTableFull, Key: *k, Note: o.Note, Count: 1})
		return eff
	}
	e = &Entry{
		key:         t.words.compact(k),
		hash:        hash,
		note:        noteFor(k, o.Note),
		annotations: mergeAnnotations(nil, o.Annotations),
		first:       now.UnixMicro(),
		count:       1,
		revision:    1,
	}
	e.tally.occurred(at)
	e.notedAt.Store(int64(at))
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
