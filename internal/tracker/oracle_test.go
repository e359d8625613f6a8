package tracker

import (
	"cmp"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eventseries/eventseries/series"
)

// oracle is the rules of a table a second time, as plainly as possible: one
// slice of all that there ever was, searched from end to end each time. It has
// no locks, no lists and no hashes, and its times are those of the test. Its
// server is a slice as well.
type oracle struct {
	opts   Options
	all    []*told
	known  map[string]*toldName // what is known of the base names of keys
	sealed DropReason
	// distinct is how many notes are told apart.
	distinct int

	asked  map[*told]int // what was pending when flush was called last
	lives  int
	remote []*toldEvent
	writes int // by anybody, which changed something on the server
	listed []toldEvent
}

// toldName is what is known of a base name.
type toldName struct {
	taken bool
	until time.Duration // if it is taken
	whose owner         // as long as it is taken
	ended bool          // a series of the key has ended
}

// told is what the oracle knows of an entry.
type told struct {
	key     string
	label   string
	warning bool

	// What it is.
	state    series.State
	first    time.Duration // as an Event has it
	last     time.Duration
	count    int
	note     string
	now      string
	notedAt  time.Duration
	instance string
	changes  int
	silent   bool // restored, and nothing has happened since
	closing  bool // it takes no occurrences any more
	over     bool // it is forgotten

	// What the server knows.
	exists, existed bool
	knows           toldWrite
	at              time.Duration // when it was told, or refused
	beats           int
	refused         DropReason

	// What is to be done.
	name    *naming
	names   int
	beatDue bool
	flushTo int
	writing *toldWrite

	// What stands in the way of it.
	meeting   bool
	closeIt   bool
	inTheWay  naming
	afterThat *naming
	unseen    int // how often that was not shown
	wasFree   bool

	sign bool // from the base name, the way here is to be shown
	base owner

	// What is known of an Event that others write to as well.
	version int
	tried   []toldWrite // the patches of that version that have failed
	merges  bool        // it looks at its own Event, which somebody else has written to
}

// toldWrite is a request, or what the server knows after it.
type toldWrite struct {
	kind    WriteKind
	name    naming
	event   toldEvent
	state   series.State
	count   int
	changes int
	last    time.Duration
	before  int // the version that the Event must have, if any
}

// toldEvent is an Event on the server.
type toldEvent struct {
	key         string
	name        naming
	strange     strangeness
	state       series.State
	count       int
	first, last time.Duration
	note, now   string
	instance    string
	successor   *naming
	version     int
}

func newOracle(opts Options) *oracle {
	return &oracle{opts: opts.withDefaults(), known: map[string]*toldName{}, asked: map[*told]int{}}
}

// instance is the reportingInstance of this process.
func (o *oracle) instance() string {
	if o.opts.ShareInstances {
		return fmt.Sprintf("controller-%d", o.lives)
	}
	return "controller-0"
}

func (o *oracle) find(label string) *told {
	for _, e := range o.all {
		if e.label == label {
			return e
		}
	}
	panic("no entry " + label)
}

// where returns the entries for which all of the conditions hold.
func (o *oracle) where(is ...func(*told) bool) []*told {
	var found []*told
	for _, e := range o.all {
		if !slices.ContainsFunc(is, func(f func(*told) bool) bool { return !f(e) }) {
			found = append(found, e)
		}
	}
	return found
}

func isActive(e *told) bool  { return !e.over && !e.closing }
func isClosing(e *told) bool { return !e.over && e.closing }
func isLone(e *told) bool    { return e.state == series.Singleton }
func isOngoing(e *told) bool { return e.state == series.Ongoing }
func isWritten(e *told) bool { return e.exists }
func isNew(e *told) bool     { return !e.exists }
func isNormal(e *told) bool  { return !e.warning }
func isWarning(e *told) bool { return e.warning }
func isNotBusy(e *told) bool { return e.writing == nil }
func isRefused(e *told) bool { return e.refused != "" }
func isWelcome(e *told) bool { return e.refused == "" }
func isTracked(e *told) bool { return !e.over }

func isWarningKey(key string) bool { return strings.ToUpper(tupleOf(key)) == tupleOf(key) }

func longestIdle(entries []*told) *told {
	if len(entries) == 0 {
		return nil
	}
	return slices.MinFunc(entries, func(a, b *told) int { return int(a.last - b.last) })
}

func (o *oracle) see(key, note string, now time.Duration) string {
	var eff effectsText
	if o.sealed != "" {
		eff.dropped = append(eff.dropped, fmt.Sprintf("%s x1 %s", key, o.sealed))
		return eff.String()
	}
	key, begins := o.under(key, note, now)
	for _, e := range o.where(isActive, func(e *told) bool { return e.key == key }) {
		if now-e.last >= o.opts.Window {
			o.end(e, series.Finished, now, &eff)
			continue
		}
		was := e.state
		switch {
		case was == series.Singleton && note != "":
			e.now, e.notedAt = note, now
		case was == series.Ongoing && now-e.notedAt >= o.opts.NoteInterval:
			e.notedAt = now
			if note != "" {
				e.now = note
			}
		}
		e.state = series.Ongoing
		e.silent = false
		e.count++
		e.last = max(e.last, cut(now))
		e.changes++
		if was == series.Ongoing {
			return "counted " + e.label
		}
		eff.dirty = append(eff.dirty, e.label)
		return eff.String()
	}
	warning := isWarningKey(key)
	if len(o.where(isActive)) >= o.opts.Capacity {
		if e := longestIdle(o.where(isActive, isLone, isWritten)); e != nil {
			o.end(e, series.Unknown, now, &eff)
		} else if e := longestIdle(o.where(isActive, isOngoing)); e != nil {
			o.end(e, series.Unknown, now, &eff)
		} else if e := longestIdle(o.where(isActive, isLone, isNew, isNormal, isNotBusy)); e != nil && warning {
			o.lose(e, DropDisplaced, &eff)
		} else {
			eff.dropped = append(eff.dropped, fmt.Sprintf("%s x1 %s", key, DropTableFull))
			return eff.String()
		}
	}
	e := o.enter(key)
	e.first, e.last, e.notedAt, e.count, e.note, e.instance, e.changes = micros(now), cut(now), now, 1, begins, o.instance(), 1
	eff.dirty = append(eff.dirty, e.label)
	return eff.String()
}

