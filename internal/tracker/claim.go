package tracker

import (
	"cmp"
	"strings"
	"time"

	eventsv1 "k8s.io/api/events/v1"

	"github.com/eventseries/eventseries/series"
)

// claim is how an entry gets an Event although another one has the name that it
// wants, or although its own Event has another version than it knows. It looks at
// that Event, and then
//
//   - adopts it, if it is the entry's own or the same series of an earlier process,
//   - follows the successor that it names,
//   - closes it first, if it says Ongoing but nobody tends it, or
//   - chooses another name.
type claim struct {
	step    Kind   // Look or Close
	name    string // of the Event to look at or to close
	next    string // of the Event to look at afterwards, if any
	version uint64 // of the Event to close
	unseen  int    // how many looks and closes the server has refused
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
	// own is due to an attempt of the entry itself.
	own
	// shared was created by the entry itself; others have written to it since.
	shared
	// alive is the same series, begun by an earlier process.
	alive
	// dead is an earlier series that has ended, or that nobody tends.
	dead
	// tended is alive, and another entry of the tracker has it.
	tended
)

// clockSkew is how far ahead the clock of another process may be.
const clockSkew = 10 * time.Minute

// maxRate is how many occurrences a second are possible.
const maxRate = 1_000_000

// judge says whether found is a stranger, alive, or dead to the series of key k.
func (t *Tracker) judge(k *series.Key, found *series.Series, now time.Time) standing {
	if !t.isOf(k, found) {
		return stranger
	}
	return t.judgeTimes(found, now)
}

// judgeTimes is judge for a series whose key and name are right.
func (t *Tracker) judgeTimes(found *series.Series, now time.Time) standing {
	switch {
	case found.First.Sub(now) > clockSkew || found.Last.Sub(now) > clockSkew || found.Last.Before(found.First):
		return stranger
	case int64(found.Count) > maxRate*(1+int64(found.Last.Sub(found.First)/time.Second)):
		return stranger
	case t.isAlive(found, now):
		return alive
	default:
		return dead
	}
}

// isOf reports whether found has key k and could have been written for it.
func (t *Tracker) isOf(k *series.Key, found *series.Series) bool {
	key, named := t.keyOf(found)
	return named && key == *k && found.Namespace == t.namespace(k)
}

// isAlive reports whether a process probably tends the series, or has only just
// ceased to. The server knows the last occurrence of an ongoing series as of its
// last heartbeat.
func (t *Tracker) isAlive(found *series.Series, now time.Time) bool {
	switch found.State {
	case series.Singleton:
		return now.Sub(found.First) < t.opts.FinishAfter
	case series.Ongoing:
		return now.Sub(found.Last) < t.aliveFor(found)
	default:
		return false
	}
}

// aliveFor returns for how long after its last occurrence an ongoing series is alive,
// as in series.StateAt. If FinishAfter is shorter than the default, so is this.
func (t *Tracker) aliveFor(found *series.Series) time.Duration {
	return cmp.Or(found.Heartbeat, series.DefaultHeartbeat) + min(t.opts.FinishAfter, series.FinishAfter)
}

// began reports whether found begins as e does: the same Event, or one that e has
// created. found can be nil.
func (t *Tracker) began(e *Entry, found *series.Series) bool {
	if found == nil || found.First.UnixMicro() != e.spec.first || found.Instance != e.instance() {
		return false
	}
	k := e.Key()
	return t.isOf(&k, found)
}

// judgeFor says what found is to e. An Event is e's own only if its count and time
// equal an attempt that was sent, and no other entry has it: two entries of one key
// can begin in the same microsecond.
func (t *Tracker) judgeFor(e *Entry, found *series.Series, now time.Time) standing {
	k := e.Key()
	isTended := t.tends(fastHash(t.seed, &k), &k, found.Name, e)
	if !isTended && t.began(e, found) && e.hasAttempts() {
		if _, ok := e.attempted(found); ok {
			return own
		}
		if e.smallestAttempt() <= found.Count {
			return shared
		}
	}
	what := t.judge(&k, found, now)
	if what == alive && isTended {
		return tended
	}
	return what
}

