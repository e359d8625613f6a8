package tracker

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"

	"github.com/eventseries/eventseries/heartbeat"
	"github.com/eventseries/eventseries/series"
)

// machine goes through a history of events: a tracker (world), or the second
// implementation of the same rules (oracle). Each step returns a text, so the texts
// of both can be compared. [take] adds what the step changed.
//
// Entries have labels: "a/2" is the second entry of key "a".
type machine interface {
	places() []spot    // of all entries, oldest first
	losses() []string  // since the last call
	accepting() string // how many entries accept occurrences, and how many are closing

	see(key, note string, now time.Duration) string
	begin(label string, now time.Duration) string
	advance(now time.Duration) string
	expire(label string, now time.Duration) string
	beat(label string, now time.Duration) string
	flush(now time.Duration) string
	settled() string
	seal(reason DropReason) string
	clear(reason DropReason) string
	status(label string, now time.Duration) string
	kill(now time.Duration) string
}

// pair takes a tracker and the oracle, if there is one, through the same steps. The
// texts of both must be equal.
type pair struct {
	w *world
	o *oracle
}

func newPair(t *testing.T, opts Options, remote *server) pair {
	p := pair{newWorld(t, opts, remote), newOracle(opts)}
	p.o.lives = p.w.lives
	p.o.marked = func(last, atLeast time.Duration) time.Duration {
		return sinceStart(time.UnixMicro(p.w.tracker.marked(timeOf(last).UnixMicro(), timeOf(atLeast).UnixMicro())))
	}
	p.o.epoch = func() time.Duration { return p.w.tracker.epoch.Sub(start) }
	return p
}

func (p pair) both(step func(machine) string) string {
	return p.each(func() string { return step(p.w) }, func() string { return step(p.o) })
}

// each makes a step that differs in what the machines need for it. It returns what the
// tracker did.
func (p pair) each(world, oracle func() string) string {
	p.w.t.Helper()
	got := take(p.w, world)
	if p.o != nil {
		if want := take(p.o, oracle); got != want {
			p.w.t.Errorf("%q, the oracle says %q", got, want)
		}
		p.o.settle()
	}
	return got
}

// next begins the write that the schedule of the tracker chooses.
func (p pair) next(now time.Duration) string {
	var label string
	return p.each(func() (text string) {
		label, text = p.w.next(now)
		return text
	}, func() string {
		if label == "" {
			return ""
		}
		if e := p.o.find(label); e.retry > max(now, p.w.latest) {
			return fmt.Sprintf("%s waits until %s", label, e.retry)
		}
		return label + " " + p.o.begin(label, now)
	})
}

// end ends the request of an entry.
func (p pair) end(label string, now time.Duration, respond func() response) string {
	var r response
	return p.each(func() string { r = respond(); return r.text }, func() string { p.o.apply(label, r, now); return r.text })
}

// restore restores what was listed. spread replaces the hash of the key, on which
// the next heartbeat of a series depends.
func (p pair) restore(spread float64, now time.Duration) string {
	all := func(restore func(at listed, now time.Duration) string) func() string {
		return func() string {
			var texts []string
			for i, at := range p.w.listed {
				// No order is promised for those that come at the same time.
				if label := restore(at, now+time.Duration(i)*time.Microsecond); label != "" {
					texts = append(texts, fmt.Sprintf("%s is %s", at.name, label))
				}
			}
			return strings.Join(texts, " | ")
		}
	}
	return p.each(
		all(func(at listed, now time.Duration) string { return p.w.restore(at, spread, now) }),
		all(func(at listed, now time.Duration) string {
			return p.o.restoreOne(at.key, p.w.told(at.ev, at.as), spread, now)
		}))
}

// response is what a machine learns of its request.
type response struct {
	text    string
	outcome Outcome
	unsent  bool
	reason  DropReason
	found   *toldEvent // the Event that was returned, nil if there was none
}

// failure is how a request fails.
type failure string

const (
	lost       failure = "lost"       // the server handles it, and the response is lost
	late       failure = "late"       // the same, but the server handles it later
	failed     failure = "failed"     // it does not reach the server, but nobody knows
	unsent     failure = "unsent"     // it does not reach the server
	pushedBack failure = "pushedBack" // the server asks the client to slow down
	denied     failure = "denied"     // the client has no permission
)

// failureResults are what the tracker learns of failures.
var failureResults = map[failure]Result{
	lost:       {Outcome: Troubled},
	late:       {Outcome: Troubled},
	failed:     {Outcome: Troubled},
	unsent:     {Outcome: Troubled, Unsent: true},
	pushedBack: {Outcome: PushedBack},
	denied:     {Outcome: Denied},
}

// spot is the situation of an entry.
type spot struct {
	label string
	life  life
	state series.State
	phase phase
	need  Kind
}

