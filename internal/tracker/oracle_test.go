package tracker

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/eventseries/eventseries/heartbeat"
	"github.com/eventseries/eventseries/series"
)

// oracle implements the rules of a tracker a second time, as plainly as possible:
// one slice of all entries that there ever were, searched from end to end each
// time. It has no locks, no lists and no hashes, and its times are those of the
// test. It learns of the server what the tracker learns.
type oracle struct {
	opts     Options
	all      []*told
	born     int                   // how many entries the processes before had
	entries  map[string]int        // how many of a key there were
	bases    map[string]*tombstone // of keys; TestTombstones checks them
	sealed   DropReason
	distinct int // how many notes of a tuple have series of their own
	// marked is that of the tracker.
	marked func(last, atLeast time.Duration) time.Duration
	// epoch is that of the tracker: a period of Options.MaxWindow begins then.
	epoch func() time.Duration

	waitedFor map[*told]int // what the latest flush waits for
	lives     int
	dropped   []string
}

// told is an entry.
type told struct {
	key     string
	label   string
	warning bool
	life    life
	phase   phase
	busy    bool // in flight
	waits   bool // for a time
	gaps    []gap
	resumed resumption
	early   int           // how often the window was too short
	until   time.Duration // gaps are remembered as if they were at this time
	said    time.Duration // the window that the Event says
	theirs  time.Duration // the latest occurrence in another process; zero: none

	// What the Event should say.
	state    series.State
	first    time.Duration // as an Event has it
	last     time.Duration
	count    int
	note     string
	now      string
	notedAt  time.Duration
	instance string
	changes  int
	silent   bool // restored, and has not occurred since

	// What the server knows.
	existed bool
	version uint64
	knows   toldWrite
	knew    int           // the count when the Event vanished
	at      time.Duration // when it accepted or refused the latest write
	beatAt  time.Duration
	refusal DropReason

	// What is to be done.
	name       *naming
	names      int
	beats      int
	beatDue    bool
	beatNext   bool // a heartbeat is due with the next occurrence
	flush      bool
	signpost   bool
	base       owner
	writing    *toldWrite
	tried      []toldWrite // those whose outcome is unknown
	failures   int
	retry      time.Duration // not before
	denied     bool          // its latest request was denied
	encouraged bool          // the same, and another one has passed since

	// The claim.
	step     Kind
	inTheWay naming
	next     *naming
	unseen   int // how often the server did not show the Event
}

// gap is a time between two occurrences.
type gap struct{ window, at time.Duration }

// resumption is what another process has said about the rhythm: a window until the next
// occurrence, and one for as long as that is.
type resumption struct{ at, first, window time.Duration }

// toldWrite is a request, or what the server knows after it.
type toldWrite struct {
	kind    Kind
	name    naming
	state   series.State
	count   int
	changes int
	last    time.Duration
	at      time.Duration // when it was sent
	version uint64        // that the Event must have, if any
	window  time.Duration
}

// toldEvent is an Event that the server has returned.
type toldEvent struct {
	series.Series // what it says, if it says something
	name          naming
	strange       strangeness
	count         int
	first, last   time.Duration
	successor     *naming
	version       uint64
}

const (
	always = time.Duration(math.MinInt64)
	tenth  = 100 * time.Millisecond // the precision of notedAt
)

func newOracle(opts Options) *oracle {
	return &oracle{opts: opts.WithDefaults(), entries: map[string]int{}, bases: map[string]*tombstone{}, waitedFor: map[*told]int{}}
}

// instance is the reportingInstance of this process.
func (o *oracle) instance() string {
	if o.opts.Scope == SameController {
		return fmt.Sprintf("controller-%d", o.lives)
	}
	return "controller-0"
}

func (o *oracle) find(label string) *told {
	return o.all[slices.IndexFunc(o.all, func(e *told) bool { return e.label == label })]
}

// where returns the entries for which all of the conditions hold.
func (o *oracle) where(is ...func(*told) bool) []*told {
	var found []*told
	for _, e := range o.all[o.born:] {
		if !slices.ContainsFunc(is, func(f func(*told) bool) bool { return !f(e) }) {
			found = append(found, e)
		}
	}
	return found
}

func isAccepting(e *told) bool { return e.life < closing } // also if it rests
func isResting(e *told) bool   { return e.life == resting }
func isClosing(e *told) bool   { return e.life == closing }
func isTracked(e *told) bool   { return e.life != forgotten }
func isLone(e *told) bool      { return e.state == series.Singleton }
func isOngoing(e *told) bool   { return e.state == series.Ongoing }
func isOnServer(e *told) bool  { return e.phase == live || e.phase == conflicted }
func isNew(e *told) bool       { return !isOnServer(e) && !e.busy }
func isIdle(e *told) bool      { return !e.busy }
func isNormal(e *told) bool    { return !e.warning }
func isWarning(e *told) bool   { return e.warning }

func has(key string) func(*told) bool { return func(e *told) bool { return e.key == key } }

// longestIdle returns nil if there are no entries.
func longestIdle(entries []*told) *told {
	if len(entries) == 0 {
		return nil
	}
	return slices.MinFunc(entries, func(a, b *told) int { return cmp.Compare(a.last, b.last) })
}

func (o *oracle) places() []spot {
	var all []spot
	for _, e := range o.all[o.born:] {
		all = append(all, spot{e.label, e.life, e.state, e.phase, o.needs(e)})
	}
	return all
}

func (o *oracle) losses() []string {
	dropped := o.dropped
	o.dropped = nil
	return dropped
}

func (o *oracle) drop(key string, n int, reason DropReason) {
	if n > 0 {
		o.dropped = append(o.dropped, fmt.Sprintf("%s x%d %s", key, n, reason))
	}
}

