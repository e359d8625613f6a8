package tracker

import (
	"cmp"
	"strings"
	"time"
	"unique"

	eventsv1 "k8s.io/api/events/v1"

	"github.com/eventseries/eventseries/series"
)

// claim is how an entry gets an Event although another one has the name that it
// wants, or although its own Event has another version than it knows. It looks at
// that Event, and then
//
//   - adopts it, if it is the entry's own or the same series of an earlier process,
//   - follows the successor that it names,
//   - closes it first, if it says Ongoing but no process tends it, or
//   - chooses another name.
type claim struct {
	step   Kind   // Look or Close
	name   string // of the Event to look at or to close
	next   string // of the Event to look at afterwards, if any
	unseen int    // how many looks and closes the server has refused
}

// countRefusal counts that the server has refused a look or a close, and reports whether
// another one is in vain.
func (c *claim) countRefusal() (isVain bool) {
	c.unseen++
	return c.unseen >= maxLooks
}

// maxLooks is how many times the server is asked to show an Event when it refuses.
//
// That Event may be the entry's own, if the response to a create was lost. To
// choose another name writes everything a second time. But another Event must not
// hold up a series for ever.
const maxLooks = 3

// standing is what an Event on the server is to a series.
type standing uint8

const (
	// stranger has another key, or says what cannot be true.
	stranger standing = iota
	// own results from an attempt of the entry itself.
	own
	// shared was created by the entry itself; others have written to it since.
	shared
	// alive is the same series: its latest occurrence was not long ago.
	alive
	// dead is an earlier series that has ended long ago, or that no process tends.
	dead
	// tended is alive, and another entry of the tracker has it.
	tended
)

// clockSkew is how far ahead the clock of another process may be.
const clockSkew = 10 * time.Minute

// maxRate is how many occurrences a second are possible.
const maxRate = 1_000_000

// judge says whether found is a stranger, alive, or dead to the series of key k.
func (r *rules) judge(k *series.Key, found *series.Series, now time.Time) standing {
	if !r.isOf(k, found) {
		return stranger
	}
	return r.judgeTimes(found, now)
}

// judgeTimes is judge for a series whose key and name are right.
func (r *rules) judgeTimes(found *series.Series, now time.Time) standing {
	switch {
	case found.First.Sub(now) > clockSkew || found.Last.Sub(now) > clockSkew || found.Last.Before(found.First):
		return stranger
	case int64(found.Count) > maxRate*(1+int64(found.Last.Sub(found.First)/time.Second)):
		return stranger
	}
	// An occurrence continues the series if it is not long since the latest one. That of an
	// ongoing series is known as of its last heartbeat.
	aliveFor := r.opts.MaxWindow
	if found.State == series.Ongoing {
		aliveFor += cmp.Or(found.Heartbeat, series.DefaultHeartbeat)
	}
	if now.Sub(found.Last) < aliveFor {
		return alive
	}
	return dead
}

// isOf reports whether found has key k and could have been written for it.
func (r *rules) isOf(k *series.Key, found *series.Series) bool {
	key, named := r.keyOf(found)
	return named && key == *k && found.Namespace == r.namespace(k)
}

// began reports whether found begins as e does: the same Event, or one that e has
// created. found can be nil.
func (e *Entry) began(r *rules, found *series.Series) bool {
	if found == nil || found.First.UnixMicro() != e.spec.first || found.Instance != e.instance() {
		return false
	}
	k := e.Key()
	return r.isOf(&k, found)
}

// judge says what found is to e. An Event is e's own only if its count and time
// equal an attempt that was sent, and no other entry has it: two entries of one key
// can begin in the same microsecond.
func (e *Entry) judge(s *step, found *series.Series) standing {
	k := e.Key()
	if !s.tended && e.began(s.rules, found) && e.hasAttempts() {
		if _, ok := e.attempted(found); ok {
			return own
		}
		if e.smallestAttempt() <= found.Count {
			return shared
		}
	}
	what := s.judge(&k, found, s.now)
	if what == alive && s.tended {
		return tended
	}
	return what
}

