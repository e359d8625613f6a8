package tracker

import (
	"strings"
	"time"

	"github.com/eventseries/eventseries/series"
)

// Restore adds a series that an earlier process has left on the server, so that the
// next occurrence continues it, and reports whether it did. The series must belong
// to the controller, and in the scope SameInstance to the instance, of this
// tracker:
//
//   - A series is ignored if its name or times are impossible, if it is over, or if it is
//     known. The list may be out of date.
//   - One that is Ongoing is Finished when its heartbeat and its window have passed since its latest
//     occurrence. Until then, another process may emit it.
//
// Restore fills at most half of the tracker. What it leaves out is found by its name
// when it occurs again.
func (t *Tracker) Restore(found *series.Series, now time.Time) (restored bool, drops []Drop) {
	t.lock()
	defer t.mu.Unlock()
	key, salt, ok := t.keyOf(found)
	if !ok || found.Namespace != t.namespace(&key) || !isPossible(found, now) || t.sealed != "" {
		return false, nil
	}
	hash := hashOf(t.seed, &key)
	if t.find(hash, &key) != nil {
		return false, nil
	}
	if found.State != series.Ongoing && now.Sub(found.Last) >= t.opts.MaxWindow || found.State.Closed() || t.size >= t.opts.Capacity/2 {
		return false, nil
	}
	e := &Entry{
		key:         t.intern(&key, found.Instance),
		first:       found.First.UnixMicro(),
		last:        t.offset(now) - min(max(now.Sub(found.Last), 0), series.MaxDuration),
		count:       found.Count,
		state:       found.State,
		silent:      true,
		note:        strings.Clone(found.Note),
		annotations: mergeAnnotations(nil, found.Annotations),
		salt:        uint8(salt),
		notedAt:     tenths(t.offset(now) - series.MaxDuration), // the note is an old one
	}
	t.insert(hash, e)
	t.update(e, now, func(s *step) {
		e.stored.count = found.Count // nothing of it is to be counted
		e.merge(s, found)
		e.leave(s, found)
		e.tick(s)
	})
	return true, t.dropped()
}