func (o *oracle) accepting() string {
	return fmt.Sprintf("%d accepting, %d closing", len(o.where(isAccepting)), len(o.where(isClosing)))
}

func (o *oracle) see(key, note string, now time.Duration) string {
	if o.sealed != "" {
		o.drop(nameWith(key, ""), 1, o.sealed)
		return ""
	}
	tuple := key
	key, begins := o.under(tuple, note, now)
	for _, e := range o.where(isAccepting, has(key)) {
		if o.isOver(e, now) {
			o.end(e, series.Finished, now)
			continue
		}
		// A series of the own note that is over, and has not ended, is found first.
		isFound := key == tuple || len(o.where(isAccepting, has(nameWith(tuple, note)), func(own *told) bool { return own != e })) == 0
		return o.occur(e, note, isFound, now)
	}
	if len(o.where(isAccepting)) >= o.opts.Capacity && !o.makeRoom(isWarningKey(key), now) {
		o.drop(key, 1, DropTableFull)
		return ""
	}
	evicted := o.where(isClosing, has(key), func(e *told) bool { return !e.silent && !o.isOver(e, now) })
	if len(evicted) > 0 {
		e := slices.MaxFunc(evicted, func(a, b *told) int { return cmp.Compare(a.last, b.last) })
		return o.occur(e, note, false, now)
	}
	e := o.enter(key)
	e.first, e.last, e.notedAt, e.count, e.note, e.instance, e.changes = micros(now), cut(now), now, 1, begins, o.instance(), 1
	o.schedule(e, now)
	return ""
}

// occur continues a series, which the hot path has found or not.
func (o *oracle) occur(e *told, note string, isFound bool, now time.Duration) string {
	isNews, distance := e.life != accepting || e.state != series.Ongoing, now-e.last
	isFirst := e.silent && isOngoing(e) && e.life == accepting
	isFast := isFound && !isNews && !isFirst && (!e.beatNext || e.beatDue) && distance < min(o.opts.FinishAfter, o.slow())
	tenths := func(at time.Duration) time.Duration { return (at - o.epoch()).Truncate(tenth) }
	if !isFast || tenths(now)-tenths(e.notedAt) >= noteInterval {
		if note != "" && (note != e.note || e.now != "") {
			e.now = note
		}
		if note != "" || isFast {
			e.notedAt = now
		}
	}
	if !isFast {
		o.learn(e, distance, now)
	}
	if isFirst {
		isNews = true
		e.flush = e.flush || o.opts.Scope == SameController
		o.resume(e, now+frac-e.knows.last, max(e.last, cut(now)))
	}
	if e.life == resting && len(e.tried) > 0 {
		e.flush = true
	}
	e.state, e.life, e.silent = series.Ongoing, accepting, false
	e.count++
	e.changes++
	e.last = max(e.last, cut(now))
	if !isFast && e.beatNext {
		e.beatDue, isNews = true, true
	}
	if isFast {
		return "counted " + e.label
	}
	if isNews {
		o.schedule(e, now)
	}
	return ""
}

// slow is the shortest gap that can change a window.
func (o *oracle) slow() time.Duration {
	if o.opts.MaxWindow <= o.opts.FinishAfter {
		return math.MaxInt64
	}
	return o.opts.FinishAfter / 21 * 10
}

// learn remembers a gap before now. If the window was too short twice, the gaps are
// remembered for 40 periods more.
func (o *oracle) learn(e *told, before, now time.Duration) {
	if before < o.slow() {
		return
	}
	isEarly := before >= o.rhythmAt(e, now-before)
	if o.period(now)-o.period(e.until) >= 40 {
		e.early = 0
	}
	before = min(before, o.opts.MaxWindow)
	e.until = max(e.until, now)
	e.gaps = append(e.gaps, gap{2*before + before/10, e.until})
	if !isEarly {
		return
	}
	if e.early++; e.early > 1 {
		window := o.rhythmAt(e, e.until)
		e.until = now + 40*o.opts.MaxWindow
		e.gaps = []gap{{window, e.until}}
	}
}

// period returns the number of the period of a time.
func (o *oracle) period(at time.Duration) int64 {
	return int64(math.Floor(float64(at-o.epoch()) / float64(o.opts.MaxWindow)))
}

// resume continues what another process has written. Its latest occurrence was age before
// the first one of this process, which was at last.
func (o *oracle) resume(e *told, age, last time.Duration) {
	o.learn(e, min(age, e.said/21*10), last)
	first := time.Duration(0)
	if age <= e.said {
		first = age*2 + age/10
	}
	o.assume(e, e.said, first, last)
}

func (o *oracle) assume(e *told, window, first, last time.Duration) {
	window, first = min(window, o.opts.MaxWindow), min(max(window, first), o.opts.MaxWindow)
	if first > o.opts.FinishAfter {
		e.resumed = resumption{last, first, window}
	}
}

// window returns for how long e can be quiet.
func (o *oracle) window(e *told) time.Duration {
	window := o.rhythm(e)
	if e.last <= e.resumed.at {
		window = max(window, e.resumed.first)
	}
	if e.last-e.resumed.at < e.resumed.window {
		window = max(window, e.resumed.window)
	}
	return window
}

// rhythm returns the window that follows from the gaps in the period of the latest
// occurrence, and in the period before.
func (o *oracle) rhythm(e *told) time.Duration { return o.rhythmAt(e, e.last) }