func (p spot) String() string {
	text := p.label
	switch p.life {
	case forgotten:
		return text + " forgotten"
	case closing:
		text += " closing"
	case resting:
		text += " resting"
	}
	text += " " + p.state.String() + " " + p.phase.String()
	if p.need != none {
		text += ": " + p.need.String()
	}
	return text
}

// take makes a step, and adds to its text which entries it moved, and what it lost.
func take(m machine, step func() string) string {
	before := m.places()
	text := step()
	parts := []string{}
	for i, p := range m.places() {
		if i >= len(before) || before[i] != p {
			parts = append(parts, p.String())
		}
	}
	losses := m.losses()
	slices.Sort(losses)
	for _, loss := range losses {
		parts = append(parts, "dropped "+loss)
	}
	if text != "" {
		parts = slices.Insert(parts, 0, text)
	}
	return strings.Join(parts, "; ")
}

// start is the wall time of all tests. It has no monotonic reading, so time passes
// as the test says. Its nanoseconds are not zero, to show where they are cut off.
var start = time.Date(2026, 1, 2, 3, 4, 5, 123456789, time.UTC)

// testKey returns the key with a short name. A name in upper case is a Warning. The
// note that is part of a key stands behind a colon; "a:rest" is what the rest of
// the tuple shares.
func testKey(name string) *series.Key {
	name, note, _ := strings.Cut(name, ":")
	if note == "rest" {
		note = series.CombinedPrefix
	}
	k := &series.Key{
		Note:                note,
		Regarding:           series.Reference{APIVersion: "v1", Kind: "Pod", Namespace: "ns", Name: "pod-" + strings.ToLower(name), UID: "uid-1"},
		Type:                "Normal",
		Action:              "Starting",
		Reason:              "Started",
		ReportingController: "example.com/controller",
		ReportingInstance:   "controller-0",
	}
	if isWarningKey(name) {
		k.Type = "Warning"
	}
	return k
}

func isWarningKey(name string) bool { return strings.ToUpper(tupleOf(name)) == tupleOf(name) }

// nameWith returns the short name of the key of an occurrence with a note, if notes
// tell series apart.
func nameWith(tuple, note string) string {
	if note == "" {
		return tuple
	}
	return tuple + ":" + note
}

// tupleOf returns the part of a short name that is not about a note.
func tupleOf(name string) string {
	tuple, _, _ := strings.Cut(name, ":")
	return tuple
}

// world is one process of a controller: a tracker that writes to a server. When the
// process is killed, another one comes with a new tracker.
type world struct {
	mark     int64 // of the tracker
	t        *testing.T
	opts     Options
	tracker  *Tracker
	remote   *server
	lives    int // how many processes there were before
	distinct int // how many notes of a tuple have series of their own
	// forgetful trackers remember as few tombstones as they have room for entries.
	forgetful bool
	random    bool // it is part of a random history
	// driven: nothing overrides the schedule. Pauses last; and if there is no oracle, which
	// knows no gates, requests pass the gates of the schedule.
	driven      bool
	pausedUntil time.Duration // by the server

	entries map[string]*Entry
	labels  map[*Entry]string
	order   []string              // labels, oldest first
	keys    map[series.Key]string // the short names of keys
	series  map[string]int        // how many entries of a key there were

	inFlight map[*Entry]*Write
	late     []*Write // whose requests the server has yet to handle, though they failed
	requests int      // so far
	pending  *Flush
	listed   []listed
	lost     []string

	tends       map[*Entry]*stored  // the Events whose counts are part of those of entries
	unsure      map[*Entry]bool     // the server may know more than the tracker thinks
	blind       map[*Entry]bool     // could not look at the Event that has its name
	settledUp   map[*Entry]bool     // forgotten, and in the books as that
	dropped     map[*Entry]revision // the revisions up to which all was dropped
	maxInFlight int
	latest      time.Duration // that the tracker was told
	taken       int           // occurrences that this tracker has seen
}

// listed is an Event at the time when the server listed it.
type listed struct {
	key  string
	name naming
	ev   *stored
	as   *eventsv1.Event
}

func newWorld(t *testing.T, opts Options, remote *server) *world {
	w := &world{t: t, opts: opts.WithDefaults(), remote: remote, keys: map[series.Key]string{}, series: map[string]int{}}
	w.lives = leaderLives * len(remote.worlds)
	remote.worlds = append(remote.worlds, w)
	w.begun(start)
	return w
}

// leaderLives is how many lives each of several leaders has at most. Their instances
// follow from it.
const leaderLives = 1000

// day is the age of a tracker when its process begins. The clock of a history can be
// set back, but not to before that.
const day = 24 * time.Hour

