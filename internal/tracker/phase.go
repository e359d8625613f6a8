package tracker

import "github.com/eventseries/eventseries/series"

// phase says what the tracker knows about the Event of an entry. It determines
// the next write together with spec and status; see the package documentation for
// the transitions. Only the become methods change it.
type phase uint8

const (
	// unwritten: there is no Event, as far as is known. The next write creates it.
	// A create whose response was lost may have made one; its attempt is recorded.
	unwritten phase = iota
	// claiming: an Event has the name that the entry wants. The next write looks at
	// that Event, or closes it.
	claiming
	// live: the status says what the Event says, except for attempts.
	live
	// conflicted: another process has written to the Event, or it has accepted an
	// attempt. The next write looks at it.
	conflicted
	// refused: the server rejects the Event. The entry counts from zero, and a
	// create is tried with each heartbeat.
	refused
)

// becomeUnwritten says that no Event has the name of e.
func (e *Entry) becomeUnwritten() {
	e.phase = unwritten
	e.status.version, e.status.revision, e.status.count = 0, 0, 0
	if e.extra != nil {
		e.extra.attempts = nil
	}
	e.dropClaim()
}

// becomeClaiming says that another Event has the name that e wants, and that the
// next write looks at it. The attempts stay: that Event may be due to one of them.
func (e *Entry) becomeClaiming(name string) {
	e.phase = claiming
	e.more().claim = claim{step: Look, name: name}
}

// becomeLive says that the Event has the given version, and whether it is managed.
func (e *Entry) becomeLive(version uint64, managed bool) {
	e.phase, e.managed = live, managed
	e.status.version = version
	e.status.existed = true
	if e.extra != nil {
		e.extra.attempts, e.extra.refusal, e.extra.vacated = nil, "", false
	}
	e.dropClaim()
}

// becomeConflicted says that the Event has another version than the status says.
func (e *Entry) becomeConflicted() {
	e.phase = conflicted
	e.more().claim = claim{step: Look, name: e.name()}
}

// becomeRefused says that the server rejects the Event of e. What e counts from
// now on belongs to another Event. Tracker.mu and the shard are locked.
func (e *Entry) becomeRefused(reason DropReason) {
	e.phase = refused
	e.spec.count, e.spec.state = 0, series.Ongoing
	e.status.revision, e.status.count, e.status.flush = e.spec.revision, 0, false
	e.status.existed, e.status.version = false, 0
	e.more().refusal = reason
	e.extra.attempts = nil
	e.dropClaim()
}

func (e *Entry) dropClaim() {
	if e.extra != nil {
		e.extra.claim = claim{}
	}
}