func (o *oracle) rhythmAt(e *told, last time.Duration) time.Duration {
	longest, unit := o.opts.FinishAfter, max(o.opts.MaxWindow/(1<<15), 1)
	if second := time.Second; o.opts.MaxWindow >= time.Minute {
		unit = (unit + second - 1) / second * second
	}
	for _, g := range e.gaps {
		if o.opts.MaxWindow > o.opts.FinishAfter && o.period(g.at) >= o.period(last)-1 {
			longest = max(longest, (g.window+unit-1)/unit*unit)
		}
	}
	return min(longest, o.opts.MaxWindow)
}

func (o *oracle) isQuiet(e *told, now time.Duration) bool {
	return e.life == accepting && now-e.last >= o.window(e)
}

// isOver reports whether an occurrence begins another series.
func (o *oracle) isOver(e *told, now time.Duration) bool {
	return now-e.last >= o.opts.MaxWindow || e.phase == refused && o.isQuiet(e, now)
}

// makeRoom ends an entry: one that is due to end, or, in this order, a written
// singleton, a series, or an unwritten singleton. A Normal ends no Warning.
func (o *oracle) makeRoom(forWarning bool, now time.Duration) bool {
	full := len(o.where(isClosing, isIdle)) >= o.opts.Capacity && len(o.where(isClosing, isIdle, isNormal)) == 0
	isDone := func(e *told) bool { return o.needs(e) == none }
	for i, class := range [][]func(*told) bool{
		{isResting, isDone}, {isResting, isNormal}, {isResting, isWarning},
		{isLone, isOnServer, isNormal}, {isLone, isOnServer, isWarning},
		{isLone, isNew, isNormal}, {isLone, isNew, isWarning}, {isOngoing, isNormal}, {isOngoing, isWarning},
	} {
		if i == 1 || i == 2 {
			class = append(class, func(e *told) bool { return !isDone(e) })
		} else if i > 2 {
			class = append(class, func(e *told) bool { return !isResting(e) })
		}
		e := longestIdle(o.where(append(class, isAccepting)...))
		if e != nil && (isResting(e) || o.isQuiet(e, now)) && (i == 0 || forWarning || !full || !e.warning) {
			o.end(e, series.Finished, now)
			return true
		}
	}
	classes := [][]func(*told) bool{{isLone, isOnServer, isNormal}, {isOngoing, isNormal}}
	if forWarning {
		classes = [][]func(*told) bool{
			{isLone, isOnServer, isNormal}, {isLone, isOnServer, isWarning},
			{isOngoing, isNormal}, {isLone, isNew, isNormal}, {isOngoing, isWarning},
		}
	}
	for _, class := range classes {
		switch e := longestIdle(o.where(append(class, isAccepting)...)); {
		case e == nil:
			continue
		case e.phase == unwritten && isLone(e):
			o.lose(e, DropDisplaced)
		default:
			o.end(e, series.Unknown, now)
		}
		return true
	}
	return false
}

// under returns the key under which an occurrence counts, and the note of a series
// that begins with it.
func (o *oracle) under(tuple, note string, now time.Duration) (key, begins string) {
	if o.distinct == 0 || note == "" {
		return tuple, note
	}
	own, rest := nameWith(tuple, note), nameWith(tuple, "rest")
	continues := func(e *told) bool { return isAccepting(e) && !o.isOver(e, now) }
	distinct := o.where(continues, func(e *told) bool { return tupleOf(e.key) == tuple && e.key != tuple && e.key != rest && e.key != own })
	switch {
	case len(o.where(has(own), continues)) > 0:
		return own, note
	case len(o.where(has(rest), continues)) > 0, len(distinct) >= o.distinct:
		return rest, series.CombinedPrefix + note
	default:
		return own, note
	}
}

// enter makes an entry.
func (o *oracle) enter(key string) *told {
	o.entries[key]++
	e := &told{key: key, label: fmt.Sprintf("%s/%d", key, o.entries[key]), warning: isWarningKey(key)}
	e.knows.last, e.retry = math.MinInt64, always // there are times before the beginning
	e.said, e.until = series.FinishAfter, -longAgo
	o.all = append(o.all, e)
	return e
}

func (o *oracle) end(e *told, as series.State, now time.Duration) {
	e.life = closing
	o.baseOf(e.key).ended, o.baseOf(e.key).last = true, e.last
	o.finish(e, as)
	if e.phase == refused && (as == series.Unknown || e.count == 0) {
		o.lose(e, "")
		return
	}
	if e.phase == refused {
		o.tryAgain(e)
	}
	if e.name == nil {
		o.takeName(e, now)
	}
	if isOnServer(e) {
		o.hold(e, e.at)
	} else {
		o.hold(e, now)
	}
	if !e.busy {
		o.compareEnded(e)
	}
	if o.needs(e) == none && !e.busy {
		e.life = forgotten
		return
	}
	o.schedule(e, now)
	o.boundClosing()
}

func (o *oracle) finish(e *told, as series.State) {
	if e.state == series.Ongoing && as != series.Ongoing {
		e.state, e.signpost = as, false
		e.changes++
	}
}

func (o *oracle) boundClosing() {
	for len(o.where(isClosing, isIdle)) > o.opts.Capacity {
		e := longestIdle(o.where(isClosing, isIdle, isNormal))
		if e == nil {
			e = longestIdle(o.where(isClosing, isIdle, isWarning))
		}
		o.lose(e, DropClosingFull)
	}
}

func (o *oracle) lose(e *told, reason DropReason) {
	e.life = forgotten
	if e.phase == refused {
		reason = e.refusal
	}
	o.drop(e.key, e.count-e.knows.count, reason)
}

// baseOf returns what is known of the base name of a key.
func (o *oracle) baseOf(key string) *tombstone {
	if o.bases[key] == nil {
		o.bases[key] = &tombstone{}
	}
	return o.bases[key]
}