// under returns the key under which an occurrence counts, and the note of a series
// that begins with it.
func (o *oracle) under(tuple, note string, now time.Duration) (key, begins string) {
	if o.distinct == 0 || note == "" {
		return tuple, note
	}
	own, rest := nameWith(tuple, note), nameWith(tuple, "rest")
	isAlive := func(e *told) bool { return now-e.last < o.opts.Window }
	has := func(key string) func(*told) bool { return func(e *told) bool { return e.key == key } }
	distinct := o.where(isActive, func(e *told) bool { return tupleOf(e.key) == tuple && e.key != tuple && e.key != rest && e.key != own })
	switch {
	case len(o.where(isActive, has(own), isAlive)) > 0:
		return own, note
	case len(o.where(isActive, has(rest), isAlive)) > 0, len(distinct) >= o.distinct:
		return rest, series.CombinedPrefix + note
	default:
		return own, note
	}
}

// enter makes an entry.
func (o *oracle) enter(key string) *told {
	n := len(o.where(func(e *told) bool { return e.key == key }))
	e := &told{key: key, label: fmt.Sprintf("%s/%d", key, n+1), warning: isWarningKey(key)}
	e.knows.last = math.MinInt64 // there are times before the beginning
	o.all = append(o.all, e)
	return e
}

func (o *oracle) end(e *told, as series.State, now time.Duration, eff *effectsText) {
	e.closing = true
	o.base(e.key).ended = true
	if e.state == series.Ongoing {
		e.state = as
		e.changes++
	}
	if e.refused != "" && e.writing == nil {
		o.lose(e, e.refused, eff)
		return
	}
	eff.ended = append(eff.ended, e.label)
	if e.name == nil {
		o.takeName(e, now)
	}
	if e.exists {
		o.hold(e, e.at)
	} else {
		o.hold(e, now)
	}
	if o.needs(e) == writeNothing && e.writing == nil {
		e.over = true
		return
	}
	eff.dirty = append(eff.dirty, e.label)
	o.bound(eff)
}

func (o *oracle) bound(eff *effectsText) {
	for len(o.where(isClosing)) > o.opts.Capacity {
		e := longestIdle(o.where(isClosing, isNotBusy, isNormal))
		if e == nil {
			e = longestIdle(o.where(isClosing, isNotBusy, isWarning))
		}
		if e == nil {
			return
		}
		o.lose(e, DropClosingFull, eff)
	}
}

func (o *oracle) lose(e *told, reason DropReason, eff *effectsText) {
	e.over = true
	eff.ended = append(eff.ended, e.label)
	if lost := e.count - e.knows.count; lost > 0 {
		eff.dropped = append(eff.dropped, fmt.Sprintf("%s x%d %s", e.key, lost, reason))
	}
}

// base is what is known of the base name of a key.
func (o *oracle) base(key string) *toldName {
	if o.known[key] == nil {
		o.known[key] = &toldName{}
	}
	return o.known[key]
}

// hold says that an Event of e that was written then has its name for a while.
func (o *oracle) hold(e *told, from time.Duration) {
	if e.names == 0 {
		whose := ownerUnknown
		if e.exists {
			whose = ownerUs
		}
		o.holdFor(e.key, from+o.opts.EventTTL*9/8, whose)
	}
}

func (o *oracle) holdFor(key string, until time.Duration, whose owner) {
	base := o.base(key)
	if !base.taken || until > base.until {
		base.taken, base.until = true, until
	}
	if whose != ownerUnknown {
		base.whose = whose
	}
}

func (o *oracle) takeName(e *told, now time.Duration) {
	if base := o.base(e.key); base.taken && now < base.until || o.has(e, &toldEvent{key: e.key}) {
		o.goAway(e)
		return
	}
	e.name = &naming{}
}

// goAway takes a name that nobody else has.
func (o *oracle) goAway(e *told) {
	before := e.name
	for {
		e.name = &naming{unique: true, first: e.first, n: e.names}
		e.names++
		if before == nil || *before != *e.name {
			return
		}
	}
}

func (o *oracle) needs(e *told) WriteKind {
	switch {
	case e.over:
		return writeNothing
	case e.meeting && e.closeIt:
		return WriteClose
	case e.meeting:
		return WriteLook
	case e.refused != "" && e.beatDue && !e.closing:
		return WriteCreate
	case e.refused != "":
		return writeNothing
	case !e.exists && e.existed:
		return WriteRecreate
	case !e.exists:
		return WriteCreate
	case e.state != e.knows.state && e.state == series.Ongoing:
		return WriteSeries
	case e.state != e.knows.state:
		return WriteFinish
	case e.beatDue:
		return WriteHeartbeat
	case e.knows.changes < e.flushTo:
		return WriteFlush
	case e.sign && e.state == series.Ongoing && e.base == ownerUnknown:
		return WriteLook
	case e.sign && e.state == series.Ongoing:
		return WriteSuccessor
	}
	return writeNothing
}

