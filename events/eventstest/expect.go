package eventstest

import (
	"context"
	"fmt"
	"slices"
	"testing"
)

// Find returns the events that are wanted, in the order in which they were
// emitted, nil if there is none. A Want that can never be compared (a nil pointer
// as an object, a pattern that does not compile) finds none; Expect says so.
func (r *Recorder) Find(want Want) []Event {
	m, err := want.matcher(r.scheme())
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(r.Events(), func(e Event) bool { return !m.matches(e) })
}

// Expect fails the test unless each want is met by an event of its own: Expect(t,
// w, w) wants two. There may be other events. It reports whether all were met.
//
// What it says when it fails is what was wanted, the event that comes nearest with
// the fields in which it differs, and what else was recorded.
func (r *Recorder) Expect(tb testing.TB, wants ...Want) bool {
	tb.Helper()
	matchers, ok := r.matchers(tb, wants)
	if !ok {
		return false
	}
	recorded := r.Events()
	missing, _ := assign(matchers, recorded)
	for _, i := range missing {
		tb.Errorf("%s", missed(matchers[i], recorded))
	}
	return len(missing) == 0
}

// ExpectOnly fails the test unless each want is met by an event of its own and
// there are no other events. Without wants there must be none at all. It reports
// whether that is so.
func (r *Recorder) ExpectOnly(tb testing.TB, wants ...Want) bool {
	tb.Helper()
	matchers, ok := r.matchers(tb, wants)
	if !ok {
		return false
	}
	recorded := r.Events()
	missing, extra := assign(matchers, recorded)
	for _, i := range missing {
		tb.Errorf("%s", missed(matchers[i], recorded))
	}
	if len(extra) > 0 {
		tb.Errorf("%s", unexpected("want no others", recorded, extra))
	}
	return len(missing) == 0 && len(extra) == 0
}

// ExpectInOrder fails the test unless the wants are met in this order. There may be
// other events in between. It reports whether they were met.
func (r *Recorder) ExpectInOrder(tb testing.TB, wants ...Want) bool {
	tb.Helper()
	matchers, ok := r.matchers(tb, wants)
	if !ok {
		return false
	}
	recorded := r.Events()
	rest := recorded
	for i, m := range matchers {
		at := slices.IndexFunc(rest, m.matches)
		if at < 0 {
			text := missed(m, recorded)
			if i > 0 && slices.ContainsFunc(recorded, m.matches) {
				text = outOfOrder(matchers[i-1], m, recorded)
			}
			tb.Errorf("%s", text)
			return false
		}
		rest = rest[at+1:]
	}
	return true
}

// ExpectNone fails the test if there is an event that meets one of wants, or any
// event at all if none is given. It reports whether there is none. To prove that
// there was no Warning:
//
//	recorder.ExpectNone(t, eventstest.Want{Type: corev1.EventTypeWarning})
func (r *Recorder) ExpectNone(tb testing.TB, wants ...Want) bool {
	tb.Helper()
	if len(wants) == 0 {
		wants = []Want{{}}
	}
	matchers, ok := r.matchers(tb, wants)
	if !ok {
		return false
	}
	recorded := r.Events()
	for _, m := range matchers {
		var found []int
		for i, event := range recorded {
			if m.matches(event) {
				found = append(found, i)
			}
		}
		if len(found) > 0 {
			ok = false
			what := "want none"
			if len(m) > 0 {
				what += " with " + m.String()
			}
			tb.Errorf("%s", unexpected(what, recorded, found))
		}
	}
	return ok
}

// Wait returns the first event that is wanted, as soon as there is one; one that
// is there already counts. If ctx ends before, the error wraps its cause and says
// what was recorded instead. It is woken by events and does not poll.
func (r *Recorder) Wait(ctx context.Context, want Want) (Event, error) {
	m, err := want.matcher(r.scheme())
	if err != nil {
		return Event{}, err
	}
	for {
		r.mu.Lock()
		recorded := slices.Clone(r.events)
		if r.changed == nil {
			r.changed = make(chan struct{})
		}
		changed := r.changed
		r.mu.Unlock()
		if at := slices.IndexFunc(recorded, m.matches); at >= 0 {
			return recorded[at], nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Event{}, fmt.Errorf("%w: %s", context.Cause(ctx), missed(m, recorded))
		}
	}
}

// matchers prepares wants, and fails the test if that cannot be done.
func (r *Recorder) matchers(tb testing.TB, wants []Want) ([]matcher, bool) {
	tb.Helper()
	matchers := make([]matcher, len(wants))
	for i, want := range wants {
		var err error
		if matchers[i], err = want.matcher(r.scheme()); err != nil {
			tb.Errorf("%v", err)
			return nil, false
		}
	}
	return matchers, true
}

// assign gives as many matchers as possible an event of their own, each event to
// one at most, and returns the matchers and the events that are left. It is the
// augmenting path method for bipartite matchings: a greedy choice could leave a
// narrow want without the event that a wide one has taken.
func assign(matchers []matcher, recorded []Event) (missing, extra []int) {
	owner := make([]int, len(recorded)) // which matcher has it; -1: none
	for i := range owner {
		owner[i] = -1
	}
	var seen []bool
	var find func(m int) bool
	find = func(m int) bool {
		for i := range recorded {
			if seen[i] || !matchers[m].matches(recorded[i]) {
				continue
			}
			seen[i] = true
			if owner[i] < 0 || find(owner[i]) {
				owner[i] = m
				return true
			}
		}
		return false
	}
	for m := range matchers {
		seen = make([]bool, len(recorded))
		if !find(m) {
			missing = append(missing, m)
		}
	}
	for i := range recorded {
		if owner[i] < 0 {
			extra = append(extra, i)
		}
	}
	return missing, extra
}