// hold says that an Event of e that was written at the given time has its name for
// a while.
func (o *oracle) hold(e *told, from time.Duration) {
	if e.name == nil || !e.name.unique {
		whose := ownerUnknown
		if isOnServer(e) {
			whose = ownerUs
		}
		o.baseOf(e.key).hold(from+o.opts.EventTTL*9/8, whose, e.version)
	}
}

func (o *oracle) takeName(e *told, now time.Duration) {
	base := o.baseOf(e.key)
	whose, _ := base.ownerAt(now)
	switch {
	case !o.isTended(e, naming{}) && whose == ownerUs && base.ended && now-base.last < o.opts.MaxWindow:
		e.name = &naming{}
		o.claim(e, naming{})
	case base.takenAt(now) || o.isTended(e, naming{}):
		o.rename(e)
		for o.isTended(e, *e.name) {
			o.rename(e)
		}
	default:
		e.name = &naming{}
	}
}

// rename gives e a name that no other entry has.
func (o *oracle) rename(e *told) {
	before := e.name
	for {
		e.name = &naming{unique: true, first: e.first, n: e.names}
		e.names++
		if before == nil || *before != *e.name {
			return
		}
	}
}

func (o *oracle) needs(e *told) Kind {
	switch {
	case e.life == forgotten:
		return none
	case e.phase == claiming:
		return e.step
	case e.phase == conflicted:
		return Look
	case e.phase == refused && e.beatDue && e.life == accepting:
		return Create
	case e.phase == refused:
		return none
	case e.phase == unwritten && e.existed:
		return Recreate
	case e.phase == unwritten:
		return Create
	case e.state != e.knows.state && e.state == series.Ongoing:
		return MakeSeries
	case e.state != e.knows.state:
		return Finish
	case e.beatDue:
		return Heartbeat
	case e.flush:
		return FlushCount
	case e.state.Closed() && e.count > e.knows.count:
		return Finish
	case e.life == closing && e.count > e.knows.count:
		return FlushCount
	case e.signpost && e.base == ownerUnknown:
		return Look
	case e.signpost:
		return Signpost
	}
	return none
}

// isUpToDate reports whether at most the Event under the base name is to be written.
func (o *oracle) isUpToDate(e *told) bool {
	kind := o.needs(e)
	return kind == none || e.phase == live && (kind == Look || kind == Signpost)
}

// schedule decides whether advance looks at e; it does not if a request can be made.
func (o *oracle) schedule(e *told, now time.Duration) {
	if !e.busy {
		o.compareEnded(e)
	}
	e.waits = o.needs(e) == none || e.retry > now
}

// compareEnded says that nothing is to be written of a series that has ended if its Event
// says its count and its state.
func (o *oracle) compareEnded(e *told) {
	k := &e.knows
	if k.changes == 0 && e.phase == live && e.state.Closed() && k.state == e.state && k.count == e.count && len(e.tried) == 0 {
		k.changes, e.flush = e.changes, false
	}
}

// isDue reports whether something is to be done about an entry that waits.
func (o *oracle) isDue(e *told, now time.Duration) bool {
	switch {
	case !e.waits:
		return false
	case o.needs(e) != none && e.retry <= now:
		return true
	case e.life == closing:
		return false
	default:
		return o.isOver(e, now) || o.isQuiet(e, now) || e.life == accepting && o.isUpToDate(e) && isOngoing(e) && now >= e.beatAt
	}
}

func (o *oracle) advance(now time.Duration) string {
	for {
		due := o.where(isTracked, isIdle, func(e *told) bool { return o.isDue(e, now) })
		if len(due) == 0 {
			return ""
		}
		o.tick(due[0], now)
		if due[0].life != forgotten {
			o.schedule(due[0], now)
		}
	}
}

func (o *oracle) tick(e *told, now time.Duration) {
	if o.isQuiet(e, now) && e.phase == live && e.knows.state == series.Ongoing && e.theirs > e.last+time.Second && e.theirs != 0 &&
		now-e.theirs < o.opts.HeartbeatInterval+o.window(e) {
		o.end(e, series.Ongoing, now)
		return
	}
	if e.life < closing && o.isOver(e, now) {
		o.end(e, series.Finished, now)
		return
	}
	if o.isQuiet(e, now) {
		e.life = resting
		o.finish(e, series.Finished)
	}
	if e.life == accepting && e.state == series.Ongoing && (e.phase == live || e.phase == refused) && now >= e.beatAt && o.isUpToDate(e) {
		o.pulse(e, now)
	}
}

// pulse decides what becomes of a heartbeat whose time has come.
func (o *oracle) pulse(e *told, now time.Duration) {
	if !e.beatNext {
		e.beats = min(e.beats+1, math.MaxUint8)
	}
	switch next := now + o.interval(e); {
	case e.changes != e.knows.changes:
		e.beatDue = true
	case next < e.at+o.opts.HeartbeatInterval && e.phase == live:
		e.beatAt = next
	default:
		e.beatNext, e.beatAt = true, never
	}
}

// planBeat decides when the next heartbeat of e is due, which was written or refused.
func (o *oracle) planBeat(e *told) {
	e.beatDue, e.beatNext = false, false
	e.beatAt = e.at + o.interval(e)
}

// interval returns the time from a write to the next heartbeat.
func (o *oracle) interval(e *told) time.Duration { return o.opts.intervals().After(uint8(e.beats)) }