func (o *oracle) begin(label string, now time.Duration) string {
	e := o.find(label)
	var eff effectsText
	if isActive(e) && isOngoing(e) && now-e.last >= o.opts.Window {
		o.end(e, series.Finished, now, &eff)
	}
	kind := o.needs(e)
	if kind == writeNothing && isClosing(e) {
		o.lose(e, e.refused, &eff)
	}
	if kind == WriteCreate && isRefused(e) && e.count < 2 {
		e.beatDue = false
		e.at = now
		kind = writeNothing
	}
	if kind == writeNothing {
		return join("no write", eff.String())
	}
	if e.name == nil {
		o.takeName(e, now)
	}
	last := max(micros(e.last), e.knows.last, e.first)
	if e.silent {
		last = max(e.knows.last, e.first)
	}
	e.writing = &toldWrite{kind: kind, name: *e.name, state: e.state, count: e.count, changes: e.changes, last: last}
	e.writing.event = toldEvent{
		key: e.key, name: *e.name, state: e.state, count: e.count,
		first: e.first, last: last, note: e.note, now: e.now, instance: e.instance,
	}
	if o.opts.ShareInstances && kind < WriteLook && kind != WriteCreate && kind != WriteRecreate {
		e.writing.before = e.version
	}
	var text string
	switch kind {
	case WriteLook, WriteClose:
		if e.writing.name = e.inTheWay; !e.meeting {
			e.writing.name = naming{}
		}
		text = fmt.Sprintf("%s %s", kind, e.writing.name)
	case WriteSuccessor:
		e.writing.name = naming{}
		text = fmt.Sprintf("successor base -> %s", *e.name)
	default:
		text = fmt.Sprintf("%s %s", kind, o.text(&e.writing.event, true))
	}
	return join(text, eff.String())
}

// text tells of an Event.
func (o *oracle) text(ev *toldEvent, stateFirst bool) string {
	name := ev.name.in(ev.first)
	text := fmt.Sprintf("%s %s x%d", name, ev.state, ev.count)
	if stateFirst {
		text = fmt.Sprintf("%s x%d %s", ev.state, ev.count, name)
	}
	text += fmt.Sprintf(" %s to %s", ev.first, ev.last)
	if ev.note != "" {
		text += fmt.Sprintf(" %q", ev.note)
	}
	if ev.now != "" {
		text += fmt.Sprintf(" now %q", ev.now)
	}
	if o.opts.ShareInstances {
		text += " by " + ev.instance
	}
	return text
}

// cut is when an occurrence was, as far as a table knows.
func cut(d time.Duration) time.Duration { return micros(d) - frac }

// micros cuts a time off as an Event does.
func micros(d time.Duration) time.Duration {
	return start.Add(d).Truncate(time.Microsecond).Sub(start.Truncate(time.Microsecond))
}

// on returns the Event with a name.
func (o *oracle) on(key string, name naming) *toldEvent {
	for _, ev := range o.remote {
		if ev.key == key && ev.name == name {
			return ev
		}
	}
	return nil
}

// do has the server make a write.
func (o *oracle) do(key string, w *toldWrite) answer {
	ev := o.on(key, w.name)
	creates := w.kind == WriteCreate || w.kind == WriteRecreate
	switch {
	case creates && ev != nil:
		return exists
	case creates:
		made := w.event
		if made.count == 1 || made.now == made.note {
			made.now = ""
		}
		o.writes++
		made.version = o.writes
		o.remote = append(o.remote, &made)
		return ok
	case ev == nil:
		return absent
	case w.before != 0 && w.before != ev.version:
		return moved
	}
	was := *ev
	defer func() {
		leads := ev.successor != nil && (was.successor == nil || *was.successor != *ev.successor)
		was.successor = ev.successor
		if *ev != was || leads {
			o.writes++
			ev.version = o.writes
		}
	}()
	switch w.kind {
	case WriteLook:
	case WriteClose:
		ev.state = series.Finished
	case WriteSuccessor:
		to := w.event.name
		ev.successor = &to
	default:
		ev.state, ev.count, ev.last = w.state, w.count, w.event.last
		switch w.event.now {
		case "":
		case w.event.note:
			ev.now = ""
		default:
			ev.now = w.event.now
		}
	}
	return ok
}

func (o *oracle) answer(label string, now time.Duration) string {
	e := o.find(label)
	w := *e.writing
	e.writing = nil
	said := o.do(e.key, &w)
	var eff effectsText
	var text string
	switch {
	case said == exists:
		if !e.over {
			o.hold(e, now)
			e.meeting, e.closeIt, e.inTheWay, e.afterThat, e.unseen = true, false, w.name, nil, 0
		}
		return "taken, again"
	case said == moved:
		text = "changed"
		if !e.over {
			o.lookForChanges(e)
		}
	case said == absent:
		text = "gone"
		if !e.over {
			o.gone(e, &w, &eff)
		}
	case w.kind == WriteLook:
		text = "found"
		if !e.over {
			o.found(e, o.on(e.key, w.name), now, &eff)
		}
	default:
		text = "written"
		if !e.over {
			o.written(e, &w, now)
		}
	}
	if e.over {
		return join(text, eff.String())
	}
	if o.needs(e) != writeNothing {
		text += ", again"
	} else if e.closing {
		if e.refused != "" {
			o.lose(e, e.refused, &eff)
		}
		e.over = true
		return join(text, eff.String())
	}
	o.bound(&eff)
	return join(text, eff.String())
}

