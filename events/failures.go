package events

import (
	"maps"
	"sync"
	"time"

	"github.com/eventseries/eventseries/internal/tracker"
)

// logInterval is how often a line that could be written for each event is.
const logInterval = time.Minute

// maxDenied bounds how many namespaces are remembered.
const maxDenied = 1000

// failures logs what does not work, since when, how much waits for it, and when it
// works again: not for each request, but for the whole of it. It may be used
// concurrently.
type failures struct {
	limit logLimit

	mu      sync.Mutex
	writing spell
	listing spell
	denied  map[permission]*spell
}

// spell is a time for which something does not work.
type spell struct {
	since    time.Time // zero: it works
	requests int       // that have failed
	logged   bool      // that it does not work
	lastLog  time.Time // that it does not work, in this spell or one before
}

// permission is what the recorder may do, or not.
type permission struct{ namespace, verb string }

// fail says that a request has failed.
func (s *spell) fail(now time.Time) {
	if s.since.IsZero() {
		s.since = now
	}
	s.requests++
}

// log says that a line is written about it.
func (s *spell) log(now time.Time) { s.logged, s.lastLog = true, now }

// end says that it works. over is the spell that this ends; ok is false if none
// was logged: where something fails now and then there would be a line for each
// event otherwise.
func (s *spell) end() (over spell, ok bool) {
	over = *s
	*s = spell{lastLog: s.lastLog}
	return over, over.logged
}

// ended reports whether it works.
func (s *spell) ended() bool { return s.since.IsZero() }

// note takes in what became of a write.
func (f *failures) note(b *Broadcaster, w *tracker.Write, v verdict, err error) {
	b.logRequest(w, v, err)
	now := b.clock.Now()
	asked := permission{w.Series.Namespace, "patch"}
	if w.Creates() {
		asked.verb = "create"
	}
	switch v.outcome {
	case pushedBack, troubled:
		if about, ok := f.noteFailure(b, &f.writing, "write", v.outcome, now); ok {
			b.logger().Error(err, "Cannot write events, will try again", about...)
		}
		return // whether it is permitted is not known
	case denied:
		f.noteDenied(b, asked, now, err)
		return
	case written:
		if over, ok := f.endOf(&f.writing); ok {
			b.logger().Info("Events are written again", "failedFor", now.Sub(over.since),
				"failedRequests", over.requests, "waiting", b.waitingSeries())
		}
	case gone, changed, taken, refused:
		// The server is there and answers. What it says of this Event is not
		// about writing as such.
	}
	f.notePermitted(b, asked, now)
}

// noteList takes in what became of a list, of which the caller says itself what it
// means to be denied it.
func (f *failures) noteList(b *Broadcaster, v verdict, err error) {
	now := b.clock.Now()
	switch v.outcome {
	case pushedBack, troubled:
		if about, ok := f.noteFailure(b, &f.listing, "list", v.outcome, now); ok {
			b.logger().Error(err, "Cannot list events, will try again", about...)
		}
	default:
		if over, ok := f.endOf(&f.listing); ok {
			b.logger().Info("The list of events is answered again", "failedFor", now.Sub(over.since),
				"failedRequests", over.requests)
		}
	}
}

// noteFailure takes in a request that did not get through, and returns what is to be
// logged about it, if a line may be written.
func (f *failures) noteFailure(b *Broadcaster, s *spell, what string, o outcome, now time.Time) (about []any, ok bool) {
	f.mu.Lock()
	s.fail(now)
	suppressed, ok := f.limit.allow(what+" "+o.String(), now)
	if ok {
		s.log(now)
	}
	since, requests := s.since, s.requests
	f.mu.Unlock()
	if !ok {
		return nil, false
	}
	about = []any{"since", since, "failedRequests", requests, "waiting", b.waitingSeries(), "suppressed", suppressed}
	if until, _ := b.gate.state(); !until.IsZero() {
		about = append(about, "pausedUntil", until)
	}
	return about, true
}

// endOf says that something works, and returns what is over with that, if it is to
// be logged.
func (f *failures) endOf(s *spell) (over spell, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return s.end()
}

// noteDenied takes in that something was not permitted. It is logged once for each
// namespace and verb, until it is permitted.
func (f *failures) noteDenied(b *Broadcaster, asked permission, now time.Time, err error) {
	if since, news := f.deny(asked, now); news {
		b.logger().Error(err, "May not write events, will try again", "namespace", asked.namespace, "verb", asked.verb,
			"resource", "events.events.k8s.io", "since", since, "waiting", b.waitingSeries())
	}
}

// deny takes in that something was not permitted, and reports since when it is not,
// and whether that is to be logged.
func (f *failures) deny(asked permission, now time.Time) (since time.Time, news bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, known := f.denied[asked]
	if !known {
		if len(f.denied) >= maxDenied {
			maps.DeleteFunc(f.denied, func(_ permission, s *spell) bool { return s.ended() })
		}
		if len(f.denied) >= maxDenied {
			return now, false
		}
		if f.denied == nil {
			f.denied = make(map[permission]*spell)
		}
		s = &spell{}
		f.denied[asked] = s
	}
	s.fail(now)
	// Where an authorizer cannot make up its mind it must not have a line each
	// time.
	if s.logged || known && now.Sub(s.lastLog) < logInterval {
		return s.since, false
	}
	s.log(now)
	return s.since, true
}

// notePermitted takes in that something was permitted.
func (f *failures) notePermitted(b *Broadcaster, asked permission, now time.Time) {
	f.mu.Lock()
	s, known := f.denied[asked]
	if !known {
		f.mu.Unlock()
		return
	}
	over, logged := s.end()
	f.mu.Unlock()
	if logged {
		b.logger().Info("May write events again", "namespace", asked.namespace, "verb", asked.verb,
			"deniedFor", now.Sub(over.since), "deniedRequests", over.requests, "waiting", b.waitingSeries())
	}
}