func (o *oracle) begin(label string, now time.Duration) string {
	e := o.find(label)
	if e.life == forgotten {
		return "no write"
	}
	e.busy = true
	o.tick(e, now)
	if e.name == nil && e.life != forgotten {
		o.takeName(e, now)
	}
	o.compareEnded(e)
	kind := o.needs(e)
	if kind == Signpost {
		o.wantSignpost(e, now)
		kind = o.needs(e)
	}
	if e.phase == refused && kind == Create {
		o.tryAgain(e)
	}
	if kind == none {
		e.busy = false
		o.conclude(e, now)
		return "no write"
	}
	last := max(micros(e.last), e.knows.last, e.first)
	if e.silent {
		last = max(e.knows.last, e.first)
	} else if o.opts.Scope == SameController && e.state != series.Singleton {
		last = o.marked(last, max(e.knows.last, e.first))
	}
	w := &toldWrite{kind: kind, name: *e.name, state: e.state, count: e.count, changes: e.changes, last: last, at: now}
	e.writing = w
	switch {
	case kind == Look && e.phase == live:
		w.name = naming{}
		return "look base"
	case kind == Look, kind == Close:
		w.name = e.inTheWay
		return fmt.Sprintf("%s %s", kind, w.name)
	case kind == Signpost:
		w.name = naming{}
		return fmt.Sprintf("successor base -> %s", *e.name)
	}
	e.knows.last = last // perhaps
	if kind != Create && kind != Recreate {
		w.version = e.version
	}
	if e.silent {
		w.window = e.said
	} else if e.state != series.Singleton {
		w.window = o.rhythm(e)
		if quiet := now - e.last; isOngoing(e) && e.life == accepting && quiet > w.window {
			second := int64(time.Second)
			quiet = time.Duration((int64(quiet) + second - 1) / second * second)
			w.window = max(o.opts.FinishAfter, min(2*quiet+quiet/10, o.opts.MaxWindow))
		}
	}
	says := series.Series{
		Window: w.window,
		State:  e.state, Count: int32(e.count), First: timeOf(e.first), Last: timeOf(last), Note: e.note, LastNote: e.now, Instance: e.instance,
	}
	if o.opts.Scope == SameInstance {
		says.Key.ReportingInstance = e.instance
	}
	return writeText(kind, &says, *e.name)
}

// frac is what the times of Events lack.
var frac = start.Sub(start.Truncate(time.Microsecond))

// micros rounds a time down as an Event does.
func micros(d time.Duration) time.Duration {
	return start.Add(d).Truncate(time.Microsecond).Sub(start.Truncate(time.Microsecond))
}

// cut returns when an occurrence was, as far as a tracker knows.
func cut(d time.Duration) time.Duration { return micros(d) - frac }

func (o *oracle) apply(label string, r response, now time.Duration) {
	e, outcome := o.find(label), r.outcome
	w := e.writing
	e.writing, e.busy = nil, false
	if e.life == forgotten {
		return
	}
	isSeries, failures, wasRefused := w.kind < Look, e.failures, e.refusal != ""
	wasDenied := e.failures > heartbeat.Several && e.denied
	switch outcome {
	case PushedBack:
	case Troubled, Denied:
		if outcome == Troubled && !r.unsent && isSeries {
			e.tried = append(e.tried, *w)
		}
		if outcome == Denied && e.phase == claiming && w.kind == Look {
			o.isUnseen(e)
		}
		if outcome == Denied && !e.denied && !e.encouraged {
			e.failures = min(e.failures, 8)
		}
		o.failed(e, now)
		if until := now + heartbeat.NewSchedule[*Entry](nil).BackoffDenied(e.failures); outcome == Denied && until > e.retry {
			e.retry, e.denied = until, true
		}
	default:
		o.interpret(e, w, r, now)
		switch {
		case e.life == forgotten:
			return
		case e.phase == refused:
			if !wasRefused {
				failures = 0
			}
			o.failed(e, now)
			e.failures = failures + 1
			e.retry = now + min(time.Minute, o.opts.HeartbeatInterval)
			for range failures {
				e.retry = now + min(2*(e.retry-now), o.opts.HeartbeatInterval)
			}
			e.beatAt = e.retry
		case isSeries && outcome == Written, w.kind != Look && outcome == Refused:
			o.passed(e)
		case outcome == Taken, outcome == Changed, outcome == Refused:
			o.failed(e, now)
			if failures == 0 && w.kind != Look {
				e.retry = always // the first look follows at once
			}
		}
	}
	o.conclude(e, now)
	if wasDenied && e.failures == 0 {
		o.encourage(now)
	}
}

func (o *oracle) passed(e *told) {
	e.failures, e.retry, e.denied, e.encouraged = 0, always, false, false
}

// encourage has the entries that have been denied for long tried soon.
func (o *oracle) encourage(now time.Duration) {
	for _, e := range o.where(isAccepting, isIdle) {
		if e.failures > heartbeat.DeniedOften && e.denied {
			e.failures, e.denied, e.encouraged, e.retry = heartbeat.DeniedOften, false, true, min(e.retry, now+5*time.Minute)
			if e.phase == refused {
				e.beatAt = min(e.beatAt, e.retry)
			}
			o.schedule(e, now)
		}
	}
}

// tryAgain has what has occurred since a refusal written.
func (o *oracle) tryAgain(e *told) {
	o.unwrite(e)
	e.beatDue, e.beatNext = false, false
	if e.count == 1 {
		e.state, e.first, e.signpost = series.Singleton, micros(e.last), false
		if e.now != "" {
			e.note, e.now = e.now, ""
			if strings.Contains(e.key, ":rest") {
				e.note = series.CombinedPrefix + e.note
			}
		}
	}
}

func (o *oracle) failed(e *told, now time.Duration) {
	e.failures++
	e.denied, e.encouraged = false, false
	e.retry = now + heartbeat.NewSchedule[*Entry](nil).Backoff(e.failures)
}