func (o *oracle) written(e *told, w *toldWrite, now time.Duration) {
	switch w.kind {
	case WriteClose:
		o.goOn(e)
		return
	case WriteSuccessor:
		e.sign = false
		o.holdFor(e.key, now+o.opts.EventTTL*9/8, ownerUs)
		return
	default:
	}
	e.knows = *w
	e.isAt(o.on(e.key, w.name).version)
	e.exists, e.existed, e.refused, e.at, e.wasFree = true, true, "", now, false
	if e.beatDue {
		e.beats = min(e.beats+1, math.MaxUint16)
		e.beatDue = false
	}
	if w.name.unique && w.state == series.Ongoing && w.kind != WriteFlush {
		o.wantSign(e, now)
	}
	if e.closing {
		o.hold(e, now)
	}
}

// wantSign has the Event under the base name lead to e, unless it is a stranger's.
func (o *oracle) wantSign(e *told, now time.Duration) {
	if base := o.base(e.key); e.base == ownerUnknown && base.taken && now < base.until {
		e.base = base.whose
	}
	e.sign = e.base != ownerOther
}

func (o *oracle) gone(e *told, w *toldWrite, eff *effectsText) {
	switch {
	case w.kind == WriteSuccessor, w.kind == WriteLook && !e.meeting:
		e.sign, e.base = false, ownerUnknown
		o.base(e.key).taken, o.base(e.key).whose = false, ownerUnknown
	case w.kind == WriteLook && e.merges:
		e.meeting, e.merges = false, false
		o.vanished(e, eff)
	case w.kind == WriteLook && w.name == *e.name && !e.wasFree:
		e.meeting, e.wasFree = false, true
	case w.kind == WriteLook, w.kind == WriteClose:
		o.goOn(e)
	default:
		o.vanished(e, eff)
	}
}

func (o *oracle) vanished(e *told, eff *effectsText) {
	if e.silent {
		o.lose(e, "", eff)
		return
	}
	e.exists = false
	e.knows = toldWrite{last: e.knows.last}
}

// goOn leaves the Event that is in the way.
func (o *oracle) goOn(e *told) {
	e.closeIt = false
	if e.afterThat != nil {
		e.inTheWay, e.afterThat, e.unseen = *e.afterThat, nil, 0
		return
	}
	e.meeting = false
	o.goAway(e)
}

// frac is what the times of Events lack.
var frac = start.Sub(start.Truncate(time.Microsecond))

// alive and possible say what is thought of an Event with a name of the key.
func (o *oracle) possible(ev *toldEvent, now time.Duration) bool {
	return ev.strange == "" && ev.first-now-frac <= time.Minute && ev.last-now-frac <= time.Minute
}

func (o *oracle) alive(ev *toldEvent, now time.Duration) bool {
	return ev.state == series.Singleton && now+frac-ev.first < o.opts.Window ||
		ev.state == series.Ongoing && now+frac-ev.last < o.opts.Window+o.opts.Heartbeat
}

// isMadeBy says that e has made ev itself.
func isMadeBy(e *told, ev *toldEvent) bool {
	return ev.strange == "" && ev.first == e.first && ev.instance == e.instance && ev.count <= e.count
}

func (o *oracle) found(e *told, ev *toldEvent, now time.Duration, eff *effectsText) {
	mine := isMadeBy(e, ev)
	possible := mine || o.possible(ev, now)
	if !ev.name.unique {
		e.base = ownerOther
		if possible {
			e.base = ownerUs
		}
		if base := o.base(e.key); base.taken {
			base.whose = e.base
		}
	}
	if e.merges {
		e.merges = false
		if ev.strange == "" && ev.first == e.first && ev.instance == e.instance {
			o.merge(e, ev, now, eff)
			return
		}
		e.exists = false
		e.knows = toldWrite{last: e.knows.last, state: e.knows.state}
	}
	switch {
	case !e.meeting:
		e.sign = possible
	case mine:
		o.adopt(e, ev, false, now)
	case !possible:
		e.afterThat = nil
		o.goOn(e)
	case o.alive(ev, now) && o.has(e, ev):
		e.afterThat = nil
		o.goOn(e)
	case o.alive(ev, now):
		o.adopt(e, ev, true, now)
	default:
		if ev.successor != nil && ev.successor.unique && !ev.name.unique {
			next := *ev.successor
			e.afterThat = &next
		}
		if ev.state == series.Ongoing && !o.has(e, ev) {
			e.closeIt = true
			return
		}
		o.goOn(e)
	}
}

// isAt says which version the Event has.
func (e *told) isAt(version int) {
	if e.version != version {
		e.version, e.tried = version, nil
	}
}

// lookForChanges has e look at its own Event.
func (o *oracle) lookForChanges(e *told) {
	e.meeting, e.merges, e.closeIt, e.inTheWay, e.afterThat, e.unseen = true, true, false, *e.name, nil, 0
}

