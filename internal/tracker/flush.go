package tracker

import "time"

// Flush waits until the server knows what the tracker knew when it was made. Make
// one with [Tracker.Flush].
type Flush struct {
	// Done is closed when the server knows everything, or it is lost.
	Done <-chan struct{}

	tracker *Tracker
	done    chan struct{}
	left    map[*Entry]int32 // the counts that the server does not store yet
	listed  bool             // left has every series
}

// flushes are those that wait.
type flushes map[*Flush]struct{}

// Flush makes every series whose count the server does not know have that written,
// even if it would wait for a heartbeat, and at once, even if a write has failed or was
// refused. The caller must call [Flush.Stop]. What begins meanwhile can be missed.
func (t *Tracker) Flush(now time.Time) *Flush {
	done := make(chan struct{})
	f := &Flush{Done: done, tracker: t, done: done, left: make(map[*Entry]int32)}
	t.mu.Lock()
	t.flushes[f] = struct{}{} // writes end meanwhile
	t.mu.Unlock()
	t.inParts(func(e *Entry) {
		if e.lost() > 0 {
			f.left[e] = e.count
			t.sched.Release(e, t.offset(now))
			s := t.step(e, now)
			t.settle(e, &s)
		}
	})
	t.mu.Lock()
	defer t.mu.Unlock()
	f.listed = true
	f.checkDone()
	return f
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
		if count, ok := f.left[e]; ok && (e.class == unlisted || e.stored.count >= count || e.lost() == 0) {
			delete(f.left, e)
			f.checkDone()
		}
	}
}

// shift says that the count of e contains so many occurrences more that the server stores.
func (fs flushes) shift(e *Entry, theirs int32) {
	for f := range fs {
		if _, ok := f.left[e]; ok {
			f.left[e] += theirs
		}
	}
}

// awaited reports whether a flush waits for e.
func (fs flushes) awaited(e *Entry) bool {
	for f := range fs {
		if _, ok := f.left[e]; ok {
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
