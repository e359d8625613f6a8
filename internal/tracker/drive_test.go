package tracker

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eventseries/eventseries/internal/workload"
	"github.com/eventseries/eventseries/series"
)

// settlesWithin is the bound of liveness: without new faults, a tracker writes what is due,
// ends what is quiet, and forgets what has ended within this time. It counts from when
// that is due, from the last fault, or from the end of the last pause that the server has
// asked for, whichever is latest.
//
// The longest waits are a pause after repeated push-backs (5 minutes), and a back-off of
// 2 minutes: of a request, and of the next one if that finds a conflict.
const settlesWithin = 10 * time.Minute

// TestOracleInTime takes trackers and their oracles through random histories in which a
// tracker acts only when a dispatcher would ask it to: after what happens, and when
// Tracker.Wake says so. Occurrences come as loops emit them. Faults come in storms, and
// coincide. Nothing may be written too early, and between the storms nothing may be
// late.
func TestOracleInTime(t *testing.T) {
	for _, conf := range grid {
		t.Run(conf.name, func(t *testing.T) {
			for seed := range seeds() {
				d := newDrive(t, seed, conf.leaders, conf.forgetful)
				d.restarts = conf.restarts
				d.run()
				if t.Failed() {
					return
				}
			}
		})
	}
}

// drive is a history in which time passes as it does for processes.
type drive struct {
	*history
	emitters  []*emitter
	flying    []flying
	wakes     map[*world]time.Duration // when their dispatchers come back; none: they sleep
	seenSince map[*Entry]time.Duration
	dueSince  map[*Entry]time.Duration
	phase     int           // storms have odd numbers
	phaseEnds time.Duration // when the next one begins
	calmSince time.Duration
	actsAt    time.Duration // when something else happens, in a storm
	likely    float64       // how likely requests fail in this storm
	restoreAt time.Duration // if a list is under way
	restores  pair          // who has listed
}

// emitter emits the occurrences of one key in loops.
type emitter struct {
	key   string
	pair  int             // the process that emits them
	times []time.Duration // of the occurrences of this loop that are to come
	loops int             // to follow
}

// flying is a request that the server answers at a time.
type flying struct {
	pair
	label string
	at    time.Duration
}

// driveTurns is how many parts a history has: calm and storm in turn, and calm at the end.
const driveTurns = 7

func newDrive(t *testing.T, seed uint64, leaders int, forgetful bool) *drive {
	rng := rand.New(rand.NewPCG(seed, 1))
	opts := drawOptions(rng)
	// Heartbeats of seconds would need most of the time.
	if opts.EventTTL != 0 {
		opts.EventTTL = max(opts.EventTTL, 10*time.Minute)
	}
	if d := opts.WithDefaults(); opts.HeartbeatInterval != 0 {
		opts.HeartbeatInterval = max(min(opts.HeartbeatInterval, d.EventTTL-time.Minute), d.EventTTL/5)
	}
	opts.FirstHeartbeat = min(opts.FirstHeartbeat, opts.WithDefaults().HeartbeatInterval)
	d := &drive{
		history:   newHistoryWith(t, seed, rng, opts, leaders, forgetful),
		wakes:     map[*world]time.Duration{},
		seenSince: map[*Entry]time.Duration{},
		dueSince:  map[*Entry]time.Duration{},
	}
	for _, p := range d.pairs {
		p.w.driven = true
	}
	d.phaseEnds = time.Duration(rng.Int64N(int64(time.Hour)))
	for _, key := range d.keys {
		d.emitters = append(d.emitters, &emitter{key: key, pair: rng.IntN(leaders), loops: 1 + rng.IntN(3)})
	}
	return d
}

// begin begins the next loop of e. Loops are as fast as the windows of the tracker ask for.
func (d *drive) begin(e *emitter) {
	o := d.w.opts
	scale := oneOf(d.rng, 1, float64(o.FinishAfter)/float64(series.FinishAfter), float64(o.MaxWindow)/float64(DefaultMaxWindow))
	loops := workload.Loops()[1:] // without the hot loop
	next := oneOf(d.rng, append(loops, workload.Loop{Gaps: calmsDown})...).Gaps(d.rng.Uint64())
	n, from := 2+d.rng.IntN(60), d.now+time.Duration(d.rng.Int64N(int64(2*o.MaxWindow)))
	for at := time.Duration(0); n > 0; at += next() {
		e.times = append(e.times, from+time.Duration(float64(at)*scale))
		n--
	}
	e.loops--
}

// calmsDown is a loop that is slow once and fast from then on.
func calmsDown(uint64) func() time.Duration {
	gap := 16 * time.Minute
	return func() time.Duration {
		defer func() { gap = time.Minute }()
		return gap
	}
}

func (d *drive) isStorm() bool { return d.phase%2 == 1 }