// merge adds what others have written to what e has.
func (o *oracle) merge(e *told, ev *toldEvent, now time.Duration, eff *effectsText) {
	theirs := max(ev.count-e.knows.count, 0)
	if slices.ContainsFunc(e.tried, func(w toldWrite) bool { return w.count == ev.count && w.event.last == ev.last }) {
		theirs = 0
	}
	e.count += theirs
	if theirs > 0 && e.closing && e.state == series.Finished && ev.state == series.Ongoing {
		e.state = series.Ongoing
	}
	e.changes++
	e.meeting = false
	e.flushTo = e.changes
	e.isAt(ev.version)
	e.knows = toldWrite{state: ev.state, count: ev.count, last: max(e.knows.last, ev.last)}
	if ev.count >= e.count && ev.state == e.state {
		e.knows.changes = e.changes
	}
	if !e.closing && (ev.state == series.Finished || ev.state == series.Unknown) {
		o.end(e, ev.state, now, eff)
	}
}

// has reports whether another entry than e has ev.
func (o *oracle) has(e *told, ev *toldEvent) bool {
	others := o.where(isTracked, func(other *told) bool {
		return other != e && other.key == ev.key && other.name != nil && *other.name == ev.name
	})
	return len(others) > 0
}

func (o *oracle) adopt(e *told, ev *toldEvent, others bool, now time.Duration) {
	if others {
		e.count += ev.count
		if e.state == series.Singleton {
			e.state = series.Ongoing
			if e.closing {
				e.state = series.Finished
			}
		}
		if e.now == "" {
			e.now = e.note
		}
		e.note = ev.note
	}
	e.first, e.instance = ev.first, ev.instance
	e.isAt(ev.version)
	e.changes++
	e.meeting, e.closeIt, e.refused, e.wasFree = false, false, "", false
	name := ev.name
	e.name = &name
	e.exists, e.existed, e.at = true, true, now
	names := e.names
	e.names = 0
	if name.unique {
		e.names = max(1, names)
		o.wantSign(e, now)
	}
	e.knows = toldWrite{state: ev.state, count: ev.count, last: ev.last}
	if !others && e.state == ev.state && e.count == ev.count {
		e.knows.changes = e.changes
	} else {
		e.flushTo = e.changes
	}
}

func (o *oracle) lost(label string, now time.Duration) string {
	e := o.find(label)
	o.do(e.key, e.writing)
	return strings.Replace(o.failed(label), "failed", "lost", 1)
}

func (o *oracle) failed(label string) string {
	e := o.find(label)
	if e.writing.before != 0 && !e.over {
		e.tried = append(e.tried, *e.writing)
		o.lookForChanges(e)
	}
	e.writing = nil
	var eff effectsText
	o.bound(&eff)
	return join("failed", eff.String())
}

func (o *oracle) refuse(label string, reason DropReason, now time.Duration) string {
	e := o.find(label)
	w := *e.writing
	e.writing = nil
	var eff effectsText
	cannotMerge := w.kind == WriteLook && e.merges && e.unseen == 2
	switch {
	case e.over:
	case w.kind >= WriteLook && !cannotMerge:
		shy := w.kind == WriteLook && e.meeting
		if shy {
			e.unseen++
			shy = e.unseen < 3
		}
		if w.kind == WriteLook && !w.name.unique && !shy {
			e.base = ownerOther
			if base := o.base(e.key); base.taken {
				base.whose = ownerOther
			}
		}
		switch {
		case shy:
		case e.meeting:
			o.goOn(e)
		default:
			e.sign = false
		}
		text := "refused"
		if o.needs(e) != writeNothing {
			text += ", again"
		} else if e.closing {
			if e.refused != "" {
				o.lose(e, e.refused, &eff)
			}
			e.over = true
			return join(text, eff.String())
		}
		o.bound(&eff)
		return join(text, eff.String())
	case e.closing:
		o.lose(e, reason, &eff)
	default:
		if lost := e.count - e.knows.count; lost > 0 {
			eff.dropped = append(eff.dropped, fmt.Sprintf("%s x%d %s", e.key, lost, reason))
		}
		e.refused, e.at, e.meeting, e.merges = reason, now, false, false
		e.state, e.count = series.Ongoing, 0
		if e.existed {
			o.hold(e, now)
			o.goAway(e)
		}
		e.exists, e.existed = false, false
		e.knows = toldWrite{changes: e.changes, last: e.knows.last}
		if e.beatDue {
			e.beats = min(e.beats+1, math.MaxUint16)
			e.beatDue = false
		}
	}
	return join("refused", eff.String())
}

func (o *oracle) expire(label string, now time.Duration) string {
	e := o.find(label)
	var eff effectsText
	if isActive(e) && now-e.last >= o.opts.Window {
		o.end(e, series.Finished, now, &eff)
	}
	return eff.String()
}

func (o *oracle) beat(label string) string {
	e := o.find(label)
	if !isActive(e) || !isOngoing(e) {
		return ""
	}
	e.beatDue = true
	return "dirty " + label
}

func (o *oracle) flush() string {
	clear(o.asked)
	var labels []string
	for _, e := range o.where(isTracked) {
		if (isWelcome(e) || e.writing != nil) && e.knows.changes < e.changes {
			e.flushTo = e.changes
			o.asked[e] = e.changes
			labels = append(labels, e.label)
		}
	}
	slices.Sort(labels)
	return join("pending", labels...)
}

func (o *oracle) settled() string {
	var open []string
	for e, changes := range o.asked {
		if !e.over && e.knows.changes < changes {
			open = append(open, e.label)
		}
	}
	if len(open) == 0 {
		return "all settled"
	}
	slices.Sort(open)
	return join("open", open...)
}