// applyClaim applies the outcome of a look or close of an entry that claims a name.
func (t *Tracker) applyClaim(e *Entry, w *Write, r *Result, now time.Time, drops *[]Drop) {
	switch {
	case r.Outcome == Refused && w.Kind == Look:
		t.unseen(e)
	case r.Outcome == Changed && e.extra.claim.unseen+1 < maxLooks:
		// Somebody tends the Event that is to be closed. Look again.
		e.extra.claim.step = Look
		e.extra.claim.unseen++
	case w.Kind == Close:
		if r.Outcome == Written && w.Series.Name == e.baseName() {
			t.setBaseOwner(e, ownerUs, versionOf(r.Event))
		}
		t.claimNext(e) // closed, gone, or not to be had
	case r.Outcome == Gone && w.Series.Name == e.name() && !e.extra.vacated:
		// It has just made room, so the name is free. If a create says otherwise again,
		// do not ask the server again: this would never end.
		e.becomeUnwritten()
		e.extra.vacated = true
	case r.Outcome == Written:
		t.found(e, w, r.Event, now, drops)
	default:
		t.claimNext(e)
	}
}

// unseen counts that the server does not show an Event that e wants to look at.
// After maxLooks times the entry takes another name.
func (t *Tracker) unseen(e *Entry) {
	if e.extra.claim.unseen++; e.extra.claim.unseen < maxLooks {
		return
	}
	if e.extra.claim.name == e.baseName() {
		t.setBaseOwner(e, ownerOther, 0)
	}
	e.extra.claim.next = ""
	t.claimNext(e)
}

