package tracker

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eventseries/eventseries/internal/schedule"
	"github.com/eventseries/eventseries/series"
)

// start is the wall time of all tests. It has no monotonic reading, so time passes
// as the test says. Its nanoseconds are not zero, to show where they are cut off.
var start = time.Date(2026, 1, 2, 3, 4, 5, 123456789, time.UTC)

// timeOf is when something was, as an Event has it.
func timeOf(d time.Duration) time.Time { return start.Add(d).Truncate(time.Microsecond) }

// sinceStart is the time of an Event, which has microseconds, in a test.
func sinceStart(t time.Time) time.Duration { return t.Sub(start.Truncate(time.Microsecond)) }

// testKey returns the key with a short name. A name in upper case is a Warning. The
// note that is part of a key is behind a colon; "a:rest" is what the rest of the tuple
// shares. Each letter has a namespace, so that no series holds up one of another letter.
func testKey(name string) *series.Key {
	name, note, _ := strings.Cut(name, ":")
	if note == "rest" {
		note = series.CombinedPrefix
	}
	k := &series.Key{
		Note:                note,
		Regarding:           series.Reference{APIVersion: "v1", Kind: "Pod", Namespace: "ns-" + strings.ToLower(name), Name: "pod-" + strings.ToLower(name), UID: "uid-1"},
		Type:                "Normal",
		Action:              "Starting",
		Reason:              "Started",
		ReportingController: "example.com/controller",
		ReportingInstance:   "controller-0",
	}
	if strings.ToUpper(name) == name {
		k.Type = "Warning"
	}
	return k
}

// tupleOf returns the part of a short name that is not about a note.
func tupleOf(name string) string {
	tuple, _, _ := strings.Cut(name, ":")
	return tuple
}

// world is one process of a controller: a tracker that writes to a server. When the
// process is killed, another one comes with a new tracker.
type world struct {
	t        *testing.T
	opts     Options
	tracker  *Tracker
	remote   *server
	lives    int                   // how many processes there were before
	distinct int                   // how many notes of a tuple have series of their own
	keys     map[series.Key]string // the short names of keys
	age      time.Duration         // of the tracker when its process begins

	shades   map[*Entry]*shade
	inFlight []*flight
	late     []*flight // whose requests the server has yet to handle, though they failed
	pending  *Flush
	listed   []listed
	lost     []string

	maxInFlight int
	latest      time.Duration            // that the tracker was told
	taken       int                      // occurrences that this tracker has seen
	paused      map[string]time.Duration // until when, by the server, by namespace
}

// shade is what an entry should know.
type shade struct {
	ids     ids  // its count
	known   ids  // the part that is stored, as far as it can know
	unsure  bool // responses were lost, so more can be stored
	late    bool // the server has handled a request late: a look may have come before
	refused bool // requests were refused, denied, or failed here, so it can wait for long
}

// flight is a write in flight, and the occurrences that it contains.
type flight struct {
	*Write
	key string
	ids ids
}

// listed is an Event at the time when the server listed it.
type listed struct {
	key string
	ids ids
	as  *series.Series
}

func newWorld(t *testing.T, opts Options, remote *server) *world {
	w := &world{t: t, opts: opts.WithDefaults(), remote: remote, keys: remote.keys}
	w.opts.Seed = cmp.Or(w.opts.Seed, uint64(markRange)) // no mark
	w.lives = 1000 * len(remote.worlds)                  // leaders have different instances
	remote.worlds = append(remote.worlds, w)
	w.begun(0)
	return w
}

// begun starts a process.
func (w *world) begun(now time.Duration) {
	now -= w.age
	w.tracker = New(w.opts, start.Add(now))
	w.shades, w.inFlight, w.pending, w.listed, w.taken = map[*Entry]*shade{}, nil, nil, nil, 0
	w.latest, w.paused = now, map[string]time.Duration{}
}

// key returns the key with a short name, and the instance of this process.
func (w *world) key(name string) (k *series.Key, instance string) {
	k = testKey(name)
	instance = k.ReportingInstance
	if w.opts.Shared {
		k.ReportingInstance = ""
		instance = fmt.Sprintf("controller-%d", w.lives)
	}
	w.keys[*k] = name
	return k, instance
}