func (o *oracle) seal(reason DropReason) string {
	o.sealed = reason
	return "sealed"
}

func (o *oracle) clear(reason DropReason) string {
	eff := effectsText{sorted: true}
	for _, e := range o.where(isTracked) {
		o.lose(e, cmp.Or(e.refused, reason), &eff)
	}
	return eff.String()
}

func (o *oracle) status(label string, now time.Duration) string {
	e := o.find(label)
	if !isActive(e) {
		return "none"
	}
	written := notWritten
	if e.exists || e.refused != "" {
		written = e.at
	}
	waits := o.needs(e) != writeNothing && o.needs(e) != WriteSuccessor && (o.needs(e) != WriteLook || e.meeting)
	return statusText(e.state, e.last, written, e.beats, waits)
}

func (o *oracle) size() string {
	return fmt.Sprintf("%d active, %d closing", len(o.where(isActive)), len(o.where(isClosing)))
}

func (o *oracle) stand(key string, at standText) {
	o.writes++
	o.remote = append(o.remote, &toldEvent{
		version: o.writes,
		key:     key, name: at.name, state: at.state, count: at.count, first: micros(at.first), last: micros(at.last),
		note: "before", instance: "controller-0", successor: at.successor,
	})
	o.listed = nil
}

func (o *oracle) strange(key string, name naming, what strangeness, _ time.Duration) {
	o.writes++
	o.remote = append(o.remote, &toldEvent{key: key, name: name, strange: what, version: o.writes})
	o.listed = nil
}

func (o *oracle) meddle(key string, name naming, n int, state series.State, now time.Duration) string {
	ev := o.on(key, name)
	if ev == nil || ev.strange != "" {
		return "nothing there"
	}
	o.writes++
	ev.version = o.writes
	ev.count += n
	ev.state = state
	ev.last = max(ev.last, micros(now), ev.first)
	o.listed = nil
	return "changed"
}

func (o *oracle) delete(key string, name naming) string {
	before := len(o.remote)
	o.remote = slices.DeleteFunc(o.remote, func(ev *toldEvent) bool { return ev.key == key && ev.name == name })
	if len(o.remote) == before {
		return "nothing there"
	}
	return "deleted"
}

func (o *oracle) vanish(label string) {
	e := o.find(label)
	o.delete(e.key, e.writing.name)
}

func (o *oracle) sorted() []toldEvent {
	var all []toldEvent
	for _, ev := range o.remote {
		all = append(all, *ev)
	}
	slices.SortFunc(all, func(a, b toldEvent) int {
		return cmp.Or(strings.Compare(a.key, b.key), compareNames(a.name, b.name))
	})
	return all
}

func (o *oracle) server(key string) string {
	var events []string
	for _, ev := range o.sorted() {
		switch {
		case ev.key != key:
			continue
		case ev.strange != "":
			events = append(events, fmt.Sprintf("%s %s", ev.name, ev.strange))
			continue
		}
		text := o.text(&ev, false)
		if ev.successor != nil {
			text += " -> " + ev.successor.String()
		}
		events = append(events, text)
	}
	if len(events) == 0 {
		return "nothing"
	}
	return strings.Join(events, " | ")
}

func (o *oracle) list() string {
	o.listed = o.sorted()
	return fmt.Sprintf("%d events", len(o.listed))
}

func (o *oracle) restore(spread float64, now time.Duration) string {
	var all []string
	for i := range o.listed {
		ev := &o.listed[i]
		now := now + time.Duration(i)*time.Microsecond
		if text := o.restoreOne(ev, spread, now); text != "" {
			all = append(all, fmt.Sprintf("%s is %s", ev.name, text))
		}
	}
	return strings.Join(all, " | ")
}

// restoreOne returns the label of the entry that ev is now, and what follows.
func (o *oracle) restoreOne(ev *toldEvent, spread float64, now time.Duration) string {
	alive := o.alive(ev, now)
	if !o.possible(ev, now) || !alive && ev.state != series.Ongoing || o.sealed != "" || o.base(ev.key).ended {
		return ""
	}
	var is *told
	for _, e := range o.where(isActive, func(e *told) bool { return e.key == ev.key }) {
		is = e
	}
	if o.has(is, ev) {
		return ""
	}
	var eff effectsText
	switch {
	case !alive:
		if is != nil && (is.name == nil && !ev.name.unique || is.name != nil && *is.name == ev.name) {
			return ""
		}
		if is != nil && is.meeting && (is.inTheWay == ev.name || is.afterThat != nil && *is.afterThat == ev.name) {
			return ""
		}
		if len(o.where(isClosing)) >= o.opts.Capacity {
			return ""
		}
	case is != nil:
		if is.existed || is.writing != nil || is.meeting || isRefused(is) || is.name != nil && *is.name != ev.name {
			return ""
		}
		o.adopt(is, ev, !isMadeBy(is, ev), now)
		eff.dirty = append(eff.dirty, is.label)
		return join(is.label, eff.String())
	case len(o.where(isActive)) >= o.opts.Capacity:
		return ""
	}
	e := o.enter(ev.key)
	e.silent, e.state, e.count, e.note, e.now, e.notedAt = true, ev.state, ev.count, ev.note, ev.now, now-o.opts.NoteInterval
	o.adopt(e, ev, false, now)
	e.sign = false
	age := now + frac - ev.last
	switch {
	case !alive:
		e.closing, e.state, e.last = true, series.Finished, cut(now-age)
		e.changes++
		o.hold(e, now)
		eff.dirty = append(eff.dirty, e.label)
	case ev.state == series.Singleton:
		e.last, e.at = cut(now-age), now-age
	default:
		e.last, e.beats = cut(now), math.MaxUint16
		left := min(o.opts.Heartbeat, o.opts.Heartbeat+o.opts.Window-age)
		e.at = now + left - time.Duration(spread*float64(left)) - o.opts.Heartbeat
	}
	return join(e.label, eff.String())
}

