package series

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// oracle is the rules of a table a second time, as plainly as possible: one
// slice of all that there ever was, searched from end to end each time. It has
// no locks, no lists and no hashes, and its times are those of the test.
type oracle struct {
	opts   Options
	all    []*told
	held   map[string]time.Duration // until when base names are taken
	sealed DropReason
	asked  map[*told]int // what was pending when flush was called last
}

// told is what the oracle knows of an entry.
type told struct {
	key     string
	label   string
	warning bool

	// What it is.
	state       State
	first, last time.Duration
	count       int
	note, now   string
	notedAt     time.Duration
	changes     int
	closing     bool // it takes no occurrences any more
	over        bool // it is forgotten

	// What the server knows.
	exists, existed bool
	knows           toldWrite
	at              time.Duration // when it was told, or refused
	beats           int
	refused         DropReason

	// What is to be done.
	name    string
	names   int
	beatDue bool
	flushTo int
	writing *toldWrite
}

type toldWrite struct {
	state   State
	count   int
	changes int
}

func newOracle(opts Options) *oracle {
	return &oracle{opts: opts.withDefaults(), held: map[string]time.Duration{}, asked: map[*told]int{}}
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
func isLone(e *told) bool    { return e.state == Singleton }
func isOngoing(e *told) bool { return e.state == Ongoing }
func isWritten(e *told) bool { return e.exists }
func isNew(e *told) bool     { return !e.exists }
func isNormal(e *told) bool  { return !e.warning }
func isWarning(e *told) bool { return e.warning }
func isNotBusy(e *told) bool { return e.writing == nil }
func isRefused(e *told) bool { return e.refused != "" }
func isWelcome(e *told) bool { return e.refused == "" }
func isTracked(e *told) bool { return !e.over }

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
	for _, e := range o.where(isActive, func(e *told) bool { return e.key == key }) {
		if now-e.last >= o.opts.Window {
			o.end(e, Finished, now, &eff)
			continue
		}
		was := e.state
		switch {
		case was == Singleton && note != "":
			e.now, e.notedAt = note, now
		case was == Ongoing && now-e.notedAt >= o.opts.NoteInterval:
			e.notedAt = now
			if note != "" {
				e.now = note
			}
		}
		e.state = Ongoing
		e.count++
		e.last = max(e.last, now)
		e.changes++
		if was == Ongoing {
			return "counted " + e.label
		}
		eff.dirty = append(eff.dirty, e.label)
		return eff.String()
	}
	warning := strings.ToUpper(key) == key
	if len(o.where(isActive)) >= o.opts.Capacity {
		if e := longestIdle(o.where(isActive, isLone, isWritten)); e != nil {
			o.end(e, Unknown, now, &eff)
		} else if e := longestIdle(o.where(isActive, isOngoing)); e != nil {
			o.end(e, Unknown, now, &eff)
		} else if e := longestIdle(o.where(isActive, isLone, isNew, isNormal, isNotBusy)); e != nil && warning {
			o.lose(e, DropDisplaced, &eff)
		} else {
			eff.dropped = append(eff.dropped, fmt.Sprintf("%s x1 %s", key, DropTableFull))
			return eff.String()
		}
	}
	n := len(o.where(func(e *told) bool { return e.key == key }))
	e := &told{
		key: key, label: fmt.Sprintf("%s/%d", key, n+1), warning: warning,
		first: now, last: now, notedAt: now, count: 1, note: note, changes: 1,
	}
	o.all = append(o.all, e)
	eff.dirty = append(eff.dirty, e.label)
	return eff.String()
}

