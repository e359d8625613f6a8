package tracker

import (
	"strings"
	"time"

	"github.com/eventseries/eventseries/series"
)

// combined returns the key of the series that the rest of the tuple of k shares.
func combined(k *series.Key) series.Key {
	rest := *k
	rest.Note = series.CombinedPrefix
	return rest
}

// under returns the key under which an occurrence of k counts: k itself, or that of the series
// which the rest of its tuple shares. That takes every note without a series of its own for as long
// as it is tracked. Otherwise a loop with a new note each time would fill the limit again each time
// the earlier notes are forgotten.
func (t *table) under(hash uint64, k *series.Key, limit int) series.Key {
	if k.Note == "" {
		return *k
	}
	distinct, rest := 0, combined(k)
	for e := t.entries[hash]; e != nil; e = e.next {
		switch {
		case e.life == closing:
		case e.key.is(k):
			return *k
		case e.key.is(&rest):
			distinct = limit
		case e.key.rare.note != "" && e.key.isOfTuple(k):
			distinct++
		}
	}
	if distinct < limit {
		return *k
	}
	return rest
}

// noteFor returns the first note of e, whose first occurrence is the given one.
func (r *rules) noteFor(e *Entry, o *Occurrence) string {
	if e.key.rare.note == series.CombinedPrefix && o.Combined == "" {
		return series.CombinedPrefix + o.Note
	}
	return strings.Clone(e.noteOf(o))
}

// maxNotes is how many notes of ongoing series are formatted per second. Beyond that, a series
// has its turn each second, or less often.
const maxNotes = 1000

// takesNote reports whether to format the note of an occurrence. The bucket holds a second. Its last half
// is for series without a note in this tenth of a second, and not for hot loops. Those whose turn it is do
// not wait for it, or the last of a burst would have none: on average, they take at most what flows in.
func (t *table) takesNote(e *Entry, at time.Duration) bool {
	const each, all = time.Second / maxNotes, time.Second
	t.noted = max(t.noted, at-all)
	now, left := tenths(at), at-t.noted
	age, turn := now-e.notedAt, max(tenths(all), int32(t.size/(maxNotes/10)))
	if age < turn && (left < each || left < all/2 && age == 0) {
		return false
	}
	e.notedAt, t.noted = now, t.noted+each
	return true
}

// keyOf returns the key of a series that was found on the server, and the salt of its name, which
// tells whether the note is part of the key. ok is false if the name belongs to another key.
func (r *rules) keyOf(found *series.Series) (key series.Key, salt int, ok bool) {
	key = found.Key
	if r.opts.Shared {
		key.ReportingInstance = ""
	}
	for _, key.Note = range []string{"", found.Note, series.CombinedPrefix} {
		if salt, ok = key.Salt(found.Name, found.First); ok {
			return key, salt, true
		}
	}
	return key, 0, false
}