func (o *oracle) kill(time.Duration) string {
	for _, e := range o.all {
		e.over = true
	}
	o.known, o.sealed, o.listed = map[string]*toldName{}, "", nil
	clear(o.asked)
	o.lives++
	return "another process"
}

var (
	oracleSeed  = flag.Uint64("oracle.seed", 0, "the one history to compare with the oracle; 0: many")
	oracleSeeds = flag.Int("oracle.seeds", 30, "how many histories to compare with the oracle")
	oracleSteps = flag.Int("oracle.steps", 1000, "how long they are")
)

// TestOracle takes a table and the oracle through the same random histories.
// A failure names its seed; -oracle.seed goes through that history again.
func TestOracle(t *testing.T) {
	manyHistories(t, false)
}

// TestForgetful is TestOracle without the oracle, for tables that soon forget which
// names are taken: they make more requests, and lose and double nothing either.
func TestForgetful(t *testing.T) {
	manyHistories(t, true)
}

func manyHistories(t *testing.T, forgetful bool) {
	if *oracleSeed != 0 {
		compareWithOracle(t, *oracleSeed, *oracleSteps, forgetful)
		return
	}
	for seed := range uint64(*oracleSeeds) {
		if compareWithOracle(t, seed+1, *oracleSteps, forgetful); t.Failed() {
			return
		}
	}
}