// begun starts a process.
func (w *world) begun(now time.Time) {
	w.tracker = New(w.opts, now)
	w.tracker.mark = w.mark
	if !w.forgetful {
		// The oracle does not forget which names are taken.
		w.tracker.tombstones = newTombstones(1<<20, math.MaxInt64/2)
	}
	w.entries, w.labels, w.order = map[string]*Entry{}, map[*Entry]string{}, nil
	w.pending, w.listed, w.taken, w.latest, w.pausedUntil = nil, nil, 0, now.Sub(start), math.MinInt64/2
	w.inFlight = map[*Entry]*Write{}
	w.tends = map[*Entry]*stored{}
	w.unsure = map[*Entry]bool{}
	w.blind = map[*Entry]bool{}
	w.settledUp = map[*Entry]bool{}
	w.dropped = map[*Entry]revision{}
}

// key returns the key with a short name, and the instance of this process.
func (w *world) key(name string) (k *series.Key, instance string) {
	k = testKey(name)
	instance = k.ReportingInstance
	if w.opts.Scope == SameController {
		k.ReportingInstance = ""
		instance = fmt.Sprintf("controller-%d", w.lives)
	}
	w.keys[*k] = name
	return k, instance
}

// tuple returns the name under which e is in the books.
func (w *world) tuple(e *Entry) string { return tupleOf(w.keys[e.Key()]) }

func (w *world) label(e *Entry) string {
	if _, ok := w.labels[e]; !ok {
		name := w.keys[e.Key()]
		w.series[name]++
		w.labels[e] = fmt.Sprintf("%s/%d", name, w.series[name])
		w.entries[w.labels[e]] = e
		w.order = append(w.order, w.labels[e])
	}
	return w.labels[e]
}

func (w *world) entry(label string) *Entry {
	require.NotNil(w.t, w.entries[label], label)
	return w.entries[label]
}

// tracked returns the entries of the tracker.
func (w *world) tracked() []*Entry {
	all := w.tracker.closed.all()
	for i := range w.tracker.shards {
		all = append(all, w.tracker.shards[i].entries.all()...)
	}
	return all
}

func (w *world) places() []spot {
	for _, e := range w.tracked() {
		w.label(e)
	}
	var all []spot
	for _, label := range w.order {
		e := w.entries[label]
		all = append(all, spot{label, e.life, e.spec.state, e.phase, e.need()})
	}
	return all
}

func (w *world) losses() []string {
	lost := w.lost
	w.lost = nil
	return lost
}

// lose enters drops, and the entries that have come to their end, into the books.
func (w *world) lose(drops []Drop) {
	for _, d := range drops {
		key := w.keys[d.Key]
		w.remote.dropped[tupleOf(key)] += d.Count
		w.lost = append(w.lost, fmt.Sprintf("%s x%d %s", key, d.Count, d.Reason))
	}
	for e := range w.labels {
		if e.life != forgotten || w.settledUp[e] {
			continue
		}
		w.settledUp[e] = true
		if e.lost() == 0 && w.delivered(e) != e.counted() {
			w.t.Errorf("%s is forgotten with %d occurrences, the server has %d", w.label(e), e.counted(), w.delivered(e))
		}
		w.leave(e)
	}
}

// tend says that the count of e includes that of ev, as far as it knows that.
func (w *world) tend(e *Entry, ev *stored, count int) {
	for other := range ev.within {
		if w.tends[other] == ev && other != e && !w.settledUp[other] && !e.isSilent() {
			w.t.Errorf("%s and %s tend the same Event", w.label(other), w.label(e))
		}
	}
	if before := w.tends[e]; before != nil && before != ev {
		w.t.Errorf("%s tends two Events", w.label(e))
	}
	ev.within[e] = count
	w.tends[e] = ev
}

// leave says that e is dropped. What it has written stays where it is.
func (w *world) leave(e *Entry) {
	doubted := w.delivered(e) - int(e.known())
	if doubted != 0 && !w.unsure[e] {
		w.t.Errorf("%s is dropped, and %d of it are in an Event", w.label(e), doubted)
	}
	w.remote.doubted[w.tuple(e)] += doubted
	w.forgo(e)
}

// forgo says that the count of e does not include that of its Event any more.
func (w *world) forgo(e *Entry) {
	if ev := w.tends[e]; ev != nil {
		delete(ev.within, e)
		delete(w.tends, e)
	}
}

// move says that e has found out that its Event is deleted. If ev has its name now,
// that has raised the count of e, which includes that of ev.
func (w *world) move(e *Entry, ev *stored, raised int) {
	count := 0
	if ev != nil {
		count = ev.count()
	}
	gone, again := w.tends[e], w.delivered(e)+raised-count
	w.forgo(e)
	switch {
	case again < 0:
		w.t.Errorf("%s has lost %d that are in another Event", w.label(e), -again)
	case gone != nil:
		twice := max(gone.revived+again-gone.count(), 0)
		if twice > 0 && len(w.remote.worlds) == 1 {
			w.t.Errorf("%s writes %d of a deleted Event twice", w.label(e), twice)
		}
		w.remote.doubled[w.tuple(e)] += twice
		gone.revived += again - twice
	}
	if ev != nil {
		w.tend(e, ev, count)
	}
}