func (w *world) label(e *Entry) string { return w.keys[e.Key()] }

// find returns the entry of a key, nil if there is none.
func (w *world) find(name string) *Entry {
	k, _ := w.key(name)
	w.tracker.mu.Lock()
	defer w.tracker.mu.Unlock()
	return w.tracker.find(hashOf(w.tracker.seed, k), k)
}

// entries returns the entries of the tracker by the short names of their keys.
func (w *world) entries() map[string]*Entry {
	w.tracker.mu.Lock()
	defer w.tracker.mu.Unlock()
	all := map[string]*Entry{}
	for _, e := range w.tracker.all() {
		all[w.label(e)] = e
	}
	return all
}

func (w *world) shade(e *Entry) *shade {
	if w.shades[e] == nil {
		w.shades[e] = &shade{}
	}
	return w.shades[e]
}

// The names that scripts have for phases and lives.
var (
	phaseNames = [...]string{unwritten: "unwritten", live: "live", looking: "looking"}
	lifeNames  = [...]string{active: "active", over: "over", closing: "closing"}
)

// place is what a script shows of an entry: "[life] state phase: next write".
func (w *world) place(e *Entry, now time.Duration) string {
	text := e.state.String() + " " + phaseNames[e.phase]
	if e.life != active {
		text = lifeNames[e.life] + " " + text
	}
	if e.silent {
		text = "silent " + text
	}
	if need := e.need(w.tracker.offset(start.Add(now))); need != none {
		text += ": " + need.String()
	}
	return text
}

// step makes a step. The result is its text, which entries it has changed, and what was lost.
func (w *world) step(now time.Duration, f func() string) string {
	w.t.Helper()
	w.latest = max(w.latest, now)
	before := map[string]string{}
	for name, e := range w.entries() {
		before[name] = w.place(e, now)
	}
	parts := []string{}
	if text := f(); text != "" {
		parts = append(parts, text)
	}
	after := w.entries()
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if place := w.place(after[name], now); place != before[name] {
			parts = append(parts, name+" "+place)
		}
		delete(before, name)
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		parts = append(parts, name+" forgotten")
	}
	slices.Sort(w.lost)
	for _, lost := range w.lost {
		parts = append(parts, "dropped "+lost)
	}
	w.lost = nil
	return strings.Join(parts, "; ")
}

// lose enters drops into the books. before are the entries that there were. own is an
// occurrence of the key seen that has just come, and belongs to no entry so far.
func (w *world) lose(drops []Drop, before map[string]*Entry, seen string, own ids) {
	w.t.Helper()
	for _, d := range drops {
		key := w.keys[d.Key]
		w.lost = append(w.lost, fmt.Sprintf("%s x%d %s", key, d.Count, d.Reason))
		sh, lost := &shade{}, ids{}
		if e := before[key]; e != nil {
			sh = w.shade(e)
			lost = sh.ids.not(sh.known)
			if sh.unsure || sh.late || w.flight(e) != nil || len(w.remote.worlds) > 1 && len(w.remote.past[key]) > 0 {
				w.remote.doubted = w.remote.doubted.or(lost)
			}
		}
		switch {
		case own == nil || key != seen && key != tupleOf(seen)+":rest":
		case d.Reason == w.tracker.sealed: // it was not observed
			lost, own = own, nil
		case d.Count > lost.len():
			lost, own = lost.or(own), nil
		}
		if lost.len() != d.Count {
			w.t.Errorf("%d of %s are dropped, and should be %d", d.Count, key, lost.len())
		}
		sh.ids = sh.ids.not(lost)
		w.remote.dropped = w.remote.dropped.or(lost)
	}
}

// do calls the tracker, and enters what it drops into the books.
func (w *world) do(call func() []Drop) {
	w.t.Helper()
	before := w.entries()
	w.lose(call(), before, "", nil)
}

func (w *world) flight(e *Entry) *flight {
	for _, f := range w.inFlight {
		if f.entry == e {
			return f
		}
	}
	return nil
}

