package tracker

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/eventseries/eventseries/internal/workload"
	"github.com/eventseries/eventseries/series"
)

// The bounds of liveness: without new faults, a tracker writes what is due, ends what is quiet, and
// forgets what has expired within this time. It counts from when that is due, from the last fault,
// or from the end of the last pause of a namespace, whichever is latest.
//
// The longest waits are a back-off of 80 seconds of a request, and of the next one if that finds a
// conflict. What was refused waits for 30 minutes.
const (
	settlesWithin        = 10 * time.Minute
	settlesAfterRefusals = 45 * time.Minute
)

// TestOracleInTime takes trackers through random histories in which a tracker acts only when a
// dispatcher would ask it to: after what happens, and when Tracker.Wake tells it to. Occurrences come
// as loops emit them. Faults come in storms, and coincide. Between the storms nothing may be late,
// and Events must have the state of their loops. See also TestOracle.
func TestOracleInTime(t *testing.T) {
	for _, conf := range grid {
		t.Run(conf.name, func(t *testing.T) {
			for seed := range seeds() {
				d := newDrive(t, seed, conf.leaders)
				d.restarts = conf.restarts
				d.run()
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
	dueSince  map[*Entry]time.Duration
	phase     int           // storms have odd numbers
	phaseEnds time.Duration // when the next one begins
	calmSince time.Duration
	actsAt    time.Duration // when something else happens, in a storm
	likely    float64       // how likely requests fail in this storm
}

// emitter emits the occurrences of one key in loops.
type emitter struct {
	key   string
	world int             // the process that emits them
	times []time.Duration // of the occurrences of this loop that are to come
	loops int             // to follow

	last  time.Duration // when the latest occurrence was
	count int           // how many there were
	fast  time.Duration // since when each comes within FinishAfter of the one before, or never
}

// flying is a request that the server answers at a time.
type flying struct {
	w  *world
	f  *flight
	at time.Duration
}

const never = 1 << 62

// driveTurns is how many parts a history has: calm and storm in turn, and calm at the end.
const driveTurns = 7

func newDrive(t *testing.T, seed uint64, leaders int) *drive {
	h := newHistory(t, seed, rand.New(rand.NewPCG(seed, 1)), leaders)
	d := &drive{history: h, wakes: map[*world]time.Duration{}, dueSince: map[*Entry]time.Duration{}}
	for _, w := range h.worlds {
		// Heartbeats of seconds would need most of the time.
		w.opts.EventTTL = max(w.opts.EventTTL, 10*time.Minute)
		w.opts.HeartbeatInterval = max(min(w.opts.HeartbeatInterval, w.opts.EventTTL-time.Minute), w.opts.EventTTL/5)
		w.opts.FirstHeartbeat = min(w.opts.FirstHeartbeat, w.opts.HeartbeatInterval)
		w.begun(0)
	}
	d.phaseEnds = time.Duration(d.rng.Int64N(int64(time.Hour)))
	for _, key := range d.keys {
		d.emitters = append(d.emitters, &emitter{key: key, world: d.rng.IntN(leaders), loops: 1 + d.rng.IntN(3), last: -never})
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
	for _, d.w = range d.worlds {
		d.restore()
	}
	for wakes := 0; d.isBusy(); {
		at, happens := d.upcoming()
		if happens == nil {
			d.t.Errorf("all sleep, and there is something to do")
			d.failNow()
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
		d.judge()
		d.check()
	}
	if d.w.remote.doubled > 0 {
		d.told = append(d.told, fmt.Sprintf("%d counted twice", d.w.remote.doubled))
	}
}

// isBusy reports whether the history continues.
func (d *drive) isBusy() bool {
	return d.phase < driveTurns-1 || len(d.flying) > 0 ||
		slices.ContainsFunc(d.emitters, func(e *emitter) bool { return len(e.times) > 0 || e.loops > 0 }) ||
		slices.ContainsFunc(d.worlds, func(w *world) bool { return len(w.entries()) > 0 })
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
		at(f.at, func() { d.flying = slices.Delete(d.flying, i, i+1); d.w = f.w; d.respondTo(f.f) })
	}
	for _, w := range d.worlds {
		if wake, ok := d.wakes[w]; ok {
			at(wake, func() { d.w = w; d.pump() })
		}
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
	d.w, e.times = d.worlds[e.world], e.times[1:]
	if d.now-e.last >= d.w.opts.FinishAfter {
		e.fast = never
	} else {
		e.fast = min(e.fast, d.now)
	}
	e.last, e.count = d.now, e.count+1
	d.do("see %s %s", e.key, oneOf(d.rng, "", "one", "two", "three"))
	d.pump()
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
		advance, next := wakes(d.w.tracker, now)
		hasRoom := len(d.w.inFlight) < workers
		if !hasRoom || next.IsZero() || next.After(now) {
			if hasRoom && d.rng.IntN(4) == 0 {
				if before := len(d.w.inFlight); d.do("next") != "" && len(d.w.inFlight) > before {
					d.t.Errorf("Next has a write, and Wake has none before %s", next)
				}
			}
			wake(advance)
			if hasRoom {
				wake(next)
			}
			return
		}
		if before := len(d.w.inFlight); d.do("next") != "" && len(d.w.inFlight) > before {
			latency := time.Second
			if d.isStorm() && d.rng.IntN(4) == 0 {
				latency = 30 * time.Second
			}
			d.flying = append(d.flying, flying{d.w, d.w.inFlight[before], d.now + time.Duration(d.rng.Int64N(int64(latency)))})
		}
	}
	d.t.Errorf("Next always has a write")
}

// respondTo answers a request, or lets it fail.
func (d *drive) respondTo(f *flight) {
	if !slices.Contains(d.w.inFlight, f) {
		return // the process has been killed
	}
	label, how := d.labelOf(f), failure("answer")
	if d.isStorm() && d.rng.Float64() < d.likely {
		how = oneOf(d.rng, d.faults...)
	}
	switch {
	case how == pushedBack:
		d.do("pushedBack %s %s", label, time.Duration(d.rng.Int64N(2)*d.rng.Int64N(int64(d.brief()))))
	case how == late && d.w.remote.versionless:
		d.do("lost %s", label)
	default:
		d.do("%s %s", how, label)
	}
	d.pump()
}

// brief is a time in which no Event expires, and nothing is dropped because it has waited for too
// long.
func (d *drive) brief() time.Duration { return min(d.w.opts.EventTTL/16, 10*time.Minute) }

// turn begins a storm, or ends it.
func (d *drive) turn() {
	d.phase++
	if d.isStorm() {
		d.likely = d.rng.Float64() * 1.2 // often for certain
		d.faults = []failure{unsent}
		for _, f := range []failure{pushedBack, denied, failed, lost, late, refused, local} {
			if d.rng.IntN(3) == 0 {
				d.faults = append(d.faults, f)
			}
		}
		d.actsAt = d.now
		d.phaseEnds = d.now + 1 + time.Duration(d.rng.Int64N(int64(d.brief())))
		d.told = append(d.told, fmt.Sprintf("%s storm until %s: %.1f %q", d.now, d.phaseEnds, d.likely, d.faults))
		return
	}
	d.arrive()
	d.calmSince = d.now
	for _, f := range d.flying {
		d.calmSince = max(d.calmSince, f.at)
	}
	for _, w := range d.worlds {
		for _, until := range w.paused {
			d.calmSince = max(d.calmSince, until-d.clocks[w])
		}
	}
	d.phaseEnds = d.calmSince + settlesWithin + time.Duration(d.rng.Int64N(int64(2*time.Hour)))
	d.told = append(d.told, fmt.Sprintf("%s calm", d.now))
}

// act does something else that happens in a storm.
func (d *drive) act() {
	d.actsAt = d.now + time.Duration(d.rng.Int64N(int64(d.brief()/3)))
	d.w = oneOf(d.rng, d.worlds...)
	switch d.rng.IntN(8) {
	case 0:
		if d.restarts {
			d.do("kill")
			for _, e := range d.emitters {
				e.fast, e.last = never, -never // the next process sees two occurrences before it knows
			}
			if len(d.worlds) > 1 {
				d.setClock()
			}
			d.put()
			d.restore()
		}
	case 1:
		for _, e := range d.emitters { // another leader
			e.world = d.rng.IntN(len(d.worlds))
		}
	case 2:
		d.delete()
	case 3:
		d.do("flush")
	case 4:
		d.do("arrive")
	default:
		d.meddle()
	}
	d.pump()
}

// restore has a process list.
func (d *drive) restore() {
	d.do("list")
	d.do("restore")
	d.pump()
}

// expireEvents deletes the Events that the server keeps no longer.
func (d *drive) expireEvents() {
	for _, ev := range d.w.remote.all("") {
		if ev.stranger == "" && d.now-ev.changed >= d.w.opts.EventTTL {
			d.arrive()
			d.told = append(d.told, fmt.Sprintf("%s expired: %s", d.now, ev.event.Name))
			d.w.remote.remove(ev.event.Name)
		}
	}
}

// judge fails if something is late, or an Event does not have the state of its loop.
func (d *drive) judge() {
	refused := map[string]bool{}
	for _, w := range d.worlds {
		at := w.tracker.offset(start.Add(d.now + d.clocks[w]))
		calm := w.tracker.offset(start.Add(d.calmSince + d.clocks[w]))
		for name, e := range w.entries() {
			bound := settlesWithin
			if w.shade(e).refused {
				refused[name], bound = true, settlesAfterRefusals
			}
			late := func(since time.Duration, what string) {
				if since = max(since, calm); !d.isStorm() && at-since > bound {
					d.t.Errorf("%s %s since %s", name, what, at-since)
				}
			}
			if e.need(at) == none {
				delete(d.dueSince, e)
			} else if _, was := d.dueSince[e]; !was {
				d.dueSince[e] = at
			}
			if since, isDue := d.dueSince[e]; isDue {
				late(since, "needs "+e.need(at).String())
			}
			if e.life == active {
				late(max(e.leftAt(), e.last+w.tracker.window.Of(e.rhythm, e.last)), "is quiet, and not over")
			}
			late(max(e.leftAt(), max(e.last, e.stored.at)+max(w.opts.EventTTL, w.opts.MaxWindow)), "has expired, and is tracked")
		}
	}
	// If several processes write, the state can change back and forth until their next writes; evicted
	// series are Unknown.
	if w := d.w; !w.opts.Shared && d.roomy && w.distinct == 0 && !d.isStorm() {
		for _, e := range d.emitters {
			d.judgeState(e, refused[e.key])
		}
	}
}

// judgeState fails if the Event of a loop does not have the state that follows from its occurrences.
func (d *drive) judgeState(e *emitter, wasRefused bool) {
	bound, o := settlesWithin, d.w.opts
	if wasRefused {
		bound = settlesAfterRefusals
	}
	all := slices.DeleteFunc(d.w.remote.all(e.key), func(ev *remoteEvent) bool { return ev.stranger != "" })
	isOngoing := slices.ContainsFunc(all, func(ev *remoteEvent) bool { return ev.event.Labels[series.LabelState] == series.Ongoing.String() })
	if slices.ContainsFunc(all, func(ev *remoteEvent) bool { return ev.event.Labels[series.LabelState] == "odd" }) {
		return // until the next write, which can be half an hour away
	}
	calm := max(d.calmSince, e.fast)
	quiet, ends := d.now-e.last, max(e.last+o.MaxWindow, d.calmSince)
	if slices.ContainsFunc(all, func(ev *remoteEvent) bool { return ev.event.Note == "before" }) { // of another process
		ends += series.DefaultHeartbeat
	}
	switch isFast := e.fast != never && o.FinishAfter < o.EventTTL && quiet < o.FinishAfter && e.last > d.calmSince; {
	case isFast && len(all) > 0 && !isOngoing && d.now-calm > bound && e.last-calm > bound:
		d.t.Errorf("%s recurs since %s, and is not Ongoing: %s", e.key, d.now-e.fast, d.w.server(e.key))
	case isFast && len(all) == 0 && e.last-calm > o.HeartbeatInterval+bound && o.FinishAfter < (o.EventTTL-o.HeartbeatInterval)/2:
		d.t.Errorf("%s recurs since %s, and has no Event", e.key, d.now-e.fast)
	case isOngoing && e.count > 0 && !d.restarts && d.now-ends > bound:
		d.t.Errorf("%s is quiet since %s, and Ongoing: %s", e.key, quiet, d.w.server(e.key))
	}
}