// applyConflict applies the outcome of a look of an entry at its own Event.
func (t *Tracker) applyConflict(e *Entry, w *Write, r *Result, now time.Time, drops *[]Drop) {
	switch r.Outcome {
	case Gone:
		t.vanished(e, drops)
	case Refused:
		if e.extra.claim.unseen++; e.extra.claim.unseen >= maxLooks {
			// It cannot continue in that Event without undoing what others have written.
			t.refuse(e, r.Reason, t.offset(now), drops)
		}
	case Written:
		if found := read(w, r.Event); t.began(e, found) {
			t.merge(e, found, now, drops)
			return
		}
		// Another Event has taken the place of that one.
		if t.forgetSilent(e, drops) {
			return
		}
		e.becomeUnwritten()
		e.becomeClaiming(w.Series.Name)
		t.found(e, w, r.Event, now, drops)
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
func (t *Tracker) found(e *Entry, w *Write, event *eventsv1.Event, now time.Time, drops *[]Drop) {
	at := t.offset(now)
	what, found := stranger, read(w, event)
	if found != nil {
		what = t.judgeFor(e, found, now)
	}
	if w.Series.Name == e.baseName() {
		t.setBaseOwner(e, ownerIf(what != stranger), versionOf(event))
	}
	switch what {
	case own:
		a, _ := e.attempted(found)
		t.adopt(e, found, 0, at)
		t.confirm(e, a, at)
	case shared:
		t.adopt(e, found, found.Count-e.smallestAttempt(), at)
	case alive:
		t.adopt(e, found, found.Count, at)
		t.adopted.Add(1)
	case stranger, tended:
		e.extra.claim.next = ""
		t.claimNext(e)
	case dead:
		// Only the Event under the base name leads to another one, and only to one of
		// the same key, so this ends.
		k := e.Key()
		next, _, _ := strings.Cut(event.Annotations[series.AnnotationSuccessor], " ")
		if found.Name != k.BaseName() || next == found.Name || !k.Named(next) {
			next = ""
		}
		e.extra.claim.next = next
		if found.State == series.Ongoing && !t.tends(fastHash(t.seed, &k), &k, found.Name, e) {
			// Nobody else would close it. One that another entry tends looks dead only
			// because the server has not heard of it for long.
			e.extra.claim.step, e.extra.claim.version = Close, versionOf(event)
			return
		}
		t.claimNext(e)
	}
	if (what == own || what == shared) && found.State.Closed() && e.life == accepting {
		// Others have ended the series. What occurs from now on is a new one.
		t.end(e, found.State, at, drops)
	}
}

// claimNext continues a claim with the next Event, or ends it by taking another
// name.
func (t *Tracker) claimNext(e *Entry) {
	if next := e.extra.claim.next; next != "" {
		e.becomeClaiming(next)
		return
	}
	e.becomeUnwritten()
	t.takeUniqueName(e)
}

// adopt makes found the Event of e. theirs is how many of its occurrences e has
// not counted itself.
func (t *Tracker) adopt(e *Entry, found *series.Series, theirs int32, at time.Duration) {
	s := t.drain(e)
	e.raise(int64(theirs))
	if theirs > 0 && e.spec.state == series.Singleton {
		e.spec.state = series.Ongoing
		if e.life == closing {
			e.spec.state = series.Finished
		}
		s.open(e)
	}
	if !e.spec.silent && !t.began(e, found) {
		if e.spec.lastNote() == "" {
			e.spec.setLastNote(e.spec.note)
		}
		e.spec.note = found.Note
	}
	e.spec.first = found.First.UnixMicro()
	annotations := found.Annotations
	if size(annotations) > MaxAnnotationBytes {
		annotations = nil // they are not ours, and stay where they are
	}
	e.spec.setAnnotations(mergeAnnotations(annotations, e.spec.annotations()))
	e.spec.compare(found)
	e.change()
	revision, count := e.spec.revision, e.spec.count
	s.mu.Unlock()

	e.setInstance(found.Instance)
	e.rename(found.Name)
	e.becomeLive(versionNumber(found.Version), found.Managed)
	st := &e.status
	if e.hasUniqueName() {
		e.extra.renames = max(e.extra.renames, 1)
		t.wantSignpost(e, at) // whoever led here may have done so long ago
	}
	st.at, st.last, st.state, st.count = at, found.Last.UnixMicro(), found.State, found.Count
	st.revision, st.flush, st.promised = revision, false, found.Heartbeat == t.opts.promise()
	if theirs > 0 || found.Count != count || found.State != e.spec.state {
		// What the server knows may be half an hour old. Update it at once, or the next
		// process takes the series for dead.
		st.revision, st.flush = 0, true
	}
	t.planBeat(e)
}

// confirm says that the server has accepted an attempt of e. It is as if the response
// had arrived now, so a loop does not write again before its next heartbeat.
// Tracker.mu is held.
func (t *Tracker) confirm(e *Entry, a attempt, at time.Duration) {
	st := &e.status
	if st.revision == 0 && !st.state.Closed() {
		st.revision = a.revision
		st.flush = t.awaited(e)
	}
	st.at = at
	t.planBeat(e)
	t.delay(e, 0, at)
}

// merge adds to e what others have written to its Event. Their occurrences are
// added to its own, so nothing of either is lost.
//
// If a response was lost, and others have written before e looks, merge cannot
// tell whether the server has accepted the attempt before that. It assumes that
// it has not, so the occurrences that are new in that attempt can count twice.
func (t *Tracker) merge(e *Entry, found *series.Series, now time.Time, drops *[]Drop) {
	at := t.offset(now)
	st := &e.status
	s := t.drain(e)
	theirs := int64(found.Count) - int64(st.count)
	a, ours := e.attempted(found)
	if ours {
		theirs = 0
	}
	if theirs > 0 {
		e.raise(theirs)
	}
	e.spec.compare(found)
	e.change()
	switch {
	case e.life == closing && found.State.Closed():
		e.spec.state = found.State
	case e.life == closing && theirs > 0 && e.spec.state == series.Finished && found.State == series.Ongoing:
		e.spec.state = series.Ongoing // it is quiet here, but not there
	}
	revision, count := e.spec.revision, e.spec.count
	s.mu.Unlock()
	planned := st.state == series.Ongoing
	e.becomeLive(versionNumber(found.Version), found.Managed)
	st.count, st.state = found.Count, found.State
	st.last = max(st.last, found.Last.UnixMicro())
	st.revision, st.flush, st.promised = 0, true, found.Heartbeat == t.opts.promise()
	corrects := found.State == series.Ongoing && e.life == accepting && !st.promised
	if found.Count >= count && found.State == e.spec.state && !corrects {
		st.revision, st.flush = revision, false // nothing to add
	}
	if ours {
		t.confirm(e, a, at)
	}
	if !planned {
		// Others have made a series of a singleton, or an attempt has.
		t.planBeat(e)
		if e.hasUniqueName() && st.state == series.Ongoing {
			t.wantSignpost(e, at)
		}
	}
	if found.State.Closed() && e.life == accepting {
		// The series has ended. What occurs from now on is a new one.
		t.end(e, found.State, at, drops)
	}
}

// applySignpost applies the outcome of a write that is about the Event under the
// base name, when the series itself is up to date.
func (t *Tracker) applySignpost(e *Entry, w *Write, r *Result, now time.Time) {
	at := t.offset(now)
	st := &e.status
	switch {
	case r.Outcome == Gone:
		// There is nobody to lead here, and the name is free.
		st.signpost, e.more().baseOwner = false, ownerUnknown
		t.tombstones.release(t.nameHashOf(e))
	case r.Outcome == Written && w.Kind == Signpost:
		st.signpost, e.more().base = false, versionOf(r.Event)
		t.tombstones.hold(t.nameHashOf(e), at+t.untilExpired(), ownerUs, e.extra.base)
		t.signposted(e, read(w, r.Event))
	case r.Outcome == Written:
		found := read(w, r.Event)
		t.setBaseOwner(e, ownerIf(found != nil && t.judgeFor(e, found, now) != stranger), versionOf(r.Event))
		st.signpost = e.baseOwner() == ownerUs
	case r.Outcome == Changed:
		t.setBaseOwner(e, ownerUnknown, 0) // somebody has written to it, or replaced it
	case r.Outcome == Refused && w.Kind == Look:
		t.setBaseOwner(e, ownerOther, 0)
		st.signpost = false
	case r.Outcome == Refused:
		st.signpost = false
	}
}

// signposted tells the entry that has yet to close the Event under the base name of
// e which version the signpost has given it, unless others have written to it too.
func (t *Tracker) signposted(e *Entry, base *series.Series) {
	if base == nil {
		return
	}
	k := e.Key()
	for other := range t.closed.with(fastHash(t.seed, &k)) {
		st := &other.status
		if other != e && other.phase == live && other.key.is(&k) && other.name() == base.Name &&
			st.count == base.Count && st.state == base.State && st.last == base.Last.UnixMicro() {
			st.version = versionNumber(base.Version)
		}
	}
}

// wantSignpost has the Event under the base name lead to that of e, unless it is a
// stranger's. If that is not known, the next write looks.
func (t *Tracker) wantSignpost(e *Entry, at time.Duration) {
	if is, version := t.tombstones.owner(t.nameHashOf(e), at); is != ownerUnknown {
		e.more().baseOwner, e.extra.base = is, version
	}
	e.status.signpost = e.baseOwner() != ownerOther
}

func (t *Tracker) setBaseOwner(e *Entry, is owner, version uint64) {
	e.more().baseOwner, e.extra.base = is, version
	t.tombstones.belongs(t.nameHashOf(e), is, version)
}

func ownerIf(ours bool) owner {
	if ours {
		return ownerUs
	}
	return ownerOther
}

// nameEntry gives e its first name: the base name, or a unique one if that is
// taken or an earlier entry has yet to write there.
func (t *Tracker) nameEntry(e *Entry, at time.Duration) {
	k := e.Key()
	e.status.named = true
	if t.tombstones.taken(t.nameHash(&k), at) || t.another(fastHash(t.seed, &k), &k, e, (*Entry).hasBaseName) {
		t.takeUniqueName(e)
	}
}

// takeUniqueName gives e the next unique name.
func (t *Tracker) takeUniqueName(e *Entry) {
	k := e.Key()
	for before := e.name(); ; {
		// An adopted Event can have any of these names.
		name := k.UniqueName(time.UnixMicro(e.spec.first), int(e.more().renames))
		e.extra.renames++
		if name != before {
			e.rename(name)
			return
		}
	}
}

// holdBaseName remembers that the base name of e is taken, if e has it.
func (t *Tracker) holdBaseName(e *Entry, at time.Duration) {
	if e.hasUniqueName() {
		return
	}
	by := ownerUnknown
	if e.exists() {
		by = ownerUs
	}
	t.tombstones.hold(t.nameHashOf(e), at+t.untilExpired(), by, e.status.version)
}

// untilExpired is for how long an Event exists after its last write. kube-apiserver
// lets Events of about the same age share a lease, so some exist a little longer
// than the TTL.
func (t *Tracker) untilExpired() time.Duration { return t.opts.EventTTL + t.opts.EventTTL/8 }
