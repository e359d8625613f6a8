package tracker

import (
	"hash/maphash"
	"strings"
	"time"

	"github.com/eventseries/eventseries/internal/text"
	"github.com/eventseries/eventseries/series"
)

// combined returns the key of the series that the rest of the tuple of k shares.
func combined(k *series.Key) series.Key {
	rest := *k
	rest.Note = series.CombinedPrefix
	return rest
}

// under returns the key under which an occurrence of k counts: k itself, or that
// of the series which the rest of its tuple shares. Once there is that one, it
// takes every note that has no series of its own, for as long as it lives:
// otherwise a loop with a new note each time would fill the room again each time
// that the notes before have been forgotten. The shard is locked.
func (t *Table) under(s *shard, hash uint64, k *series.Key, limit int, at time.Duration) series.Key {
	if k.Note == "" {
		return *k
	}
	distinct, rest := 0, combined(k)
	for e := range s.entries.with(hash) {
		alive := at-e.last() < t.opts.Window
		switch {
		case e.key.is(k) && alive:
			return *k
		case e.key.is(&rest) && alive:
			distinct = limit
		case e.key.note() != "" && !e.key.is(k) && !e.key.is(&rest) && e.key.isOfTuple(k):
			distinct++
		}
	}
	if distinct < limit {
		return *k
	}
	return rest
}

// noteFor returns the note of a series of key k that begins with one of the given
// note.
func noteFor(k *series.Key, note string) string {
	if k.Note != series.CombinedPrefix {
		return note
	}
	return text.Cut(series.CombinedPrefix+note, series.MaxNoteBytes)
}

// keyOf returns the key of a series that was found on the server. Whether its note
// is part of that is known by its name, which carries the hash of the key.
func (t *Table) keyOf(found *series.Series) series.Key {
	key := found.Key
	if t.opts.ShareInstances {
		key.ReportingInstance = ""
	}
	if key.Named(found.Name) {
		return key
	}
	if strings.HasPrefix(found.Note, series.CombinedPrefix) {
		if rest := combined(&key); rest.Named(found.Name) {
			return rest
		}
	}
	key.Note = found.Note
	return key
}

// nameHash is the hash under which it is known who has the base name of a key.
// hash is the FastHash of the key.
func (t *Table) nameHash(hash uint64, k *series.Key) uint64 { return t.hashWithNote(hash, k.Note) }

// nameHashOf is the nameHash of the key of e.
func (t *Table) nameHashOf(e *Entry) uint64 { return t.hashWithNote(e.hash, e.key.note()) }

func (t *Table) hashWithNote(hash uint64, note string) uint64 {
	if note == "" {
		return hash
	}
	return hash ^ maphash.String(t.seed, note)
}
