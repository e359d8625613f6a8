package tracker

import (
	"strings"
	"time"

	"github.com/eventseries/eventseries/internal/eventtext"
	"github.com/eventseries/eventseries/series"
)

// combined returns the key of the series that the rest of the tuple of k shares.
func combined(k *series.Key) series.Key {
	rest := *k
	rest.Note = series.CombinedPrefix
	return rest
}

// findWithNote returns the entry in which an occurrence of k, which has a note,
// can count: its own, or that which the rest of its tuple shares. It takes the
// lock, so that it does not miss its own while the index changes.
func (s *shard) findWithNote(hash uint64, k *series.Key) *Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entries.find(hash, k); e != nil {
		return e
	}
	rest := combined(k)
	return s.entries.find(hash, &rest)
}

// under returns the key under which an occurrence of k counts: k itself, or that
// of the series which the rest of its tuple shares. That series takes every note
// without a series of its own for as long as it lives. Otherwise a loop with a new
// note each time would fill the limit again each time the earlier notes are
// forgotten.
func (t *table) under(hash uint64, k *series.Key, limit int, at time.Duration) series.Key {
	if k.Note == "" {
		return *k
	}
	distinct, rest := 0, combined(k)
	for e := range t.shard(hash).entries.with(hash) {
		switch {
		case e.isOver(&t.rules, at):
		case e.key.is(k):
			return *k
		case e.key.is(&rest):
			distinct = limit
		case e.key.note() != "" && e.key.isOfTuple(k):
			distinct++
		}
	}
	if distinct < limit {
		return *k
	}
	return rest
}

// noteFor returns the note of a series of key k whose first occurrence has the
// given note.
func noteFor(k *series.Key, note string) string {
	if k.Note != series.CombinedPrefix {
		return note
	}
	return eventtext.Cut(series.CombinedPrefix+note, series.MaxNoteBytes)
}

// keyOf returns the key of a series that was found on the server. Its name carries
// the hash of the key, which says whether the note is part of the key. named is false if
// the name belongs to another key.
func (r *rules) keyOf(found *series.Series) (key series.Key, named bool) {
	key = found.Key
	if r.opts.Scope == SameController {
		key.ReportingInstance = ""
	}
	if key.Named(found.Name) {
		return key, true
	}
	if strings.HasPrefix(found.Note, series.CombinedPrefix) {
		if rest := combined(&key); rest.Named(found.Name) {
			return rest, true
		}
	}
	key.Note = found.Note
	return key, key.Named(found.Name)
}