func (w *world) see(name, note string, annotations map[string]string, now time.Duration) string {
	w.taken++
	if w.distinct > 0 && note != "" {
		w.key(name + ":rest")
		name += ":" + note
	}
	k, instance := w.key(name)
	own := w.remote.fresh(1)
	o := Occurrence{Note: note, DistinctNotes: w.distinct, Instance: instance, Annotations: annotations}
	e, counted, wantNote := w.tracker.Count(k, w.tracker.offset(start.Add(now)))
	if counted {
		if wantNote {
			w.tracker.Describe(e, o, start.Add(now))
		}
		w.shade(e).ids = w.shade(e).ids.or(own)
		return "counted " + w.label(e)
	}
	before := w.entries()
	drops := w.tracker.Observe(k, o, start.Add(now))
	after := w.entries()
	for _, name := range []string{name, tupleOf(name) + ":rest"} {
		if e := after[name]; e != nil && own != nil && int(e.count) > w.shade(e).ids.len() {
			w.shade(e).ids = w.shade(e).ids.or(own)
			own = nil
		}
	}
	w.lose(drops, before, name, own)
	return ""
}

// begin puts the next write in flight: that of an entry if name is not empty, and the one that
// the schedule chooses otherwise.
func (w *world) begin(name string, now time.Duration) string {
	w.do(func() []Drop { return advance(w.tracker, start.Add(now)) })
	before := w.entries()
	var write *Write
	w.tracker.mu.Lock()
	t, at := w.tracker, w.tracker.offset(start.Add(now))
	var others []*Entry
	for write == nil {
		e, ok := t.sched.Next(at)
		if !ok {
			break
		}
		if name != "" && w.label(e) != name {
			others = append(others, e)
			continue
		}
		write = t.start(e, start.Add(now))
	}
	for _, other := range others {
		t.sched.Cancel(other, at)
		s := t.step(other, start.Add(now))
		t.settle(other, &s)
	}
	drops := t.dropped()
	w.tracker.mu.Unlock()
	w.lose(drops, before, "", nil)
	if write == nil {
		return "no write"
	}
	if until, ok := w.paused[write.Series.Namespace]; ok && now < until {
		w.t.Errorf("%s writes, and the server wants no requests there until %s", w.label(write.entry), until)
	}
	f := &flight{write, w.label(write.entry), w.shade(write.entry).ids}
	w.inFlight = append(w.inFlight, f)
	w.maxInFlight = max(w.maxInFlight, len(w.inFlight))
	if write.Kind == Look {
		return strings.TrimSpace("look " + nameText(write.Series.Name, &write.Series))
	}
	s := &write.Series
	if int(s.Count) != f.ids.len() || (s.Count < 2) != (s.State == series.Singleton) || (s.Heartbeat > 0) != (s.State == series.Ongoing) {
		w.t.Errorf("%s: a write of %d, %s with heartbeat %s, and it has occurred %d times", f.key, s.Count, s.State, s.Heartbeat, f.ids.len())
	}
	return write.Kind.String() + " " + seriesText(s)
}

// end takes the write of a key out of flight. "old" and a key is that of an entry that is
// forgotten.
func (w *world) end(name string) *flight {
	w.t.Helper()
	name, old := strings.CutPrefix(name, "old-")
	for i := len(w.inFlight) - 1; i >= 0; i-- {
		if f := w.inFlight[i]; f.key == name && (f.entry.class == classNone) == old {
			w.inFlight = slices.Delete(w.inFlight, i, i+1)
			return f
		}
	}
	return nil
}

// respond tells the tracker the result of a request. ev is the Event that it was about.
func (w *world) respond(f *flight, r Response, ev *remoteEvent, now time.Duration) string {
	w.t.Helper()
	before, e, isLost := w.entries(), f.entry, f.entry.class == classNone
	sh := w.shade(e)
	drops := w.tracker.Apply(f.Write, r, start.Add(now))
	if isLost {
		require.Empty(w.t, drops)
		return r.Outcome.String()
	}
	switch isKnown := r.Outcome == schedule.Written || r.Outcome == schedule.Gone; {
	case r.Outcome == schedule.Refused || r.Outcome == schedule.Denied:
		sh.refused, sh.unsure = true, sh.unsure || r.MayBeStored && f.Kind != Look
		if r.Outcome == schedule.Denied && e.phase == live && sh.known.len() == 0 { // it is certain of an attempt
			sh.known, sh.unsure = sh.ids.first(int(e.stored.count)), true
		}
	case r.MayBeStored && f.Kind != Look:
		sh.unsure = true
	case r.Outcome == schedule.Written && f.Kind != Look:
		sh.known, sh.unsure = f.ids, false
	case r.Outcome == schedule.Written && e.class != classNone && e.phase == live:
		w.merge(e, ev.ids, ev.writer == e)
	case isKnown:
		sh.known, sh.unsure = nil, false
	}
	if e.salt == series.Salts && e.phase == unwritten {
		w.remote.blind[tupleOf(f.key)] = true
	}
	w.lose(drops, before, "", nil)
	return r.Outcome.String()
}