func (o *oracle) conclude(e *told, now time.Duration) {
	o.compareEnded(e)
	switch {
	case e.life == forgotten:
	case e.life == closing && o.needs(e) == none && e.phase == refused:
		o.lose(e, "")
	case e.life == closing && o.needs(e) == none:
		e.life = forgotten
	default:
		o.schedule(e, now)
		o.boundClosing()
	}
}

// interpret applies what the server has decided.
func (o *oracle) interpret(e *told, w *toldWrite, r response, now time.Duration) {
	outcome, reason, ev := r.outcome, r.reason, r.found
	switch e.phase {
	case claiming:
		o.claimed(e, w, outcome, ev, now)
		return
	case conflicted:
		switch {
		case outcome == Gone:
			o.vanished(e)
		case outcome == Refused:
			if e.unseen++; e.unseen == 3 {
				o.refused(e, reason, now)
			}
		case began(e, ev):
			o.merge(e, ev, now)
		case e.silent:
			o.lose(e, "")
		default:
			o.unwrite(e)
			o.claim(e, w.name)
			o.found(e, ev, now)
		}
		return
	}
	switch {
	case w.kind >= Look:
		o.aboutBase(e, w, outcome, ev, now)
	case outcome == Written:
		o.written(e, w, ev.version, now)
	case outcome == Refused:
		o.refused(e, reason, now)
	case outcome == Taken:
		o.hold(e, now)
		o.claim(e, w.name)
	case outcome == Gone:
		o.vanished(e)
	case outcome == Changed && w.version != 0:
		e.phase, e.unseen, e.inTheWay = conflicted, 0, *e.name
	}
}

func (o *oracle) claim(e *told, name naming) {
	e.phase, e.step, e.inTheWay, e.next, e.unseen = claiming, Look, name, nil, 0
}

func (o *oracle) unwrite(e *told) {
	if e.knows.count > 0 {
		e.knew = e.knows.count
	}
	e.phase, e.version, e.tried = unwritten, 0, nil
	e.knows.count, e.knows.changes = 0, 0
}

func (o *oracle) isLive(e *told, version uint64) {
	e.phase, e.version, e.tried, e.existed, e.refusal, e.knew = live, version, nil, true, "", 0
}

func (o *oracle) written(e *told, w *toldWrite, version uint64, now time.Duration) {
	o.isLive(e, version)
	e.said = cmp.Or(w.window, series.FinishAfter)
	e.knows, e.at = *w, w.at
	e.flush = o.waitedFor[e] > w.changes
	o.planBeat(e)
	isEarly := w.kind == Heartbeat && o.interval(e) < o.opts.HeartbeatInterval
	if w.name.unique && w.state == series.Ongoing && w.kind != FlushCount && !isEarly {
		o.wantSignpost(e, now)
	}
	if e.life == closing {
		o.hold(e, now)
	}
}

// wantSignpost has the Event under the base name lead to e, unless it is a
// stranger's.
func (o *oracle) wantSignpost(e *told, now time.Duration) {
	e.base, _ = o.baseOf(e.key).ownerAt(now)
	e.signpost = e.base != ownerOther && isOngoing(e)
}

func (o *oracle) aboutBase(e *told, w *toldWrite, outcome Outcome, ev *toldEvent, now time.Duration) {
	base, until := o.baseOf(e.key), now+o.opts.EventTTL*9/8
	e.signpost = false
	switch {
	case outcome == Gone:
		base.release()
	case outcome == Changed:
		base.belongs(ownerUnknown, 0)
		o.wantSignpost(e, now)
	case outcome == Refused && w.kind == Look:
		base.hold(until, ownerOther, 0)
	case outcome == Refused:
	case w.kind == Signpost:
		base.hold(until, ownerUs, 0)
	default:
		base.hold(until, ownerIf(o.judge(e, ev, now) != stranger), 0)
		o.wantSignpost(e, now)
	}
}

func (o *oracle) vanished(e *told) {
	if e.silent {
		o.lose(e, "")
		return
	}
	o.unwrite(e)
}

func (o *oracle) refused(e *told, reason DropReason, now time.Duration) {
	if e.life != accepting {
		o.lose(e, reason)
		return
	}
	mayExist := e.existed || len(e.tried) > 0
	if mayExist {
		o.hold(e, now)
	}
	o.drop(e.key, e.count-e.knows.count, reason)
	e.phase, e.refusal, e.tried, e.version, e.flush, e.knew = refused, reason, nil, 0, false, 0
	e.state, e.count = series.Ongoing, 0
	e.knows.count, e.knows.changes = 0, e.changes
	if mayExist {
		o.rename(e)
	}
	e.existed = false
	e.at = now
	e.beatDue, e.beatNext, e.beatAt = false, false, max(e.retry, now)
}

func (o *oracle) claimed(e *told, w *toldWrite, outcome Outcome, ev *toldEvent, now time.Duration) {
	switch {
	case outcome == Refused && w.kind == Look:
		o.isUnseen(e)
	case outcome == Changed && e.unseen < 2:
		e.step = Look
		e.unseen++
	case outcome == Gone && w.kind == Look && w.name == *e.name && e.failures < 2:
		o.unwrite(e)
	case outcome == Written && w.kind == Look:
		o.found(e, ev, now)
	default:
		if outcome == Written && !w.name.unique { // a look of another series can have been refused since
			o.baseOf(e.key).belongs(ownerUs, 0)
		}
		o.claimNext(e)
	}
}

func (o *oracle) isUnseen(e *told) {
	if e.unseen++; e.unseen < 3 {
		return
	}
	if !e.inTheWay.unique {
		o.baseOf(e.key).belongs(ownerOther, 0)
	}
	e.next = nil
	o.claimNext(e)
}

// claimNext leaves the Event that is in the way.
func (o *oracle) claimNext(e *told) {
	if e.next != nil {
		o.claim(e, *e.next)
		return
	}
	o.unwrite(e)
	o.rename(e)
}

