package tracker

import (
	"time"

	"github.com/eventseries/eventseries/series"
)

// rules are what the machines of a tracker have in common. They never change.
type rules struct {
	opts    Options
	epoch   time.Time               // from which times that are durations count
	mark    int64                   // see marked
	backoff func(int) time.Duration // the delay after this many failures

	backoffDenied func(int) time.Duration // the delay after this many failures, the latest a denial
}

// offset returns the time since the epoch.
func (r *rules) offset(now time.Time) time.Duration { return now.Sub(r.epoch) }

// namespace returns where the Event of a key is.
func (r *rules) namespace(k *series.Key) string {
	if k.Regarding.Namespace != "" {
		return k.Regarding.Namespace
	}
	return r.opts.ClusterNamespace
}

// step is one step of a machine: its input from the table, and its effects on it.
type step struct {
	*rules
	now     time.Time
	at      time.Duration // now, since the epoch
	tended  bool          // another entry has the Event that the step is about
	crowded bool          // so many series are ongoing that their heartbeats are spread

	// base is what is known of the base name of the key. The machine changes it. found is
	// what it was when the step began.
	base, found tombstone

	effects
}

// effects are what follows from a step for the table.
type effects struct {
	lost    int            // occurrences that are lost
	reason  DropReason     // why
	forget  bool           // there is nothing left to do for the series
	left    bool           // the series is quiet here, and Ongoing in another process
	adopted bool           // the series continues in the Event of an earlier process
	led     *series.Series // the Event under the base name, which leads here now
}

// phase says what is known about the Event of an entry. It determines the next write
// together with spec and status; the package documentation has the transitions. Only the
// become methods change it.
type phase uint8

const (
	// unwritten: there is no Event, as far as is known. The next write creates it.
	// A create whose response was lost may have made one; its attempt is recorded. If an
	// Event has existed, the status has its count.
	unwritten phase = iota
	// claiming: an Event has the name that the entry wants. The next write looks at
	// that Event, or closes it.
	claiming
	// live: the status says what the Event says, except for attempts.
	live
	// conflicted: another process has written to the Event, or it has accepted an
	// attempt. The next write looks at it.
	conflicted
	// refused: the server rejects the Event. The entry counts from zero. What has
	// occurred when its hold is over is tried, or else the next occurrence.
	refused
	phases // the number of phases
)

var phaseNames = [phases]string{"unwritten", "claiming", "live", "conflicted", "refused"}

func (p phase) String() string { return phaseNames[p] }

// becomeUnwritten says that no Event has the name of e.
func (e *Entry) becomeUnwritten() {
	e.become(unwritten, claim{})
	e.status.version, e.status.revision = 0, 0
}

// becomeClaiming says that another Event has the name that e wants, and that the
// next write looks at it. The attempts stay: that Event may result from one of them.
func (e *Entry) becomeClaiming(name string) { e.become(claiming, claim{step: Look, name: name}) }

// becomeLive says that the Event has the given version.
func (e *Entry) becomeLive(version uint64) {
	e.become(live, claim{})
	e.status.version = version
	if e.wasRefused() {
		e.rare.refusal = ""
	}
}

// becomeConflicted says that the Event has another version than the status says.
func (e *Entry) becomeConflicted() { e.become(conflicted, claim{step: Look, name: e.name()}) }

// becomeRefused says that the server rejects the Event of e. What e counts from
// now on belongs to another Event.
func (e *Entry) becomeRefused(reason DropReason) {
	e.become(refused, claim{})
	e.spec.count, e.spec.state = 0, series.Ongoing
	e.status.revision, e.status.count, e.status.due = e.spec.revision, 0, 0
	e.status.version = 0
	e.more().refusal = reason
}

// wasRefused reports whether the server rejects the Event of e, or has done so until the
// attempt that is under way.
func (e *Entry) wasRefused() bool { return e.rareOrZero().refusal != "" }

// become changes the phase, with the claim of the new one if it has any. A phase without a
// claim begins without attempts: it is known what has become of them.
func (e *Entry) become(p phase, c claim) {
	e.phase = p
	switch {
	case c != claim{}:
		e.more().claim = c
	case e.rare != nil:
		e.rare.claim, e.rare.attempts = claim{}, nil
	}
}