// merge enters that e knows an Event now that contains the given occurrences. It must have added
// those that it did not have. If responses were lost, and others have written since, or two
// processes have written to an Event that was deleted, it cannot know which these are.
func (w *world) merge(e *Entry, found ids, isOwn bool) {
	w.t.Helper()
	sh := w.shade(e)
	all := sh.ids.or(found)
	twice, past := int(e.count)-all.len(), ids(nil)
	if len(w.remote.worlds) > 1 {
		past = w.remote.past[w.label(e)]
	}
	switch missing := all.and(past).not(found); {
	case twice < 0 && -twice <= missing.len():
		all = all.not(missing.first(-twice)) // only the Event that was deleted contained them
	case twice < 0:
		w.t.Errorf("%s: a look loses %d occurrences", w.label(e), -twice)
	case twice > sh.ids.and(found).len() || twice > 0 && past.len() == 0 && !sh.late && (!sh.unsure || isOwn):
		w.t.Errorf("%s: a look counts %d occurrences twice", w.label(e), twice)
	default:
		w.remote.doubled += twice
		all = all.or(w.remote.fresh(twice))
	}
	sh.ids, sh.known, sh.unsure = all, found, false
}

func (w *world) answer(name string, now time.Duration) string {
	w.t.Helper()
	f := w.end(name)
	if f == nil {
		return "nothing in flight"
	}
	r, ev := w.remote.do(f)
	return w.respond(f, r, ev, now)
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
	refused    failure = "refused"    // the server rejects what it contains
	local      failure = "local"      // no server and no network is the cause
	missing    failure = "missing"    // the namespace does not exist
)

// failures are what the tracker learns of failures.
var failures = map[failure]Response{
	lost:       {Outcome: schedule.Troubled, MayBeStored: true},
	late:       {Outcome: schedule.Troubled, MayBeStored: true},
	failed:     {Outcome: schedule.Troubled, MayBeStored: true},
	unsent:     {Outcome: schedule.Troubled},
	pushedBack: {Outcome: schedule.PushedBack},
	denied:     {Outcome: schedule.Denied},
	refused:    {Outcome: schedule.Refused},
	local:      {Outcome: schedule.Refused, MayBeStored: true},
	missing:    {Outcome: schedule.Refused, Never: DropNamespaceNotFound},
}

// fail lets a request fail. retryAfter is for how long the server wants no request, if it
// pushes back.
func (w *world) fail(name string, how failure, retryAfter, now time.Duration) string {
	w.t.Helper()
	f, r := w.end(name), failures[how]
	if f == nil {
		return "nothing in flight"
	}
	switch how {
	case lost:
		w.remote.do(f)
	case late:
		w.late = append(w.late, f)
		w.shade(f.entry).late = true
	case pushedBack:
		if r.Pause = retryAfter; retryAfter > 0 {
			namespace := f.Series.Namespace
			if before, ok := w.paused[namespace]; !ok || before < now+retryAfter {
				w.paused[namespace] = now + retryAfter
			}
		}
	}
	w.respond(f, r, nil, now)
	return ""
}

// arrive has the server handle the oldest request that is late.
func (w *world) arrive() string {
	if len(w.late) == 0 {
		return "nothing is late"
	}
	r, _ := w.remote.do(w.late[0])
	w.late = w.late[1:]
	return r.Outcome.String()
}

func (w *world) flush(now time.Duration) string {
	if w.pending != nil {
		w.pending.Stop()
	}
	w.pending = w.tracker.Flush(start.Add(now))
	return w.settled()
}