// claimed applies the outcome of a look or close of an entry that claims a name.
func (e *Entry) claimed(s *step, w *Write, r *Result) {
	claim := &e.rare.claim
	switch {
	case r.Outcome == Refused && w.Kind == Look:
		e.unseen(s)
	case r.Outcome == Changed && !claim.countRefusal():
		claim.step = Look // somebody tends the Event that is to be closed
	case w.Kind == Close:
		if r.Outcome == Written && w.Series.Name == e.baseName() {
			s.base.belongs(ownerUs, versionOf(r.Event))
		}
		e.claimNext() // it is closed or gone, or the server does not permit to close it
	case r.Outcome == Gone && w.Series.Name == e.name() && e.failures() < 2:
		// It has just been deleted, so the name is free. If a create fails again
		// nevertheless, do not repeat this: it would never end.
		e.becomeUnwritten()
	case r.Outcome == Written:
		e.found(s, w, r.Event)
	default:
		e.claimNext()
	}
}

// unseen counts that the server does not show an Event that e wants to look at.
// After maxLooks times the entry takes another name.
func (e *Entry) unseen(s *step) {
	claim := &e.rare.claim
	if !claim.countRefusal() {
		return
	}
	if claim.name == e.baseName() {
		s.base.belongs(ownerOther, 0)
	}
	claim.next = ""
	e.claimNext()
}

// looked applies the outcome of a look of an entry at its own Event.
func (e *Entry) looked(s *step, w *Write, r *Result) {
	switch r.Outcome {
	case Gone:
		e.vanished(s)
	case Refused:
		if e.rare.claim.countRefusal() {
			// It cannot continue in that Event without undoing what others have written.
			e.refuse(s, r.Reason)
		}
	case Written:
		if found := read(w, r.Event); e.began(s.rules, found) {
			e.merge(s, found)
			return
		}
		// Another Event has taken the place of that one.
		if e.loseIfSilent(s) {
			return
		}
		e.becomeUnwritten()
		e.becomeClaiming(w.Series.Name)
		e.found(s, w, r.Event)
	default:
		// The phase remains.
	}
}

// read returns the series of the Event that answers a look, nil if that is none.
func read(w *Write, event *eventsv1.Event) *series.Series {
	if event == nil || event.Name != w.Series.Name {
		return nil
	}
	found, err := series.FromEvent(event)
	if err != nil {
		return nil
	}
	return found
}

// found decides what an entry that claims a name does about the Event which has
// it.
func (e *Entry) found(s *step, w *Write, event *eventsv1.Event) {
	what, found := stranger, read(w, event)
	if found != nil {
		what = e.judge(s, found)
	}
	k := e.Key()
	base := k.BaseName()
	if w.Series.Name == base {
		s.base.belongs(ownerIf(what != stranger), versionOf(event))
	}
	switch what {
	case own:
		a, _ := e.attempted(found)
		e.adopt(s, found, own)
		e.confirm(s, a)
	case shared, alive:
		e.adopt(s, found, what)
		s.adopted = what == alive
	case stranger, tended:
		e.rare.claim.next = ""
		e.claimNext()
	case dead:
		// Only the Event under the base name leads to another one, and only to one of
		// the same key, so this ends.
		next, _, _ := strings.Cut(event.Annotations[series.AnnotationSuccessor], " ")
		if found.Name != base || next == found.Name || !k.Named(next) {
			next = ""
		}
		e.rare.claim.next = next
		if found.State == series.Ongoing && !s.tended {
			// Nobody else would close it. One that another entry tends looks dead only
			// because the server has not heard of it for long.
			e.rare.claim.step, e.status.version = Close, versionOf(event)
			return
		}
		e.claimNext()
	}
}