func (o *oracle) end(e *told, as State, now time.Duration, eff *effectsText) {
	e.closing = true
	if e.state == Ongoing {
		e.state = as
		e.changes++
	}
	if e.refused != "" && e.writing == nil {
		o.lose(e, e.refused, eff)
		return
	}
	eff.ended = append(eff.ended, e.label)
	if e.name == "" {
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

func (o *oracle) hold(e *told, from time.Duration) {
	if e.names == 0 {
		o.held[e.key] = max(o.held[e.key], from+o.opts.EventTTL*9/8)
	}
}

func (o *oracle) takeName(e *told, now time.Duration) {
	if until, ok := o.held[e.key]; ok && now < until {
		e.name = fmt.Sprintf("unique%d", e.names)
		e.names++
		return
	}
	e.name = "base"
}

func (o *oracle) needs(e *told) WriteKind {
	switch {
	case e.over:
		return writeNothing
	case e.refused != "" && e.beatDue && !e.closing:
		return WriteCreate
	case e.refused != "":
		return writeNothing
	case !e.exists && e.existed:
		return WriteRecreate
	case !e.exists:
		return WriteCreate
	case e.state != e.knows.state && e.state == Ongoing:
		return WriteSeries
	case e.state != e.knows.state:
		return WriteFinish
	case e.beatDue:
		return WriteHeartbeat
	case e.knows.changes < e.flushTo:
		return WriteFlush
	}
	return writeNothing
}

func (o *oracle) begin(label string, now time.Duration) string {
	e := o.find(label)
	var eff effectsText
	if isActive(e) && isOngoing(e) && now-e.last >= o.opts.Window {
		o.end(e, Finished, now, &eff)
	}
	kind := o.needs(e)
	if kind == writeNothing && isClosing(e) {
		o.lose(e, e.refused, &eff)
	}
	if kind != writeNothing && isRefused(e) && e.count < 2 {
		e.beatDue = false
		e.at = now
		kind = writeNothing
	}
	if kind == writeNothing {
		return join("no write", eff.String())
	}
	if e.name == "" {
		o.takeName(e, now)
	}
	e.writing = &toldWrite{state: e.state, count: e.count, changes: e.changes}
	text := fmt.Sprintf("%s %s x%d %s %s to %s", kind, e.state, e.count, e.name, micros(e.first), micros(e.last))
	if e.note != "" {
		text += fmt.Sprintf(" %q", e.note)
	}
	if e.now != "" {
		text += fmt.Sprintf(" now %q", e.now)
	}
	return join(text, eff.String())
}

// micros cuts a time off as an Event does.
func micros(d time.Duration) time.Duration {
	return start.Add(d).Truncate(time.Microsecond).Sub(start.Truncate(time.Microsecond))
}

func (o *oracle) written(label string, now time.Duration) string {
	e := o.find(label)
	w := *e.writing
	e.writing = nil
	if e.over {
		return "written"
	}
	e.knows = w
	e.exists, e.existed, e.refused, e.at = true, true, "", now
	if e.beatDue {
		e.beats++
		e.beatDue = false
	}
	if e.closing {
		o.hold(e, now)
	}
	text := "again"
	if o.needs(e) == writeNothing {
		text = "written"
		if e.closing {
			e.over = true
			return text
		}
	}
	var eff effectsText
	o.bound(&eff)
	return join(text, eff.String())
}

func (o *oracle) gone(label string) string {
	e := o.find(label)
	e.writing = nil
	e.exists = false
	e.knows = toldWrite{}
	return "gone"
}

func (o *oracle) taken(label string, now time.Duration) string {
	e := o.find(label)
	e.writing = nil
	o.hold(e, now)
	e.name = fmt.Sprintf("unique%d", e.names)
	e.names++
	return "taken"
}

func (o *oracle) failed(label string) string {
	o.find(label).writing = nil
	var eff effectsText
	o.bound(&eff)
	return join("failed", eff.String())
}

func (o *oracle) refuse(label string, reason DropReason, now time.Duration) string {
	e := o.find(label)
	e.writing = nil
	var eff effectsText
	switch {
	case e.over:
	case e.closing:
		o.lose(e, reason, &eff)
	default:
		if lost := e.count - e.knows.count; lost > 0 {
			eff.dropped = append(eff.dropped, fmt.Sprintf("%s x%d %s", e.key, lost, reason))
		}
		e.refused, e.at = reason, now
		e.state, e.count = Ongoing, 0
		if e.existed {
			o.hold(e, now)
			e.name = fmt.Sprintf("unique%d", e.names)
			e.names++
		}
		e.exists, e.existed = false, false
		e.knows = toldWrite{changes: e.changes}
		if e.beatDue {
			e.beats++
			e.beatDue = false
		}
	}
	return join("refused", eff.String())
}

func (o *oracle) expire(label string, now time.Duration) string {
	e := o.find(label)
	var eff effectsText
	if isActive(e) && now-e.last >= o.opts.Window {
		o.end(e, Finished, now, &eff)
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
	for _, e := range o.where(isTracked, isWelcome) {
		if e.knows.changes < e.changes {
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
	written := time.Duration(-1)
	if e.exists || e.refused != "" {
		written = e.at
	}
	return statusText(e.state, e.last, written, e.beats, o.needs(e) != writeNothing)
}

func (o *oracle) size() string {
	return fmt.Sprintf("%d active, %d closing", len(o.where(isActive)), len(o.where(isClosing)))
}

var (
	oracleSeed  = flag.Uint64("oracle.seed", 0, "the one history to compare with the oracle; 0: many")
	oracleSeeds = flag.Int("oracle.seeds", 40, "how many histories to compare with the oracle")
	oracleSteps = flag.Int("oracle.steps", 1000, "how long they are")
)

// TestOracle takes a table and the oracle through the same random histories.
// A failure names its seed; -oracle.seed goes through that history again.
func TestOracle(t *testing.T) {
	if *oracleSeed != 0 {
		compareWithOracle(t, *oracleSeed, *oracleSteps)
		return
	}
	for seed := range uint64(*oracleSeeds) {
		if compareWithOracle(t, seed+1, *oracleSteps); t.Failed() {
			return
		}
	}
}

func compareWithOracle(t *testing.T, seed uint64, steps int) {
	rng := rand.New(rand.NewPCG(seed, 0))
	opts := Options{
		Capacity:     1 + rng.IntN(5),
		Window:       6 * time.Minute,
		NoteInterval: 10 * time.Second,
		EventTTL:     []time.Duration{20 * time.Minute, time.Hour}[rng.IntN(2)],
	}
	w, o := newWorld(t, opts), newOracle(opts)
	// The oracle does not forget which names are taken.
	w.table.closed = newClosedNames(1 << 20)
	keys := strings.Split("a b c d A B C D", " ")[:3+rng.IntN(6)]
	now := time.Duration(0)
	// In a calm history more entries live long enough to be written.
	slowServer := rng.IntN(2) == 0

	var history []string
	both := func(what string, step func(machine) string) {
		got, want := step(w), step(o)
		history = append(history, fmt.Sprintf("%s %s -> %s", now, what, got))
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

	for range steps {
		// The nanosecond keeps two occurrences from having the same time, for
		// which no order is promised.
		now += 1 + time.Duration(rng.Int64N(int64(20*time.Second)))
		switch rng.IntN(60) {
		case 0:
			now += opts.Window
		case 1:
			now -= time.Duration(rng.Int64N(int64(10 * time.Minute)))
		case 2:
			now += time.Duration(rng.Int64N(int64(time.Hour)))
		}

		switch pick := rng.IntN(100); {
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
			switch outcome := rng.IntN(10); {
			case outcome == 0 && !write.Creates():
				both("gone "+label, func(m machine) string { return m.gone(label) })
			case outcome == 0:
				both("taken "+label, func(m machine) string { return m.taken(label, now) })
			case outcome == 1:
				both("failed "+label, func(m machine) string { return m.failed(label) })
			case outcome == 2:
				both("refuse "+label, func(m machine) string { return m.refuse(label, "Malformed", now) })
			default:
				both("written "+label, func(m machine) string { return m.written(label, now) })
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
			both("clear", func(m machine) string { return m.clear("Shutdown") })
		}

		both("size", machine.size)
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