func (d *drive) run() {
	d.put()
	for _, e := range d.emitters {
		d.begin(e)
	}
	for _, d.pair = range d.pairs {
		d.list()
		d.pump()
	}
	for wakes := 0; d.isBusy(); {
		at, happens := d.upcoming()
		if happens == nil {
			d.t.Errorf("all sleep, and there is something to do")
			d.check()
		}
		if at-d.now > time.Second {
			wakes = 0
		} else if wakes++; wakes > 2000 {
			d.t.Errorf("%d times within seconds: Wake returns what is over", wakes)
		}
		// The microsecond keeps two occurrences from having the same time.
		d.now = max(d.now+time.Microsecond, at)
		d.w.remote.now = d.now
		d.expireEvents()
		happens()
		d.judgeDelays()
		d.check()
	}
}

// isBusy reports whether the history goes on.
func (d *drive) isBusy() bool {
	return d.phase < driveTurns-1 || len(d.flying) > 0 ||
		slices.ContainsFunc(d.emitters, func(e *emitter) bool { return len(e.times) > 0 || e.loops > 0 }) ||
		slices.ContainsFunc(d.pairs, func(p pair) bool { return len(p.w.tracked()) > 0 })
}

// upcoming returns what happens next, and when.
func (d *drive) upcoming() (first time.Duration, happens func()) {
	at := func(t time.Duration, what func()) {
		if happens == nil || t < first {
			first, happens = t, what
		}
	}
	for _, e := range d.emitters {
		if len(e.times) > 0 {
			at(e.times[0], func() { d.emit(e) })
		} else if e.loops > 0 {
			at(d.now, func() { d.begin(e) })
		}
	}
	for i, f := range d.flying {
		at(f.at, func() { d.flying = slices.Delete(d.flying, i, i+1); d.pair = f.pair; d.respondTo(f.label) })
	}
	for _, p := range d.pairs {
		if wake, ok := d.wakes[p.w]; ok {
			at(wake, func() { d.pair = p; d.pump() })
		}
	}
	if d.restores.w != nil {
		at(d.restoreAt, d.restoreListed)
	}
	if d.phase < driveTurns-1 {
		at(d.phaseEnds, d.turn)
	}
	if d.isStorm() {
		at(d.actsAt, d.act)
	}
	return first, happens
}

func (d *drive) emit(e *emitter) {
	d.pair, e.times = d.pairs[e.pair], e.times[1:]
	text := d.do("see %s %s", e.key, oneOf(d.rng, "", "one", "two", "three"))
	if !strings.HasPrefix(text, "counted") {
		d.pump()
	}
}

// pump does what the dispatcher of package events does when it is awake.
func (d *drive) pump() {
	const workers = 3
	d.do("advance")
	delete(d.wakes, d.w)
	wake := func(t time.Time) {
		if at, ok := d.wakes[d.w]; !t.IsZero() && (!ok || t.Sub(start)-d.clocks[d.w] < at) {
			d.wakes[d.w] = t.Sub(start) - d.clocks[d.w]
		}
	}
	for range 1000 {
		now := start.Add(d.now + d.clocks[d.w])
		advance, next := d.w.tracker.Wake(now)
		hasRoom := len(d.w.inFlight) < workers
		if !hasRoom || next.IsZero() || next.After(now) {
			if hasRoom && d.rng.IntN(4) == 0 {
				if text := d.do("next"); text != "" {
					d.t.Errorf("Next has a write, and Wake says none before %s: %s", next, text)
				}
			}
			wake(advance)
			if hasRoom {
				wake(next)
			}
			return
		}
		label, _, _ := strings.Cut(d.do("next"), " ")
		if e := d.w.entries[label]; e != nil && d.w.inFlight[e] != nil {
			latency := time.Second
			if d.isStorm() && d.rng.IntN(4) == 0 {
				latency = 30 * time.Second
			}
			d.flying = append(d.flying, flying{d.pair, label, d.now + time.Duration(d.rng.Int64N(int64(latency)))})
		}
	}
	d.t.Errorf("Next always has a write")
}

// respondTo answers a request, or lets it fail.
func (d *drive) respondTo(label string) {
	if d.w.inFlight[d.w.entries[label]] == nil {
		return // the process has been killed
	}
	how := failure("answer")
	if d.isStorm() && d.rng.Float64() < d.likely {
		how = oneOf(d.rng, d.faults...)
	}
	switch {
	case how == pushedBack:
		d.do("pushedBack %s %s", label, time.Duration(d.rng.Int64N(int64(d.brief()))))
	case how == "refuse":
		d.do("refuse %s Malformed", label)
	case how == late && d.w.remote.versionless:
		d.do("lost %s", label)
	default:
		d.do("%s %s", how, label)
	}
	d.pump()
}

