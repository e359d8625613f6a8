package tracker

import "time"

// Flush waits until the server knows what the tracker knew when it was made. Make
// one with [Tracker.Flush].
type Flush struct {
	// Done is closed when the server knows everything, or it is lost.
	Done <-chan struct{}

	tracker *Tracker
	done    chan struct{}
	left    map[*Entry]revision // the revisions that the server does not know yet
	listed  bool                // left has every series
}

// flushes are those that wait.
type flushes map[*Flush]struct{}

// Flush makes every series whose count the server does not know have that written,
// even if it would wait for a heartbeat, and at once, even if a write has failed.
// It ignores series that the server refuses, unless one is being tried again. The
// caller must call [Flush.Stop].
//
// Flush locks the tracker for one shard after the other, so it can miss what
// begins meanwhile.
func (t *Tracker) Flush(now time.Time) *Flush {
	at := t.offset(now)
	done := make(chan struct{})
	f := &Flush{Done: done, tracker: t, done: done, left: make(map[*Entry]revision)}
	t.mu.Lock()
	t.flushes[f] = struct{}{} // writes end meanwhile
	t.mu.Unlock()
	t.inParts(func(e *Entry) { f.add(e, at) })
	t.mu.Lock()
	defer t.mu.Unlock()
	f.listed = true
	f.checkDone()
	return f
}

// add has e written if the server does not know all of it.
func (f *Flush) add(e *Entry, at time.Duration) {
	t := f.tracker
	e.drain()
	if e.phase == refused && !t.sched.InFlight(e) || e.status.revision == e.spec.revision {
		return
	}
	e.status.due |= dueCount
	e.release()
	f.left[e] = e.spec.revision
	t.place(e, at)
}

// find tells the flushes that still list series of e, which was closing and accepts
// occurrences again. They may have left its shard behind, and have not come to the closing
// ones, so they would miss what e has counted before.
func (fs flushes) find(e *Entry, at time.Duration) {
	for f := range fs {
		if !f.listed {
			f.add(e, at)
		}
	}
}

// Left returns the number of series that the server does not know completely.
func (f *Flush) Left() int {
	f.tracker.mu.Lock()
	defer f.tracker.mu.Unlock()
	return len(f.left)
}

// Stop ends the waiting. Done may never be closed then.
func (f *Flush) Stop() {
	f.tracker.mu.Lock()
	defer f.tracker.mu.Unlock()
	delete(f.tracker.flushes, f)
}

// tell tells the flushes that wait what has become of e: whether the server knows of it what
// they wait for, or never will.
func (fs flushes) tell(e *Entry) {
	for f := range fs {
		if left, ok := f.left[e]; ok && (e.life == forgotten || e.status.revision.covers(left)) {
			delete(f.left, e)
			f.checkDone()
		}
	}
}

// awaited reports whether a flush waits for more of e than the server knows.
func (fs flushes) awaited(e *Entry) bool {
	for f := range fs {
		if left, ok := f.left[e]; ok && !e.status.revision.covers(left) {
			return true
		}
	}
	return false
}

func (f *Flush) checkDone() {
	if _, waits := f.tracker.flushes[f]; waits && f.listed && len(f.left) == 0 {
		close(f.done)
		delete(f.tracker.flushes, f)
	}
}