// delivered is how much of the count of e is on the server, or was, as far as e can
// know.
func (w *world) delivered(e *Entry) int {
	if ev := w.tends[e]; ev != nil {
		return ev.within[e]
	}
	return 0
}

// join says that e has found out that the count of ev is count, which has raised its
// own. known is the part that e knew for certain to be its own.
func (w *world) join(e *Entry, ev *stored, count, raised, known int) {
	others := count - w.delivered(e)
	switch twice := raised - others; {
	case w.tends[e] != ev:
		// Another process has created again what both knew. It is not in two Events after all.
		w.remote.doubled[w.tuple(e)] -= count - raised
	case twice < 0:
		w.t.Errorf("%s: others have counted %d, of which %d are lost", w.label(e), others, -twice)
	case twice > 0 && (!w.unsure[e] || others == 0 || twice > w.delivered(e)-known):
		w.t.Errorf("%s counts %d twice: others have counted %d, its own were %d, of which it knew %d", w.label(e), twice, others, w.delivered(e), known)
	default:
		w.remote.doubled[w.tuple(e)] += twice
	}
	w.tend(e, ev, count)
}

func (w *world) see(key, note string, now time.Duration) string {
	w.remote.occurrences[key]++
	if w.distinct > 0 {
		w.key(key + ":rest")
		key = nameWith(key, note)
	}
	k, instance := w.key(key)
	w.taken++
	e, counted, wantNote := w.tracker.Count(k, w.tracker.offset(start.Add(now)))
	if !counted {
		w.lose(w.tracker.Observe(k, Occurrence{Note: note, DistinctNotes: w.distinct, Instance: instance}, start.Add(now)))
		return ""
	}
	if wantNote {
		w.tracker.Describe(e, Occurrence{Note: note}, start.Add(now))
	}
	return "counted " + w.label(e)
}

// begin puts an entry in flight, whatever is before it in the schedule.
func (w *world) begin(label string, now time.Duration) string {
	e := w.entry(label)
	if e.life == forgotten {
		return "no write"
	}
	return w.start(now, func(t *Tracker, at time.Duration) (*Entry, heartbeat.Pass) {
		passGates(t)
		t.sched.Ready(e, math.MinInt64, true, at)
		// The schedule lets an ordinary entry go first now and then. Put that one back.
		other, pass, _ := t.sched.Next(at)
		for ; other != e; other, pass, _ = t.sched.Next(at) {
			t.sched.Done(other, pass, heartbeat.None, 0, at)
			p := other.plan(&t.rules, at, false) // not place: the clock can have been set back
			t.sched.Ready(other, p.at, p.hard, at)
		}
		return e, pass
	})
}

// next lets the schedule choose an entry, and begins its write.
func (w *world) next(now time.Duration) (label, text string) {
	text = w.start(now, func(t *Tracker, at time.Duration) (*Entry, heartbeat.Pass) {
		e, pass, ok := t.sched.Next(at)
		if ok {
			label = w.label(e)
			w.judge(e, at, now)
		}
		return e, pass
	})
	return label, strings.TrimSpace(label + " " + text)
}

// judge complains about a request for e that must not be made yet.
func (w *world) judge(e *Entry, at, now time.Duration) {
	// A series that was ready stays ready if the clock is set back.
	if until, held := e.hold().left(max(at, w.tracker.offset(start.Add(w.latest)))); held {
		w.t.Errorf("%s must not write until %s", w.label(e), until)
	}
	if now < w.pausedUntil {
		w.t.Errorf("%s writes, and the server wants no requests until %s", w.label(e), w.pausedUntil)
	}
}

// locked runs f with the lock of the tracker, and enters what it drops into the books.
func (w *world) locked(now time.Duration, f func(t *Tracker, at time.Duration)) {
	w.tracker.mu.Lock()
	f(w.tracker, w.tracker.offset(start.Add(now)))
	drops := w.tracker.dropped()
	w.tracker.mu.Unlock()
	w.lose(drops)
}

