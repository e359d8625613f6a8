package eventstest

import (
	"context"
	"fmt"
	"slices"
	"testing"
)

// Find returns the events that match want, in the order of the calls, or nil. No event
// matches an invalid Want, such as one with a nil pointer as an object or with an invalid
// pattern; [Recorder.Expect] reports that.
func (r *Recorder) Find(want Want) []Event {
	m, err := want.matcher(r.scheme())
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(r.Events(), func(e Event) bool { return !m.matches(e) })
}

// Expect fails the test unless each want matches an event of its own: Expect(t, w, w)
// wants two events. There may be other events. It returns whether the test passed.
//
// The failure shows the want, the closest event with the fields that differ, and all
// events.
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

// ExpectOnly fails the test unless each want matches an event of its own, and there are
// no other events. Without wants, it fails if there is any event. It returns whether the
// test passed.
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

// ExpectInOrder fails the test unless the wants match events in this order. There may be
// other events in between. It returns whether the test passed.
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

// ExpectNone fails the test if an event matches one of the wants. Without wants, it
// fails if there is any event. It returns whether the test passed. For example, to check
// that there was no Warning:
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

// Wait waits for an event that matches want, and returns the first one. It returns at
// once if the event was emitted before. If ctx ends first, Wait returns an error that
// wraps the cause of ctx and shows what was emitted instead. Wait does not poll.
func (r *Recorder) Wait(ctx context.Context, want Want) (Event, error) {
	m, err := want.matcher(r.scheme())
	if err != nil {
		return Event{}, err
	}
	for {
		r.mu.Lock()
		recorded := r.copiesLocked()
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

// matchers returns the matchers of wants, and fails the test if a want is invalid.
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

// assign assigns an event of its own to as many matchers as possible, and returns the
// indexes of the matchers and events that are left. It uses augmenting paths, the method
// for bipartite matchings: with a greedy choice, a wide want could take the only event of
// a narrow one.
func assign(matchers []matcher, recorded []Event) (missing, extra []int) {
	owner := make([]int, len(recorded)) // the matcher that has the event, or -1
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