func compareWithOracle(t *testing.T, seed uint64, steps int, forgetful bool) {
	rng := rand.New(rand.NewPCG(seed, 0))
	opts := Options{
		Capacity:     1 + rng.IntN(5),
		Window:       6 * time.Minute,
		NoteInterval: 10 * time.Second,
		EventTTL:     []time.Duration{20 * time.Minute, time.Hour}[rng.IntN(2)],
	}
	opts.ShareInstances = rng.IntN(2) == 0
	// Where there is room for all, series live long and are written often.
	roomy := rng.IntN(3) == 0
	if roomy {
		opts.Capacity = 20
	}
	w, o := newWorld(t, opts), newOracle(opts)
	if rng.IntN(3) == 0 {
		w.distinct = 1 + rng.IntN(3)
		o.distinct = w.distinct
	}
	if forgetful {
		w.forgetful = true
		w.begun(start)
	}
	keys := strings.Split("a b c d A B C D", " ")[:3+rng.IntN(6)]
	if roomy {
		keys = keys[:2]
	}
	now := time.Duration(0)
	// In a calm history more entries live long enough to be written.
	slowServer := rng.IntN(2) == 0

	var history []string
	both := func(what string, step func(machine) string) {
		got := step(w)
		want := got
		if !forgetful {
			want = step(o)
		}
		if got != want || !strings.HasPrefix(what, "status ") {
			history = append(history, fmt.Sprintf("%s %s -> %s", now, what, got))
		}
		if got != want {
			t.Errorf("%s -> %q, the oracle says %q", what, got, want)
		}
	}
	someEntry := func() string { return w.order[rng.IntN(len(w.order))] }
	some := func(entries map[*Entry]bool) string {
		labels := make([]string, 0, len(entries))
		for e := range entries {
			labels = append(labels, w.labels[e])
		}
		if len(labels) == 0 {
			return ""
		}
		slices.Sort(labels) // maps have no order, and a seed is to mean one history
		return labels[rng.IntN(len(labels))]
	}

	// put has something stand under the names of a key that nobody has made here.
	put := func(key string) {
		some := func(of ...naming) naming { return of[rng.IntN(len(of))] }
		age := []time.Duration{time.Minute, 6 * time.Minute, 40 * time.Minute, 2 * time.Hour}[rng.IntN(4)]
		first := now + time.Minute/2 - time.Duration(rng.Int64N(int64(age)))
		unique := naming{unique: true, first: micros(first)}
		for _, name := range []naming{unique, {}} {
			k, _ := w.key(key)
			if _, stands := w.remote.events[name.of(k)]; stands || rng.IntN(2) == 0 {
				continue
			}
			if rng.IntN(4) == 0 {
				what := strangenesses[rng.IntN(len(strangenesses))]
				both(fmt.Sprintf("strange %s %s %s", key, name, what), func(m machine) string {
					m.strange(key, name, what, now)
					return m.server(key)
				})
				continue
			}
			at := standText{name: name, state: []series.State{series.Singleton, series.Ongoing, series.Ongoing, series.Finished, series.Unknown}[rng.IntN(5)], count: 1, first: first, last: first}
			if !name.unique && rng.IntN(2) == 0 {
				at.first -= time.Duration(rng.Int64N(int64(20 * time.Minute)))
				at.last = at.first
				if rng.IntN(2) == 0 {
					next := some(unique, unique, unique, naming{unique: true, first: micros(first - 1e6)}, naming{})
					at.successor = &next
				}
			}
			if at.state != series.Singleton {
				at.count = 2 + rng.IntN(10)
				at.last += time.Duration(rng.Int64N(int64(now-at.first) + int64(2*time.Minute)))
			}
			both(fmt.Sprintf("stand %s %s", key, name), func(m machine) string {
				m.stand(key, at)
				return m.server(key)
			})
		}
	}

	restoreAt := 0 // how many steps from here
	for range steps {
		// The microsecond keeps two occurrences from having the same time, for
		// which no order is promised.
		now += time.Microsecond + time.Duration(rng.Int64N(int64(20*time.Second)))
		switch rng.IntN(60) {
		case 0:
			now += opts.Window
		case 1:
			now -= time.Duration(rng.Int64N(int64(10 * time.Minute)))
		case 2:
			now += time.Duration(rng.Int64N(int64(time.Hour)))
		}

		pick := rng.IntN(100)
		if roomy && pick < 15 {
			pick = 95 // flush
		}
		switch {
		case pick < 40 || len(w.order) == 0:
			key := keys[rng.IntN(len(keys))]
			note := []string{"", "one", "two", "three"}[rng.IntN(4)]
			both("see "+key+" "+note, func(m machine) string { return m.see(key, note, now) })
		case pick < 60:
			idle := map[*Entry]bool{}
			for e := range w.queued {
				if _, inFlight := w.inFlight[e]; !inFlight {
					idle[e] = true
				}
			}
			label := some(idle)
			if rng.IntN(10) == 0 { // one that does not wait for a write
				label = someEntry()
			}
			if _, inFlight := w.inFlight[w.entries[label]]; label != "" && !inFlight {
				both("begin "+label, func(m machine) string { return m.begin(label, now) })
			}
		case pick < 80:
			busy := map[*Entry]bool{}
			for e := range w.inFlight {
				busy[e] = true
			}
			label := some(busy)
			if label == "" || slowServer && rng.IntN(3) > 0 {
				break
			}
			write := w.inFlight[w.entries[label]]
			switch outcome := rng.IntN(20); {
			case write.Kind == WriteLook && outcome >= 12:
				both("refuse "+label, func(m machine) string { return m.refuse(label, "Malformed", now) })
			case outcome < 2:
				both("vanish "+label, func(m machine) string { m.vanish(label); return "" })
				both("answer "+label, func(m machine) string { return m.answer(label, now) })
			case outcome < 4:
				both("lost "+label+" "+write.Kind.String(), func(m machine) string { return m.lost(label, now) })
			case outcome < 6:
				both("failed "+label, func(m machine) string { return m.failed(label) })
			case outcome == 6:
				both("refuse "+label, func(m machine) string { return m.refuse(label, "Malformed", now) })
			default:
				both("answer "+label, func(m machine) string { return m.answer(label, now) })
			}
		case pick < 88:
			label := someEntry()
			both("expire "+label, func(m machine) string { return m.expire(label, now) })
		case pick < 94:
			label := someEntry()
			both("beat "+label, func(m machine) string { return m.beat(label) })
		case pick < 96:
			both("flush", machine.flush)
		case pick < 98:
			both("settled", machine.settled)
		case pick == 98 && rng.IntN(20) == 0:
			// Whoever clears does not write any more.
			both("clear", func(m machine) string { return m.clear("Shutdown") })
			both("kill", func(m machine) string { return m.kill(now) })
		case pick == 98:
			both("list", machine.list)
		case pick == 99 && rng.IntN(2) == 0:
			both("kill", func(m machine) string { return m.kill(now) })
			// What is not known to the new process can be anything.
			for _, key := range keys {
				put(key)
			}
			if rng.IntN(3) > 0 {
				both("list", machine.list)
				restoreAt = 1 + rng.IntN(40)
			}
		case pick == 99 && rng.IntN(4) < 2:
			if all := w.all(""); len(all) > 0 {
				at := all[rng.IntN(len(all))]
				both(fmt.Sprintf("delete %s %s", at.key, at.name), func(m machine) string { return m.delete(at.key, at.name) })
			}
		case pick == 99:
			restoreAt = 1
		}
		// Other processes write as well, where instances share their series. What they
		// write between a lost answer and the next look cannot be told from one's own.
		if all := w.all(""); opts.ShareInstances && len(all) > 0 && rng.IntN(15) == 0 {
			at := all[rng.IntN(len(all))]
			if at.ev.tender == nil || !w.unsure[at.ev.tender] {
				n, state := 1+rng.IntN(5), []series.State{series.Ongoing, series.Ongoing, series.Ongoing, series.Finished}[rng.IntN(4)]
				both(fmt.Sprintf("meddle %s %s x%d %s", at.key, at.name, n, state), func(m machine) string {
					return m.meddle(at.key, at.name, n, state, now)
				})
			}
		}
		if restoreAt--; restoreAt == 0 {
			spread := rng.Float64()
			now += time.Millisecond // something may have occurred in this step
			if forgetful {
				// It would not know what has ended since the list was made.
				both("list", machine.list)
			}
			both("restore", func(m machine) string { return m.restore(spread, now) })
		}

		both("size", machine.size)
		if rng.IntN(10) == 0 {
			key := keys[rng.IntN(len(keys))]
			both("server "+key, func(m machine) string { return m.server(key) })
		}
		for _, e := range o.where(isTracked) {
			both("status "+e.label, func(m machine) string { return m.status(e.label, now) })
		}
		w.check()
		if t.Failed() {
			tail := history[max(0, len(history)-60):]
			t.Fatalf("seed %d, %+v, after\n%s", seed, opts, strings.Join(tail, "\n"))
		}
	}
}