// start begins the write of the entry that choose puts in flight.
func (w *world) start(now time.Duration, choose func(*Tracker, time.Duration) (*Entry, heartbeat.Pass)) string {
	var write *Write
	var e *Entry
	w.locked(now, func(t *Tracker, at time.Duration) {
		var pass heartbeat.Pass
		if e, pass = choose(t, at); e != nil {
			write, _ = t.start(e, pass, start.Add(now))
		}
	})
	switch {
	case e == nil:
		return ""
	case write == nil:
		return "no write"
	}
	if w.requests++; !w.driven || !w.forgetful {
		// Each request has a gate of its own, so none holds up another.
		open := heartbeat.Pass{Gate: write.pass.Gate}
		w.tracker.sched.Abandon(&open, heartbeat.Passed, 0, w.tracker.offset(start.Add(now)))
		write.pass.Gate = heartbeat.Gate{Verb: fmt.Sprint(w.requests)}
	}
	w.inFlight[e] = write
	w.maxInFlight = max(w.maxInFlight, len(w.inFlight))
	if !write.WritesSeries() {
		return requestText(write)
	}
	if (write.Series.Count < 2) != (write.Series.State == series.Singleton) {
		w.t.Errorf("%s: a series of %d is %s", w.label(e), write.Series.Count, write.Series.State)
	}
	if promises := write.Series.Heartbeat == w.opts.HeartbeatInterval; promises != (write.Series.State == series.Ongoing && e.life == accepting) {
		w.t.Errorf("%s: %s with heartbeat %s", w.label(e), write.Series.State, write.Series.Heartbeat)
	}
	name, ok := nameOf(&write.Series.Key, write.Series.Name)
	if !ok || write.Series.Namespace != "ns" {
		w.t.Errorf("%s writes %s/%s", w.label(e), write.Series.Namespace, write.Series.Name)
	}
	return writeText(write.Kind, &write.Series, name)
}

func (w *world) outcome(label string) (*Entry, *Write) {
	e := w.entry(label)
	write, ok := w.inFlight[e]
	require.True(w.t, ok, "no write of %s is in flight", label)
	delete(w.inFlight, e)
	return e, write
}

// do has the server make a write, and keeps the books.
func (w *world) do(write *Write) (Result, *stored) {
	e, before := write.entry, 0
	if ev := w.remote.events[write.Series.Name]; ev != nil && !write.Creates() {
		before = ev.count()
	}
	r, ev := w.remote.do(write)
	if ev != nil {
		ev.key = w.keys[e.Key()]
	}
	switch {
	case r.Outcome != Written:
	case e.life == forgotten, w.dropped[e].covers(write.progress.revision):
		// It was dropped before the server handled the request.
		w.remote.doubted[w.tuple(e)] += ev.count() - before
	case write.Creates():
		switch before := w.tends[e]; {
		case before == nil:
		case before.deleted:
			w.move(e, nil, 0)
		default:
			// It could not learn that it has one already.
			if !w.blind[e] {
				w.t.Errorf("%s creates a second Event", w.label(e))
			}
			w.remote.doubled[w.tuple(e)] += w.delivered(e)
			w.forgo(e)
		}
		w.tend(e, ev, ev.count())
	case write.WritesSeries():
		if w.tends[e] != ev {
			w.t.Errorf("%s of %s goes to an Event that is not its own", write.Kind, w.label(e))
		}
		ev.within[e] = ev.count()
	}
	return r, ev
}

// arrive has the server handle the oldest request that is late.
func (w *world) arrive() string {
	if len(w.late) == 0 {
		return "nothing is late"
	}
	r, _ := w.do(w.late[0])
	w.late = w.late[1:]
	return r.Outcome.String()
}

// answer has the server make a write, and tells the tracker the result.
func (w *world) answer(label string, now time.Duration) response {
	e, write := w.outcome(label)
	r, ev := w.do(write)
	was, count, known := e.phase, e.counted(), int(e.known())
	if was == claiming {
		known = math.MaxInt32
		if e.hasAttempts() {
			known = int(e.smallestAttempt())
		}
	}
	drops := w.tracker.Apply(write, r, start.Add(now))
	looks, adopted := r.Outcome == Written && write.Kind == Look && was != live, e.phase == live
	// A create that came late can have been deleted before e learned of it.
	tends := w.tends[e]
	switch replaced := tends != ev && (was == conflicted || tends != nil && tends.deleted); {
	case looks && replaced && adopted:
		w.move(e, ev, e.counted()-count)
	case looks && adopted:
		w.join(e, ev, ev.count(), e.counted()-count, known)
	case e.life == forgotten && e.lost() == 0: // it was restored, and has not occurred
	case looks && replaced, r.Outcome == Gone && (write.WritesSeries() || was == conflicted):
		w.move(e, nil, 0)
	}
	if r.Outcome == Written && write.WritesSeries() || looks && adopted {
		delete(w.unsure, e)
	}
	w.lose(drops)
	return response{text: r.Outcome.String(), outcome: r.Outcome, found: w.told(ev, r.Event)}
}

// told returns what an Event says, nil if it is nil.
func (w *world) told(ev *stored, event *eventsv1.Event) *toldEvent {
	if event == nil {
		return nil
	}
	k, _ := w.key(ev.key)
	told := &toldEvent{strange: ev.stranger, version: versionOf(event)}
	told.name, _ = nameOf(k, event.Name)
	if successor, _, ok := strings.Cut(event.Annotations[series.AnnotationSuccessor], " "); ok {
		next, _ := nameOf(k, successor)
		told.successor = &next
	}
	if s, err := series.FromEvent(event); err == nil {
		told.Series, told.Key = *s, *k
		told.count, told.first, told.last = int(s.Count), sinceStart(s.First), sinceStart(s.Last)
	}
	return told
}