// began reports whether e has created ev, or continued it before.
func began(e *told, ev *toldEvent) bool {
	return ev.strange == "" && ev.first == e.first && ev.Instance == e.instance
}

// smallest returns the smallest count of the attempts, of which e must have some, or what
// the server knew before.
func (e *told) smallest() int {
	least := slices.MinFunc(e.tried, func(a, b toldWrite) int { return a.count - b.count }).count
	return min(least, cmp.Or(e.knew, least))
}

func (e *told) hasTried(ev *toldEvent) bool {
	return slices.ContainsFunc(e.tried, func(w toldWrite) bool { return w.count == ev.count && w.last == ev.last })
}

func (o *oracle) isAlive(ev *toldEvent, now time.Duration) bool {
	age := now + frac - ev.last
	return age < o.opts.MaxWindow || ev.State == series.Ongoing && age < o.opts.MaxWindow+promise(ev)
}

// promise is the time until the next write of ev.
func promise(ev *toldEvent) time.Duration {
	if ev.Heartbeat == 0 {
		return 30 * time.Minute
	}
	return ev.Heartbeat
}

func isPossible(ev *toldEvent, now time.Duration) bool {
	return ev.strange == "" && ev.first-now-frac <= 10*time.Minute && ev.last-now-frac <= 10*time.Minute &&
		int64(ev.count) <= 1_000_000*int64(1+(ev.last-ev.first)/time.Second)
}

// judge returns what ev is to e.
func (o *oracle) judge(e *told, ev *toldEvent, now time.Duration) standing {
	isTended := o.isTended(e, ev.name)
	switch {
	case !isTended && began(e, ev) && e.hasTried(ev):
		return own
	case !isTended && began(e, ev) && len(e.tried) > 0 && e.smallest() <= ev.count:
		return shared
	case !isPossible(ev, now):
		return stranger
	case !o.isAlive(ev, now):
		return dead
	case isTended:
		return tended
	default:
		return alive
	}
}

func (o *oracle) found(e *told, ev *toldEvent, now time.Duration) {
	what := o.judge(e, ev, now)
	if !ev.name.unique {
		o.baseOf(e.key).belongs(ownerIf(what != stranger), 0)
	}
	switch what {
	case own:
		tried := e.tried
		o.adopt(e, ev, 0, now)
		o.confirm(e, tried, ev, now)
	case shared:
		o.adopt(e, ev, ev.count-e.smallest(), now)
	case alive:
		o.adopt(e, ev, ev.count, now)
	case dead:
		e.next = nil
		if ev.successor != nil && ev.successor.unique && !ev.name.unique {
			next := *ev.successor
			e.next = &next
		}
		if ev.State == series.Ongoing && !o.isTended(e, ev.name) {
			e.step = Close
			return
		}
		o.claimNext(e)
	default:
		e.next = nil
		o.claimNext(e)
	}
}

// merge adds to e what others have written to its Event.
func (o *oracle) merge(e *told, ev *toldEvent, now time.Duration) {
	theirs := max(ev.count-e.knows.count, 0)
	tried, ours := e.tried, e.hasTried(ev)
	if ours {
		theirs = 0
	}
	planned := e.knows.state == series.Ongoing
	e.count += theirs
	if theirs > 0 && ev.last-frac <= now+clockSkew {
		e.theirs = ev.last
	}
	e.now = cmp.Or(e.now, ev.LastNote)
	left := false
	switch {
	case e.life == closing && ev.State.Closed():
		e.state = ev.State
	case e.life == resting && ev.last-frac <= e.last:
	case e.life != accepting && theirs > 0 && e.state == series.Finished && ev.State == series.Ongoing:
		e.state = series.Ongoing
		left = e.life == resting
	}
	e.said = ev.QuietWindow()
	e.changes++
	o.isLive(e, ev.version)
	e.knows = toldWrite{state: ev.State, count: ev.count, last: max(e.knows.last, ev.last)}
	e.flush = ev.count < e.count || ev.State != e.state || isOngoing(e) && e.life == accepting && ev.Heartbeat != o.opts.HeartbeatInterval
	if !e.flush {
		e.knows.changes = e.changes
	}
	if ours {
		o.confirm(e, tried, ev, now)
	}
	if !planned {
		o.planBeat(e)
		if e.name.unique && ev.State == series.Ongoing {
			o.wantSignpost(e, now)
		}
	}
	if left {
		o.end(e, series.Ongoing, now)
	}
}

// isTended reports whether an entry other than e has the Event with a name.
func (o *oracle) isTended(e *told, name naming) bool {
	return len(o.where(isTracked, has(e.key), func(other *told) bool {
		return other != e && other.name != nil && *other.name == name
	})) > 0
}

// confirm says that the write among tried that says what ev says was made now.
func (o *oracle) confirm(e *told, tried []toldWrite, ev *toldEvent, now time.Duration) {
	i := slices.IndexFunc(tried, func(w toldWrite) bool { return w.count == ev.count && w.last == ev.last })
	if e.knows.changes == 0 && !ev.State.Closed() {
		e.knows.changes = tried[i].changes
		e.flush = o.waitedFor[e] > tried[i].changes
	}
	e.at = now
	o.planBeat(e)
	o.passed(e)
}