// brief is a time in which no Event expires, and nothing is dropped because it has waited
// for too long.
func (d *drive) brief() time.Duration { return min(d.w.opts.EventTTL/16, 10*time.Minute) }

// turn begins a storm, or ends it.
func (d *drive) turn() {
	d.phase++
	if d.isStorm() {
		d.likely = d.rng.Float64() * 1.2 // often for certain
		d.faults = []failure{unsent}
		for _, f := range []failure{pushedBack, denied, failed, lost, late, "refuse"} {
			if d.rng.IntN(3) == 0 {
				d.faults = append(d.faults, f)
			}
		}
		d.actsAt = d.now
		d.phaseEnds = d.now + 1 + time.Duration(d.rng.Int64N(int64(d.brief())))
		d.told = append(d.told, fmt.Sprintf("%s storm until %s: %.1f %q", d.now, d.phaseEnds, d.likely, d.faults))
		return
	}
	d.arriveAll()
	d.calmSince = d.now
	for _, f := range d.flying {
		d.calmSince = max(d.calmSince, f.at)
	}
	for _, p := range d.pairs {
		d.calmSince = max(d.calmSince, p.w.pausedUntil-d.clocks[p.w])
	}
	d.phaseEnds = d.calmSince + settlesWithin + time.Duration(d.rng.Int64N(int64(2*time.Hour)))
	d.told = append(d.told, fmt.Sprintf("%s calm", d.now))
}

// act does something else that happens in a storm.
func (d *drive) act() {
	d.actsAt = d.now + time.Duration(d.rng.Int64N(int64(d.brief()/3)))
	d.pair = oneOf(d.rng, d.pairs...)
	switch d.rng.IntN(8) {
	case 0:
		if !d.restarts {
			break
		}
		d.do("kill")
		if len(d.pairs) > 1 {
			d.setClock()
		}
		d.put()
		d.list()
	case 1:
		for _, e := range d.emitters { // another leader
			e.pair = d.rng.IntN(len(d.pairs))
		}
	case 2:
		if all := d.w.all(""); len(all) > 0 {
			at := oneOf(d.rng, all...)
			d.arriveAll()
			d.do("delete %s %s", at.key, at.name)
		}
	case 3:
		d.do("flush")
	case 4:
		if len(d.w.late) > 0 {
			d.do("arrive")
		}
	default:
		d.meddle()
	}
	d.pump()
}

// list begins a list, unless one is under way.
func (d *drive) list() {
	if d.restores.w == nil {
		d.do("list")
		d.restores, d.restoreAt = d.pair, d.now+time.Duration(d.rng.Int64N(int64(time.Minute)))
	}
}

// restoreListed restores what was listed, if that is not out of date.
func (d *drive) restoreListed() {
	d.pair, d.restores = d.restores, pair{}
	d.now += time.Millisecond
	if d.o == nil || len(d.pairs) > 1 {
		d.do("list")
	}
	d.do("restore %v", d.rng.Float64())
	d.now += time.Millisecond // each Event has a microsecond of its own
	d.pump()
}

// expireEvents deletes the Events that the server keeps no longer.
func (d *drive) expireEvents() {
	isExpired := func(ev *stored) bool { return d.now-ev.changed >= d.w.opts.EventTTL }
	var expired []listed
	for _, ev := range d.w.remote.events {
		if isExpired(ev) {
			expired = d.w.all("")
			break
		}
	}
	for _, at := range expired {
		if isExpired(at.ev) {
			d.arriveAll()
			d.do("delete %s %s", at.key, at.name)
		}
	}
}

// judgeDelays fails if something is late.
func (d *drive) judgeDelays() {
	for _, p := range d.pairs {
		now := d.now + d.clocks[p.w]
		rules := &p.w.tracker.rules
		at := p.w.tracker.offset(start.Add(now))
		late := func(e *Entry, since time.Duration, what string) {
			calm := p.w.tracker.offset(start.Add(d.calmSince + d.clocks[p.w]))
			if since = max(since, d.seenSince[e], calm); !d.isStorm() && at-since > settlesWithin {
				d.t.Errorf("%s %s since %s", p.w.label(e), what, at-since)
			}
		}
		for _, e := range p.w.tracked() {
			if _, seen := d.seenSince[e]; !seen {
				d.seenSince[e] = at
			}
			isDue := e.need() != none
			if p.o != nil && !isDue {
				isDue = p.o.isDue(p.o.find(p.w.label(e)), now)
			}
			if _, was := d.dueSince[e]; !isDue {
				delete(d.dueSince, e)
			} else if !was {
				d.dueSince[e] = at
			}
			if isDue {
				late(e, d.dueSince[e], "is due to "+e.need().String())
			}
			if e.life == accepting {
				late(e, e.last()+e.window(rules), "is quiet, and not over")
			}
			late(e, e.last()+rules.opts.MaxWindow, "has ended, and is tracked")
		}
	}
}