// fail lets a request fail. retryAfter is for how long the server wants no request, if it
// pushes back.
func (w *world) fail(label string, how failure, retryAfter, now time.Duration) response {
	e, write := w.outcome(label)
	switch how {
	case lost:
		w.do(write)
	case late:
		w.late = append(w.late, write)
	}
	w.unsure[e] = w.unsure[e] || write.WritesSeries() && (how == lost || how == late)
	was := e.phase
	r := failureResults[how]
	if r.Outcome == PushedBack && w.driven {
		r.RetryAfter = retryAfter
		w.pausedUntil = max(w.pausedUntil, now+retryAfter)
	}
	w.lose(w.tracker.Apply(write, r, start.Add(now)))
	w.blind[e] = w.blind[e] || was == claiming && e.phase != was
	return response{text: string(how), outcome: r.Outcome, unsent: r.Unsent}
}

func (w *world) refuse(label string, reason DropReason, now time.Duration) response {
	e, write := w.outcome(label)
	was := e.phase
	cannotMerge := was == conflicted && e.rare.claim.unseen == maxLooks-1
	if e.life == accepting && (write.WritesSeries() || cannotMerge) {
		w.leave(e) // it counts from zero from now on
		w.dropped[e] = e.spec.revision
	}
	w.lose(w.tracker.Apply(write, Result{Outcome: Refused, Reason: reason}, start.Add(now)))
	w.blind[e] = w.blind[e] || was == claiming && e.phase != was
	return response{text: "refused", outcome: Refused, reason: reason}
}

func (w *world) advance(now time.Duration) string {
	w.lose(w.tracker.Advance(start.Add(now)))
	return ""
}

// expire ends an entry that has been quiet for too long, whatever else it waits for.
func (w *world) expire(label string, now time.Duration) string {
	e := w.entry(label)
	w.locked(now, func(t *Tracker, at time.Duration) {
		if e.life < closing && (e.isQuiet(&t.rules, at) || e.isOver(&t.rules, at)) {
			t.tick(e, start.Add(now))
		}
	})
	return ""
}

// beat makes the heartbeat of an entry due.
func (w *world) beat(label string, now time.Duration) string {
	e := w.entry(label)
	w.locked(now, func(t *Tracker, at time.Duration) {
		if e.life != accepting {
			return
		}
		e.status.beatAt = at
		if _, inFlight := w.inFlight[e]; inFlight {
			return
		}
		e.status.due &^= dueNext
		t.tick(e, start.Add(now))
	})
	return ""
}

func (w *world) flush(now time.Duration) string {
	if w.pending != nil {
		w.pending.Stop()
	}
	if w.random {
		// Flush follows the hashes, whose seed is random. If it changes nothing any more, the
		// schedule does not depend on them, and the seed of a history reproduces it.
		w.locked(now, func(t *Tracker, at time.Duration) {
			f := &Flush{tracker: t, left: map[*Entry]revision{}}
			for _, label := range w.order {
				if e := w.entries[label]; e.life != forgotten {
					f.add(e, at)
				}
			}
		})
	}
	w.pending = w.tracker.Flush(start.Add(now))
	return w.settled()
}

func (w *world) settled() string {
	var left []string
	if w.pending != nil {
		for e := range w.pending.left {
			left = append(left, w.label(e))
		}
		require.Len(w.t, left, w.pending.Left())
		select {
		case <-w.pending.Done:
			require.Empty(w.t, left)
		default:
			require.NotEmpty(w.t, left)
		}
	}
	return leftText(left)
}

func (w *world) seal(reason DropReason) string {
	w.tracker.Seal(reason)
	return "sealed"
}

func (w *world) clear(reason DropReason) string {
	w.lose(w.tracker.Clear(reason))
	return ""
}

func (w *world) status(label string, now time.Duration) string {
	e := w.entry(label)
	since := func(at time.Duration) time.Duration { return w.tracker.epoch.Add(at).Sub(start) }
	s := statusText{
		phase: e.phase, state: e.spec.state, count: e.counted(), last: since(e.last()),
		written: fmt.Sprintf("%s x%d", e.status.state, e.known()), at: since(e.status.at),
		beatAt: e.status.beatAt, failures: e.failures(), window: e.window(&w.tracker.rules),
	}
	if s.beatAt != never {
		s.beatAt = since(s.beatAt)
	}
	if e.hold().why != free && since(e.hold().until) > now {
		s.retry = since(e.hold().until)
	}
	return s.String()
}

func (w *world) accepting() string {
	s := w.tracker.Stats(start)
	return fmt.Sprintf("%d accepting, %d closing", s.Singletons+s.Ongoing+s.Ended, s.Closing)
}

func (w *world) stand(key string, at earlier) {
	k, _ := w.key(key)
	ev := w.remote.put(at.event(k, "controller-0"), key, "")
	w.remote.occurrences[tupleOf(key)] += ev.count()
	w.listed = nil
}