func (w *world) settled() string {
	if w.pending == nil {
		return "no flush"
	}
	var left []string
	w.tracker.mu.Lock()
	for e := range w.pending.left {
		left = append(left, w.label(e))
	}
	w.tracker.mu.Unlock()
	require.Len(w.t, left, w.pending.Left())
	select {
	case <-w.pending.Done:
		require.Empty(w.t, left)
		return "all settled"
	default:
		require.NotEmpty(w.t, left)
	}
	slices.Sort(left)
	return "waits for " + strings.Join(left, ", ")
}

// wake returns when the tracker has something to do.
func (w *world) wake(now time.Duration) string {
	advance, next := wakes(w.tracker, start.Add(now))
	text := ""
	for _, at := range []struct {
		what string
		t    time.Time
	}{{"advance", advance}, {"next", next}} {
		if !at.t.IsZero() {
			text += fmt.Sprintf(", %s at %s", at.what, at.t.Sub(start))
		}
	}
	return cmp.Or(strings.TrimPrefix(text, ", "), "never")
}

func (w *world) status(name string) string {
	e := w.find(name)
	require.NotNil(w.t, e, name)
	since := func(at time.Duration) time.Duration { return w.tracker.epoch.Add(at).Sub(start) }
	text := fmt.Sprintf("%s x%d, last %s", e.state, e.count, since(e.last).Round(time.Microsecond))
	if e.phase == live {
		text += fmt.Sprintf(", stored %s x%d at %s", e.stored.state, e.stored.count, since(e.stored.at))
	}
	if e.isOngoing() && e.phase == live {
		if e.beatAt == -series.MaxDuration {
			text += ", heartbeat overdue"
		} else {
			text += fmt.Sprintf(", heartbeat at %s", since(e.beatAt))
		}
	}
	if window := w.tracker.window.Of(e.rhythm, e.last); window != series.FinishAfter {
		text += fmt.Sprintf(", window %s", window)
	}
	return text
}

func (w *world) sizes() string {
	s := w.tracker.Stats(start)
	return fmt.Sprintf("%d singletons, %d ongoing, %d ended, %d closing", s.Singletons, s.Ongoing, s.Ended, s.Closing)
}

// stand stores an Event of another process. again: it creates what was deleted, with more.
func (w *world) stand(key string, as series.Series, name string, again bool) {
	var ids ids
	if again {
		ids = w.remote.past[key]
	}
	ids = ids.or(w.remote.fresh(int(as.Count) - ids.len()))
	k, _ := w.key(key)
	as.Key, as.Instance, as.Note = *k, cmp.Or(as.Instance, "controller-0"), cmp.Or(k.Note, "before")
	as.Namespace, as.Name = k.Regarding.Namespace, nameOf(k, name)
	w.remote.put(as.Event(), key, "", ids)
}

func (w *world) strange(key, name string, what strangeness, now time.Duration) {
	k, _ := w.key(key)
	s := &series.Series{
		Key: *k, Instance: "controller-0", State: series.Ongoing, Namespace: k.Regarding.Namespace, Name: nameOf(k, name),
		First: timeOf(now - time.Minute), Last: timeOf(now), Count: 100,
	}
	w.remote.put(strange(s, what), key, what, nil)
}

func (w *world) meddle(key string, n int, state series.State, now time.Duration) {
	for _, ev := range w.remote.all(key) {
		if ev.stranger == "" && ev.count()+n > 1 {
			w.remote.meddle(ev, n, state, start.Add(now))
		}
	}
}

func (w *world) server(key string) string {
	var events []string
	for _, ev := range w.remote.all(key) {
		k, _ := w.key(ev.key)
		s := &series.Series{Key: *k, Name: ev.event.Name}
		if ev.stranger != "" {
			events = append(events, strings.TrimSpace(string(ev.stranger)+" "+nameText(s.Name, s)))
			continue
		}
		found := read(ev.event)
		found.Key = *k
		events = append(events, seriesText(found))
	}
	return cmp.Or(strings.Join(events, " | "), "nothing")
}

func (w *world) list() string {
	w.listed = nil
	for _, ev := range w.remote.all("") {
		found, err := series.FromEvent(ev.event)
		if err != nil {
			continue
		}
		if w.remote.versionless {
			found.Version = ""
		}
		w.listed = append(w.listed, listed{ev.key, ev.ids, found})
	}
	return fmt.Sprintf("%d events", len(w.listed))
}