// adopt makes ev the Event of e, which has not counted theirs of its occurrences.
func (o *oracle) adopt(e *told, ev *toldEvent, theirs int, now time.Duration) {
	e.count += theirs
	if theirs > 0 && e.state == series.Singleton {
		e.state = series.Ongoing
		if e.life != accepting {
			e.state = series.Finished
		}
	}
	e.said = ev.QuietWindow()
	if theirs > 0 && ev.State == series.Ongoing {
		o.resume(e, e.first-ev.last, e.last)
	} else if theirs > 0 {
		o.learn(e, e.first-ev.last, e.last)
	}
	if !began(e, ev) {
		e.now = cmp.Or(e.now, e.note)
		e.note = ev.Note
	}
	e.now = cmp.Or(e.now, ev.LastNote)
	e.first, e.instance = ev.first, ev.Instance
	e.changes++
	name, names := ev.name, e.names
	e.name, e.names = &name, 0
	o.isLive(e, ev.version)
	if name.unique {
		e.names = max(1, names)
		o.wantSignpost(e, now)
	}
	e.at = now
	e.knows = toldWrite{state: ev.State, count: ev.count, last: ev.last}
	e.flush = theirs > 0 || e.state != ev.State || e.count != ev.count
	if !e.flush {
		e.knows.changes = e.changes
	}
	o.planBeat(e)
}

func (o *oracle) expire(label string, now time.Duration) string {
	if e := o.find(label); e.life < closing && (o.isOver(e, now) || o.isQuiet(e, now)) {
		o.tick(e, now)
		o.schedule(e, now)
	}
	return ""
}

func (o *oracle) beat(label string, now time.Duration) string {
	e := o.find(label)
	if e.life != accepting {
		return ""
	}
	e.beatAt = now
	if !e.busy {
		e.beatNext = false
		o.tick(e, now)
		o.schedule(e, now)
	}
	return ""
}

func (o *oracle) flush(now time.Duration) string {
	clear(o.waitedFor)
	for _, e := range o.where(isTracked) {
		if (e.phase != refused || e.busy) && e.knows.changes != e.changes {
			e.flush, e.retry, e.denied, e.encouraged = true, always, false, false
			o.waitedFor[e] = e.changes
			o.schedule(e, now)
		}
	}
	return o.settled()
}

func (o *oracle) settled() string {
	o.settle()
	var left []string
	for e := range o.waitedFor {
		left = append(left, e.label)
	}
	return leftText(left)
}

// settle forgets what nobody waits for any more.
func (o *oracle) settle() {
	for e, changes := range o.waitedFor {
		if e.life == forgotten || e.knows.changes >= changes {
			delete(o.waitedFor, e)
		}
	}
}

func (o *oracle) seal(reason DropReason) string {
	o.sealed = reason
	return "sealed"
}

func (o *oracle) clear(reason DropReason) string {
	for _, e := range o.where(isTracked) {
		o.lose(e, reason)
	}
	return ""
}

func (o *oracle) status(label string, now time.Duration) string {
	e := o.find(label)
	s := statusText{
		phase: e.phase, state: e.state, count: e.count, last: e.last,
		written: fmt.Sprintf("%s x%d", e.knows.state, e.knows.count), at: e.at,
		beatAt: e.beatAt, failures: e.failures, window: o.window(e),
	}
	if e.retry > now {
		s.retry = e.retry
	}
	return s.String()
}

// restoreOne returns the label of the entry that has ev now.
func (o *oracle) restoreOne(key string, ev *toldEvent, spread float64, now time.Duration) string {
	isAlive := o.isAlive(ev, now)
	if !isPossible(ev, now) || !isAlive && ev.State != series.Ongoing || o.sealed != "" || o.baseOf(key).ended {
		return ""
	}
	e := &told{key: key}
	known := false
	for _, accepting := range o.where(isAccepting, has(key)) {
		e, known = accepting, true
	}
	if o.isTended(e, ev.name) {
		return ""
	}
	switch {
	case !isAlive:
		if known && (e.name == nil && !ev.name.unique || e.name != nil && *e.name == ev.name) {
			return ""
		}
		if known && e.phase == claiming && (e.inTheWay == ev.name || e.next != nil && *e.next == ev.name) {
			return ""
		}
		if len(o.where(isClosing)) >= (o.opts.Capacity+1)/2 {
			return ""
		}
	case known:
		if e.phase != unwritten || e.existed || e.busy || len(e.tried) > 0 || e.name != nil && *e.name != ev.name {
			return ""
		}
		o.adopt(e, ev, ev.count, now)
		o.passed(e)
		o.conclude(e, now)
		return e.label
	case len(o.where(isAccepting)) >= (o.opts.Capacity+1)/2:
		return ""
	}
	e = o.enter(key)
	e.silent, e.state, e.count, e.note, e.notedAt, e.first = true, ev.State, ev.count, ev.Note, now-longAgo, ev.first
	age := now + frac - ev.last
	e.last = cut(now)
	if !isAlive || ev.State != series.Ongoing {
		e.last = cut(now - age)
	}
	o.adopt(e, ev, 0, now)
	e.now, e.signpost = ev.LastNote, false
	switch {
	case !isAlive:
		e.life, e.state = closing, series.Finished
		e.changes++
		o.hold(e, now)
	case ev.State != series.Ongoing:
		e.at = e.last
		if ev.State.Closed() {
			e.life = resting
		}
	default:
		o.assume(e, ev.QuietWindow(), 0, e.last)
		left := min(o.opts.HeartbeatInterval, max(min(promise(ev)+ev.QuietWindow(), o.opts.EventTTL)-age, 0))
		e.beatAt = now + time.Duration(spread*float64(left))
		e.at = e.beatAt - o.opts.HeartbeatInterval
		e.beatAt = min(e.beatAt, now+o.interval(e))
	}
	o.schedule(e, now)
	return e.label
}

func (o *oracle) kill(time.Duration) string {
	o.born = len(o.all)
	o.bases, o.sealed = map[string]*tombstone{}, ""
	clear(o.waitedFor)
	o.lives++
	return "another process"
}