func (w *world) strange(key string, name naming, what strangeness, now time.Duration) {
	k, _ := w.key(key)
	w.remote.put(strange(k, name, what, now), key, what)
	w.listed = nil
}

func (w *world) meddle(key string, name naming, n int, state series.State, now time.Duration) string {
	k, _ := w.key(key)
	ev := w.remote.events[name.of(k)]
	if ev == nil || ev.stranger != "" {
		return "nothing there"
	}
	w.remote.meddle(ev, n, state, start.Add(now))
	w.remote.occurrences[tupleOf(key)] += n
	w.listed = nil
	return "changed"
}

func (w *world) delete(key string, name naming) string {
	k, _ := w.key(key)
	if ev := w.remote.remove(name.of(k)); ev == nil {
		return "nothing there"
	}
	return "deleted"
}

// vanish deletes the Event that the write of an entry is about.
func (w *world) vanish(label string) {
	if write, ok := w.inFlight[w.entry(label)]; ok {
		w.remote.remove(write.Series.Name)
	}
}

// all returns the Events on the server that have a name of the key, of any key if
// that is empty, in an order that does not depend on hashes.
func (w *world) all(key string) (all []listed) {
	for name, ev := range w.remote.events {
		if key != "" && key != ev.key {
			continue
		}
		k, _ := w.key(ev.key)
		name, ok := nameOf(k, name)
		if !ok {
			w.t.Errorf("%v is no name for %s", name, ev.key)
		}
		as := ev.event.DeepCopy()
		if w.remote.versionless {
			as.ResourceVersion = ""
		}
		all = append(all, listed{ev.key, name, ev, as})
	}
	slices.SortFunc(all, func(a, b listed) int {
		return cmp.Or(strings.Compare(a.key, b.key), strings.Compare(a.as.Name, b.as.Name))
	})
	return all
}

func (w *world) server(key string) string {
	var events []string
	for _, at := range w.all(key) {
		told := w.told(at.ev, at.as)
		text := at.name.String() + " " + string(told.strange)
		if told.strange == "" {
			text = seriesText(&told.Series, at.name)
		}
		if told.successor != nil {
			text += " -> " + told.successor.String()
		}
		events = append(events, text)
	}
	return cmp.Or(strings.Join(events, " | "), "nothing")
}

func (w *world) list() string {
	w.listed = w.all("")
	return fmt.Sprintf("%d events", len(w.listed))
}

// restore returns the label of the entry that has the Event now, if any.
func (w *world) restore(listed listed, spread float64, since time.Duration) string {
	now := start.Add(since)
	w.latest = max(w.latest, since)
	found, err := series.FromEvent(listed.as)
	if err != nil {
		return ""
	}
	counts := map[*Entry]int{}
	for _, e := range w.tracked() {
		counts[e] = e.counted()
	}
	restored, drops := w.tracker.Restore(found, now)
	if !restored {
		require.Empty(w.t, drops)
		return ""
	}
	entries := slices.DeleteFunc(w.tracked(), func(e *Entry) bool { return w.keys[e.Key()] != listed.key || e.name() != found.Name })
	require.Len(w.t, entries, 1)
	e := entries[0]
	count, existed := counts[e]
	switch {
	case existed:
		w.join(e, listed.ev, int(found.Count), e.counted()-count, 0)
		delete(w.unsure, e)
	case e.life == accepting && found.State == series.Ongoing:
		at := w.tracker.offset(now)
		left := min(w.opts.HeartbeatInterval, max(min(cmp.Or(found.Heartbeat, 30*time.Minute)+found.QuietWindow(), w.opts.EventTTL)-now.Sub(found.Last), 0))
		require.LessOrEqual(w.t, e.status.beatAt, at+left)
		e.status.beatAt = at + time.Duration(spread*float64(left))
		e.status.at = e.status.beatAt - w.opts.HeartbeatInterval
		e.status.beatAt = min(e.status.beatAt, at+w.tracker.interval(e))
		w.tracker.place(e, at)
	}
	if !existed {
		w.tend(e, listed.ev, int(found.Count))
	}
	w.lose(drops)
	return w.label(e)
}

func (w *world) kill(now time.Duration) string {
	for e := range w.labels {
		if e.life != forgotten {
			w.remote.killed[w.tuple(e)] += e.counted() - w.delivered(e)
			w.forgo(e)
			e.life = forgotten
		}
	}
	w.lives++
	w.begun(start.Add(now - day))
	return "another process"
}

// check checks the invariants of the trackers, and the books.
func (w *world) check() {
	w.t.Helper()
	found := account{}
	for _, other := range w.remote.worlds {
		other.checkTracker(found)
	}
	for _, ev := range w.remote.all {
		found[tupleOf(ev.key)] += ev.count() - ev.revived
	}
	b := w.remote.books
	for key, want := range b.occurrences {
		if sum := found[key] + b.dropped[key] + b.killed[key] - b.doubted[key] - b.doubled[key]; sum != want {
			w.t.Errorf("%s: %d occurrences, but in the books are %d: %d written or still to be written, %+v", key, want, sum, found[key], b)
		}
	}
}