// claimNext continues a claim with the next Event, or ends it by taking another
// name.
func (e *Entry) claimNext() {
	if next := e.rare.claim.next; next != "" {
		e.becomeClaiming(next)
		return
	}
	e.becomeUnwritten()
	e.takeUniqueName()
}

// adopt makes found the Event of e, to which it is what the standing says.
func (e *Entry) adopt(s *step, found *series.Series, what standing) {
	theirs := found.Count // how many e has not counted itself
	switch what {
	case own:
		theirs = 0
	case shared:
		theirs -= e.smallestAttempt()
	default:
		// Other processes have counted all of them.
	}
	e.raise(int64(theirs))
	if theirs > 0 && e.spec.state == series.Singleton {
		e.spec.state = series.Ongoing
		if e.life != accepting {
			e.spec.state = series.Finished
		}
	}
	switch age := time.Duration(e.spec.first-found.Last.UnixMicro()) * time.Microsecond; {
	case theirs == 0:
	case found.State == series.Ongoing:
		e.resume(s.rules, found.QuietWindow(), age)
	default:
		e.learn(s.rules, age, e.last())
	}
	if !e.silent && !e.began(s.rules, found) {
		if e.spec.latestOrZero().note == "" {
			e.spec.setLastNote(e.spec.note)
		}
		e.spec.note = found.Note
	}
	e.spec.first = found.First.UnixMicro()
	annotations := found.Annotations
	if size(annotations) > MaxAnnotationBytes {
		annotations = nil // they are not ours, and stay where they are
	}
	e.spec.setAnnotations(mergeAnnotations(annotations, e.spec.latestOrZero().annotations))
	e.compare(s.rules, found)
	e.change()
	if found.Instance != e.instance() {
		e.more().instance = unique.Make(found.Instance)
	}
	e.rename(found.Name)
	e.becomeLive(VersionNumber(found.Version))
	st := &e.status
	if e.hasUniqueName() {
		st.names = max(st.names, 2)
		e.wantLead(s) // the signpost that leads here may expire soon
	}
	st.at, st.last = s.at, found.Last.UnixMicro()
	// What the server knows may be half an hour old. Update it at once, or the next process
	// takes the series for dead.
	e.setKnown(found, theirs == 0 && found.Count == e.spec.count && found.State == e.spec.state)
	e.planBeat(s)
}

// setKnown says that the Event says what found says. If that is not all, a write is due.
func (e *Entry) setKnown(found *series.Series, isAll bool) {
	st := &e.status
	st.progress = progress{found.Count, e.spec.revision, found.State}
	st.due &^= dueCount
	if !isAll {
		st.revision = 0
		st.due |= dueCount
	}
}

// confirm says that the server has accepted an attempt of e. It is as if the response
// had arrived now, so a loop does not write again before its next heartbeat.
func (e *Entry) confirm(s *step, a attempt) {
	st := &e.status
	if st.revision == 0 && !st.state.Closed() {
		st.revision = a.revision
		st.due &^= dueCount
	}
	st.at = s.at
	e.planBeat(s)
	e.setFailures(s.rules, 0, s.at)
}

