package tracker

import (
	"time"

	"github.com/eventseries/eventseries/series"
)

// noteInterval is how often the note of an ongoing series is formatted. Formatting
// would otherwise be the largest cost of an occurrence. With more than 10,000 series,
// each has its turn less often, so that all of them format maxNotes per second.
const (
	noteInterval = 10 * time.Second
	maxNotes     = 1000
)

// noteEvery returns how often the note of an ongoing series is formatted now, in tenths
// of a second.
func (t *Tracker) noteEvery() int32 {
	return max(tenths(noteInterval), int32(t.accepting.Load()/(maxNotes/10)))
}

// Count counts an occurrence of a series that is Ongoing: the hot path. It allocates
// nothing and takes no lock. at is the time since [Tracker.Epoch], which takes half as
// long to read as a time.Time.
//
// If counted is false, the caller calls [Tracker.Observe]. If wantNote is true, it
// passes the note to [Tracker.Describe].
func (t *Tracker) Count(k *series.Key, at time.Duration) (e *Entry, counted, wantNote bool) {
	hash := fastHash(t.seed, k)
	s := t.shard(hash)
	if k.Note == "" {
		e = s.entries.find(hash, k)
	} else {
		e = s.findWithNote(hash, k, at, t.opts.FinishAfter)
	}
	if e == nil {
		return nil, false, false
	}
	n, counted := e.counter.count(at, t.opts.FinishAfter)
	if !counted {
		return nil, false, false
	}
	s.taken.Add(1)
	if n == counterHalf {
		t.drain(e).mu.Unlock()
	}
	if noted, now := e.spec.notedAt.Load(), tenths(at); now-noted >= t.noteEvery() {
		// One of several callers gets to format the note.
		wantNote = e.spec.notedAt.CompareAndSwap(noted, now)
	}
	return e, true, wantNote
}

// Describe passes the note and the annotations of the latest occurrence to a
// series. Its next write carries them.
func (t *Tracker) Describe(e *Entry, o Occurrence, now time.Time) {
	s := t.drain(e)
	defer s.mu.Unlock()
	e.describe(o, t.offset(now))
}

// Observe records an occurrence, whatever is known of its key.
//
// Within FinishAfter of the latest occurrence it belongs to the same series,
// which becomes Ongoing if it was a singleton. Otherwise Observe ends that series
// and begins a new one, for which it evicts another if the tracker is full.
//
// If k has a note and too many series of its tuple do (Occurrence.DistinctNotes),
// the occurrence belongs to a series that the rest of the tuple shares.
func (t *Tracker) Observe(k *series.Key, o Occurrence, now time.Time) (drops []Drop) {
	hash := fastHash(t.seed, k)
	at := t.offset(now)
	t.mu.Lock()
	defer t.mu.Unlock()

	s := t.shard(hash)
	s.mu.Lock()
	s.taken.Add(1)
	if s.sealed != "" {
		s.mu.Unlock()
		return []Drop{{Reason: s.sealed, Key: *k, Note: o.Note, Count: 1}}
	}
	own := t.under(s, hash, k, o.DistinctNotes, at)
	k = &own
	e := s.entries.find(hash, k)
	if e != nil && at-e.last() < t.opts.FinishAfter {
		e.occur(at)
		e.describe(o, at)
		began := e.spec.state == series.Singleton
		e.spec.state = series.Ongoing
		s.open(e)
		s.mu.Unlock()
		if began {
			t.schedule(e, at)
		}
		return nil
	}
	s.mu.Unlock()

	if e != nil {
		t.end(e, series.Finished, at, &drops)
	}
	if t.accepting.Load() >= int64(t.opts.Capacity) && !t.makeRoom(k, at, &drops) {
		return append(drops, Drop{Reason: DropTableFull, Key: *k, Note: o.Note, Count: 1})
	}
	e = &Entry{
		key: t.words.intern(k, o.Instance),
		spec: spec{
			note:     noteFor(k, o.Note),
			first:    o.at(now).UnixMicro(),
			count:    1,
			revision: 1,
		},
	}
	e.spec.setAnnotations(mergeAnnotations(nil, o.Annotations))
	e.spec.notedAt.Store(tenths(at))
	e.counter.occurred(at)
	s.mu.Lock()
	s.entries.insert(hash, e)
	s.mu.Unlock()
	t.accepting.Add(1)
	t.schedule(e, at)
	return drops
}

// Single returns the series that one occurrence is by itself, under the base name
// of its key. It does not record the occurrence.
func (t *Tracker) Single(k *series.Key, o Occurrence, now time.Time) series.Series {
	return series.Series{
		Key:         *k,
		Instance:    o.Instance,
		Namespace:   t.namespace(k),
		Name:        k.BaseName(),
		Note:        o.Note,
		Annotations: o.Annotations,
		First:       o.at(now),
		Last:        o.at(now),
		Count:       1,
	}
}

// namespace returns where the Event of a key is.
func (t *Tracker) namespace(k *series.Key) string {
	if k.Regarding.Namespace != "" {
		return k.Regarding.Namespace
	}
	return t.opts.ClusterNamespace
}