// checkTracker checks the tracker, and adds what it has still to write to found.
func (w *world) checkTracker(found account) {
	w.t.Helper()
	checkInvariants(w.t, w.tracker, w.maxInFlight)
	checkPlan(w.t, w.tracker, start.Add(w.latest))
	for e, label := range w.labels {
		if _, inFlight := w.inFlight[e]; inFlight != w.tracker.sched.InFlight(e) {
			w.t.Errorf("%s: in flight is %t, should be %t", label, !inFlight, inFlight)
		}
		if e.life == forgotten {
			continue
		}
		delivered := w.delivered(e)
		if known := int(e.known()); known > delivered || known < delivered && !w.unsure[e] {
			w.t.Errorf("%s: according to the tracker the server knows %d, it knows %d", label, known, delivered)
		}
		found[w.tuple(e)] += e.counted() - delivered
	}
	if got := w.tracker.Stats(start).Occurrences; got != uint64(w.taken) {
		w.t.Errorf("%d occurrences arrived, the tracker says %d", w.taken, got)
	}
}

// The texts.

func leftText(left []string) string {
	if len(left) == 0 {
		return "all settled"
	}
	slices.Sort(left)
	return "waits for " + strings.Join(left, ", ")
}

// writeText describes a write: "create Singleton x1 base 1m0s to 1m0s "note"".
func writeText(kind Kind, s *series.Series, name naming) string {
	first := sinceStart(s.First)
	return fmt.Sprintf("%s %s x%d %s %s to %s", kind, s.State, s.Count, name.in(first), first, sinceStart(s.Last)) + noteText(s)
}

// seriesText describes an Event: "base Singleton x1 1m0s to 1m0s "note"".
func seriesText(s *series.Series, name naming) string {
	first := sinceStart(s.First)
	return fmt.Sprintf("%s %s x%d %s to %s", name.in(first), s.State, s.Count, first, sinceStart(s.Last)) + noteText(s)
}

func noteText(s *series.Series) (text string) {
	if s.Note != "" {
		text += fmt.Sprintf(" %q", s.Note)
	}
	if s.LastNote != "" {
		text += fmt.Sprintf(" now %q", s.LastNote)
	}
	for _, k := range slices.Sorted(maps.Keys(s.Annotations)) {
		text += " " + k + "=" + s.Annotations[k]
	}
	if s.QuietWindow() != series.FinishAfter {
		text += fmt.Sprintf(" window %s", s.Window)
	}
	if s.Key.ReportingInstance == "" {
		text += " by " + s.Instance
	}
	return text
}

// requestText describes a request that does not write the series: "look base".
func requestText(w *Write) string {
	name, _ := nameOf(&w.Series.Key, w.Series.Name)
	text := fmt.Sprintf("%s %s", w.Kind, name)
	if w.Kind == Signpost {
		var patch eventsv1.Event
		if err := json.Unmarshal(w.patch, &patch); err != nil {
			return err.Error()
		}
		to, _, _ := strings.Cut(patch.Annotations[series.AnnotationSuccessor], " ")
		name, _ := nameOf(&w.Series.Key, to)
		text += " -> " + name.String()
	}
	return text
}

// statusText is what a script shows of an entry.
type statusText struct {
	phase    phase
	state    series.State
	count    int
	last     time.Duration
	written  string // in the phases live and conflicted
	at       time.Duration
	beatAt   time.Duration
	failures int
	retry    time.Duration // zero if it need not wait
	window   time.Duration
}

func (s statusText) String() string {
	text := fmt.Sprintf("%s x%d, last %s", s.state, s.count, micros(s.last))
	switch s.phase {
	case live, conflicted:
		text += fmt.Sprintf(", written %s at %s", s.written, s.at)
	case refused:
		text += fmt.Sprintf(", refused at %s", s.at)
	}
	switch {
	case s.state != series.Ongoing || s.phase != live && s.phase != refused:
	case s.beatAt == never:
		text += ", heartbeat with the next occurrence"
	default:
		text += fmt.Sprintf(", heartbeat at %s", s.beatAt)
	}
	if s.window != series.FinishAfter {
		text += fmt.Sprintf(", window %s", s.window)
	}
	if s.failures > 0 {
		text += fmt.Sprintf(", %d failures", s.failures)
	}
	if s.retry != 0 {
		text += fmt.Sprintf(", retry at %s", s.retry)
	}
	return text
}

// timeOf is when something was, as an Event has it.
func timeOf(d time.Duration) time.Time { return start.Truncate(time.Microsecond).Add(d) }

// sinceStart is the time of an Event, which has microseconds, in a test.
func sinceStart(t time.Time) time.Duration { return t.Sub(start.Truncate(time.Microsecond)) }