// merge adds to e what others have written to its Event. Their occurrences are
// added to its own, so nothing of either is lost.
//
// If a response was lost, and others have written before e looks, merge cannot
// tell whether the server has accepted the attempt before that. It assumes that
// it has not, so the occurrences that are new in that attempt can count twice.
func (e *Entry) merge(s *step, found *series.Series) {
	st := &e.status
	theirs := int64(found.Count) - int64(st.count)
	a, ours := e.attempted(found)
	if theirs > 0 && !ours {
		e.raise(theirs)
		if age := s.now.Sub(found.Last); age >= -clockSkew {
			e.more().pace.theirs = s.at - age
		}
	}
	e.compare(s.rules, found)
	e.change()
	switch {
	case e.life == closing && found.State.Closed():
		e.spec.state = found.State
	case e.life == resting && s.at-s.now.Sub(found.Last) <= e.last():
		// The latest occurrence was here, so nobody else finishes the series.
	case e.life != accepting && theirs > 0 && !ours && e.spec.state == series.Finished && found.State == series.Ongoing:
		e.spec.state = series.Ongoing // it is quiet here, but not there
		s.left = e.life == resting
	}
	planned := st.state == series.Ongoing
	e.becomeLive(VersionNumber(found.Version))
	st.last = max(st.last, found.Last.UnixMicro())
	corrects := found.State == series.Ongoing && e.life == accepting && st.unsaid.has(partHeartbeat)
	e.setKnown(found, found.Count >= e.spec.count && found.State == e.spec.state && !corrects)
	if ours {
		e.confirm(s, a)
	}
	if !planned {
		// Others have made a series of a singleton, or an attempt has.
		e.planBeat(s)
		if e.hasUniqueName() && st.state == series.Ongoing {
			e.wantLead(s)
		}
	}
}

// baseLooked applies the outcome of a write that is about the Event under the base name,
// when the series itself is up to date.
func (e *Entry) baseLooked(s *step, w *Write, r *Result) {
	switch {
	case r.Outcome == Gone:
		// No Event can lead here, and the name is free.
		e.status.due &^= dueBase
		s.base.release()
	case r.Outcome == Written && w.Kind == Signpost:
		e.status.due &^= dueBase
		s.base.hold(s.at+s.untilExpired(), ownerUs, versionOf(r.Event))
		s.led = read(w, r.Event)
	case r.Outcome == Written:
		found := read(w, r.Event)
		s.base.hold(s.at+s.untilExpired(), ownerIf(found != nil && e.judge(s, found) != stranger), versionOf(r.Event))
		e.wantLead(s)
	case r.Outcome == Changed:
		// Somebody has written to it, or replaced it.
		s.base.belongs(ownerUnknown, 0)
		e.wantLead(s)
	case r.Outcome == Refused && w.Kind == Look:
		s.base.hold(s.at+s.untilExpired(), ownerOther, 0)
		e.status.due &^= dueBase
	case r.Outcome == Refused:
		e.status.due &^= dueBase
	}
}

// wantLead makes the Event under the base name lead to that of e, if e is Ongoing, unless
// it is a stranger's. If that is not known, the next write looks.
func (e *Entry) wantLead(s *step) {
	e.status.due &^= dueBase
	if e.spec.state != series.Ongoing {
		return
	}
	switch is, _ := s.base.ownerAt(s.at); is {
	case ownerUs:
		e.status.due |= dueLead
	case ownerUnknown:
		e.status.due |= dueLook
	default:
		// It is a stranger's.
	}
}

func ownerIf(ours bool) owner {
	if ours {
		return ownerUs
	}
	return ownerOther
}

func (e *Entry) takeUniqueName() {
	k := e.Key()
	for before := e.name(); ; {
		// An adopted Event can have any of these names.
		n := max(e.status.names, 1)
		name := k.UniqueName(time.UnixMicro(e.spec.first), int(n-1))
		e.status.names = max(n+1, 2) // it wraps around
		if name != before {
			e.rename(name)
			return
		}
	}
}

// holdBaseName remembers that the base name of e is taken, if e has it.
func (e *Entry) holdBaseName(s *step, at time.Duration) {
	if e.hasUniqueName() {
		return
	}
	by := ownerUnknown
	if e.exists() {
		by = ownerUs
	}
	s.base.hold(at+s.untilExpired(), by, e.status.version)
}

// untilExpired is for how long an Event exists after its last write. kube-apiserver
// lets Events of about the same age share a lease, so some exist a little longer
// than the TTL.
func (r *rules) untilExpired() time.Duration { return r.opts.EventTTL + r.opts.EventTTL/8 }
