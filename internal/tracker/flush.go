package tracker

import "time"

// Flush waits until the server knows what the tracker knew when it was made with [Tracker.Flush].
type Flush struct {
	// Done is closed when the server knows everything, or it is lost.
	Done chan struct{}

	tracker *Tracker
	left    map[*Entry]int32 // the counts that the server does not store yet
	listed  bool             // left has every series
}

// flushes are those that wait.
type flushes map[*Flush]struct{}

// Flush has each count that the server does not know written at once, even if a heartbeat is not due, or
// a write has failed or was refused. The caller must call [Flush.Stop]. What begins meanwhile can be
// missed.
func (t *Tracker) Flush(now time.Time) *Flush {
	f := &Flush{Done: make(chan struct{}), tracker: t, left: make(map[*Entry]int32)}
	t.lock()
	t.flushes[f] = struct{}{} // writes end meanwhile
	t.mu.Unlock()
	t.inParts(func(e *Entry) {
		if e.unstored() > 0 {
			f.left[e] = e.count
			t.sched.Release(e, t.offset(now))
			t.update(e, now, func(*step) {})
		}
	})
	t.lock()
	defer t.mu.Unlock()
	f.listed = true
	f.checkDone()
	return f
}

// Left returns the number of series that the server does not know completely.
func (f *Flush) Left() int {
	f.tracker.lock()
	defer f.tracker.mu.Unlock()
	return len(f.left)
}

// Stop ends the waiting. Done may never be closed then.
func (f *Flush) Stop() {
	f.tracker.lock()
	defer f.tracker.mu.Unlock()
	delete(f.tracker.flushes, f)
}

// follow tells the flushes what has become of e, and reports whether one still waits for it: until the
// server knows of it what it waits for, or never will. theirs are the occurrences that e has taken
// over from the server: its count contains so many more.
func (fs flushes) follow(e *Entry, theirs int32) (awaited bool) {
	for f := range fs {
		count, ok := f.left[e]
		switch count += theirs; {
		case !ok:
		case e.class == classNone, e.stored.count >= count, e.unstored() == 0:
			delete(f.left, e)
			f.checkDone()
		default:
			f.left[e], awaited = count, true
		}
	}
	return awaited
}

func (f *Flush) checkDone() {
	if f.listed && len(f.left) == 0 {
		close(f.Done)
		delete(f.tracker.flushes, f)
	}
}