func (w *world) restore(now time.Duration) string {
	var restored []string
	for _, l := range w.listed {
		before := w.entries()
		ok, drops := w.tracker.Restore(l.as, start.Add(now))
		if !ok {
			require.Empty(w.t, drops)
			continue
		}
		after := w.entries()
		e := cmp.Or(after[l.key], before[l.key])
		if e == nil {
			continue // there is nothing to do for it
		}
		if before[l.key] == nil {
			w.shade(e).ids = l.ids
		}
		w.merge(e, l.ids, false)
		w.remote.doubted = w.remote.doubted.or(l.ids.and(w.remote.dropped)) // since the list was made
		w.lose(drops, before, "", nil)
		restored = append(restored, l.key)
	}
	return strings.Join(restored, ", ")
}

// kill starts another process. Requests in flight can still arrive.
func (w *world) kill(now time.Duration) string {
	var stored ids
	for _, ev := range w.remote.events {
		stored = stored.or(ev.ids)
	}
	for _, e := range w.entries() {
		w.remote.killed = w.remote.killed.or(w.shade(e).ids.not(stored))
	}
	if !w.remote.versionless {
		w.late = append(w.late, w.inFlight...)
	}
	w.lives++
	w.begun(now)
	return "another process"
}

// check checks the invariants of the trackers, and the books.
func (w *world) check() {
	w.t.Helper()
	s := w.remote
	s.check()
	found := s.dropped.or(s.killed)
	for _, past := range s.past {
		found = found.or(past)
	}
	for _, ev := range s.events {
		found = found.or(ev.ids)
	}
	for _, other := range s.worlds {
		checkInvariants(w.t, other.tracker, start.Add(other.latest), other.maxInFlight)
		entries := other.entries()
		for name, e := range entries {
			sh := other.shade(e)
			if int(e.count) != sh.ids.len() || int(e.stored.count) != sh.known.len() {
				w.t.Errorf("%s has counted %d, of which %d are stored, and should have %d and %d", name, e.count, e.stored.count, sh.ids.len(), sh.known.len())
			}
			if (other.flight(e) != nil) != other.tracker.sched.InFlight(e) {
				w.t.Errorf("%s: in flight is %t", name, other.tracker.sched.InFlight(e))
			}
			found = found.or(sh.ids)
		}
		if got := other.tracker.Stats(start).Occurrences; got != uint64(other.taken) {
			w.t.Errorf("%d occurrences arrived, the tracker counts %d", other.taken, got)
		}
	}
	if found.len() != s.n {
		w.t.Errorf("%d of %d occurrences are lost", s.n-found.len(), s.n)
	}
}

// The texts.

// nameOf returns the name of a key with a short name: "base", "salt1", "salt2", or
// "unique@1m0s" for the unique one of a series that began then.
func nameOf(k *series.Key, name string) string {
	if first, ok := strings.CutPrefix(name, "unique@"); ok {
		d, err := time.ParseDuration(first)
		if err != nil {
			panic(err)
		}
		return k.UniqueName(timeOf(d))
	}
	salt, _ := strconv.Atoi(strings.TrimPrefix(name, "salt"))
	return k.Name(salt)
}

// nameText returns the short name of an Event of s, empty if that is the base name.
func nameText(name string, s *series.Series) string {
	switch salt, ok := s.Key.Salt(name, s.First); {
	case !ok:
		return "named " + name
	case salt == 0:
		return ""
	case salt == series.Salts:
		return "unique"
	default:
		return fmt.Sprintf("salt%d", salt)
	}
}

// seriesText describes a series: "Singleton x1 1m0s to 1m0s "note"".
func seriesText(s *series.Series) string {
	text := fmt.Sprintf("%s x%d %s %s to %s", s.State, s.Count, nameText(s.Name, s), sinceStart(s.First), sinceStart(s.Last))
	text = strings.ReplaceAll(text, "  ", " ")
	if s.Note != "" {
		text += fmt.Sprintf(" %q", s.Note)
	}
	if s.LastNote != "" && s.LastNote != s.Note {
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
